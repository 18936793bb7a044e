"""Runs one model of a recipe with one seed: load, split, train, rank, measure, store."""

from __future__ import annotations

import math
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path

import tensorflow as tf

from aprec_like.errors import StoppedError
from aprec_like.interactions import Interactions
from aprec_like.models import CountingModel, Scorer
from aprec_like.ranking import Rankings, rank
from aprec_like.recipe import Evaluation, Recipe, Trained
from aprec_like.settings import describe
from aprec_like.splits import Split
from aprec_like.training import TrainingControl, train
from aprec_like.training.checkpoints import Checkpoints, remove_checkpoints
from aprec_like.training.state import EpochRecord
from aprec_like.types import Json
from evaluation.results.environment import peak_memory_gib
from evaluation.results.identity import Identity, check_unchanged_data
from evaluation.results.store import ModelFolder
from evaluation.running.progress import Display, format_duration
from evaluation.running.result_tables import summarise, tabulate_history, tabulate_top_items, tabulate_users


@dataclass(frozen=True)
class ModelRun:
    """One model and seed of a recipe to run.

    Args:
        recipe: the recipe.
        name: name of the model in the recipe.
        seed: training seed.
        data_dir: folder of data files.
        folder: results folder of the model.
        time_limit: seconds of training, over all restarts.
        identity: what the results must be of; other data are refused. `None` for results without an identity.
    """

    recipe: Recipe
    name: str
    seed: int
    data_dir: Path
    folder: ModelFolder
    time_limit: float = math.inf
    identity: Identity | None = None

    @property
    def model(self) -> Trained | CountingModel:
        """Settings of the model."""
        return self.recipe.models[self.name]

    def make_display(self) -> Display:
        """Return a progress display for this model."""
        title = self.name if len(self.recipe.seeds) == 1 else f"{self.name}, seed {self.seed}"
        if not isinstance(self.model, Trained):
            return Display(title, self.folder.log_path, "", 1, self.time_limit)
        training = self.model.training
        metric = str(training.early_stopping.metric) if training.early_stopping else ""
        return Display(title, self.folder.log_path, metric, training.max_epochs, self.time_limit)


def run_model(run: ModelRun, display: Display, is_stopping: Callable[[], bool] = lambda: False) -> None:
    """Load, split, train, rank, measure, store; resumes a run that was stopped or killed.

    Raises `StoppedError` soon after `is_stopping` returns True.
    """
    started = time.monotonic()
    evaluation, folder = run.recipe.evaluation, run.folder
    interactions = run.recipe.load(run.data_dir)
    split = run.recipe.split.split(interactions)
    if run.identity:
        check_unchanged_data(interactions.digest(), split.digest(), run.identity)
    fitted = _fit(run, interactions, split, display, is_stopping)
    rankings = _rank(fitted.scorer, split, evaluation, display, is_stopping)
    per_user = tabulate_users(rankings, split, evaluation)
    folder.write_history(tabulate_history(fitted.history))
    folder.write_per_user(per_user)
    folder.write_top_items(tabulate_top_items(rankings, split))
    folder.write_metrics(summarise(per_user, evaluation))
    seconds = time.monotonic() - started + fitted.seconds_before
    devices = [device.device_type for device in tf.config.list_logical_devices()]
    status = fitted.status | {"seconds_total": seconds, "peak_memory_gib": peak_memory_gib(), "devices": devices}
    folder.finish(identity=run.identity, **status)
    remove_checkpoints(folder.checkpoint_path)
    display.print_line(f"finished in {format_duration(seconds)}")


@dataclass(frozen=True, eq=False)
class _FittedModel:
    """A trained or counted model.

    Args:
        scorer: scores the catalogue for any history.
        status: entries of status.json about the training.
        history: one record per epoch; empty for counting models.
        seconds_before: seconds of training in earlier processes.
    """

    scorer: Scorer
    status: Json
    history: list[EpochRecord] = field(default_factory=list)
    seconds_before: float = 0.0


def _fit(
    run: ModelRun, interactions: Interactions, split: Split, display: Display, is_stopping: Callable[[], bool]
) -> _FittedModel:
    """Fit a counting model to all known interactions, or train a network."""
    _stop_if_requested(is_stopping)
    started = time.monotonic()
    if isinstance(run.model, CountingModel):
        return _FittedModel(run.model.fit(split.test.known), {"seconds_to_best": time.monotonic() - started})
    exclude_seen = run.recipe.evaluation.exclude_seen
    fingerprint = {
        "model": describe(run.model),
        "seed": run.seed,
        "data": interactions.digest(),
        "split": [describe(run.recipe.split), split.digest()],
        "exclude_seen": exclude_seen,
    }
    control = TrainingControl(
        time_limit=run.time_limit,
        checkpoints=Checkpoints(run.folder.checkpoint_path, fingerprint, display.print_line),
        is_stopping=is_stopping,
        on_step=display.on_step,
        on_epoch=display.on_epoch,
    )
    outcome = train(run.model, split, seed=run.seed, exclude_seen=exclude_seen, control=control)
    run.folder.write_weights(outcome.scorer.network.save_weights)
    best = outcome.best
    display.print_line(f"trained {len(outcome.history)} epochs, best {best.epoch}, stopped by {outcome.stopped_by}")
    status = {
        "seconds_to_best": best.seconds,
        "best_epoch": best.epoch,
        "best_validation": best.validation,
        "epochs": len(outcome.history),
        "stopped_by": outcome.stopped_by,
    }
    return _FittedModel(outcome.scorer, status, outcome.history, outcome.seconds_before)


def _rank(
    scorer: Scorer, split: Split, evaluation: Evaluation, display: Display, is_stopping: Callable[[], bool]
) -> Rankings:
    """Rank the catalogue for all test users."""

    def on_progress(num_ranked: int) -> None:
        display.on_rank(num_ranked, len(split.test))
        _stop_if_requested(is_stopping)

    _stop_if_requested(is_stopping)
    return rank(
        scorer,
        split.test,
        exclude_seen=evaluation.exclude_seen,
        depth=evaluation.depth,
        candidates=evaluation.candidates.draw(split.train, split.test) if evaluation.candidates else None,
        on_progress=on_progress,
    )


def _stop_if_requested(is_stopping: Callable[[], bool]) -> None:
    if is_stopping():
        raise StoppedError("before the end")
