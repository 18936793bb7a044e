"""One model of a recipe with one seed: `run_model` loads, splits, trains, ranks, measures and stores."""

from __future__ import annotations

import math
import time
from collections.abc import Callable
from dataclasses import asdict, dataclass, field
from pathlib import Path

import numpy as np
import pandas as pd
import tensorflow as tf

from aprec_like.errors import StoppedError
from aprec_like.interactions import PADDING, Interactions
from aprec_like.models import CountingModel, Scorer
from aprec_like.ranking import Rankings, rank
from aprec_like.recipe import Evaluation, Recipe, Trained, sampled_name
from aprec_like.settings import describe
from aprec_like.splits import Split
from aprec_like.training import TrainingControl, train
from aprec_like.training.checkpoints import Checkpoints, remove_checkpoints
from aprec_like.training.state import EpochRecord
from aprec_like.types import Json
from evaluation.analysis.significance import mean_interval
from evaluation.results.environment import peak_memory_gib
from evaluation.results.store import ModelFolder
from evaluation.running.progress import Display, as_duration


@dataclass(frozen=True)
class ModelRun:
    """What to run.

    Args:
        recipe: the experiment.
        name: the model's name in the recipe.
        seed: of training.
        data_dir: where data files are.
        folder: where the results go.
        time_limit: seconds of training, over all restarts.
    """

    recipe: Recipe
    name: str
    seed: int
    data_dir: Path
    folder: ModelFolder
    time_limit: float = math.inf

    @property
    def model(self) -> Trained | CountingModel:
        """The model's settings."""
        return self.recipe.models[self.name]

    def make_display(self) -> Display:
        """The progress display of this model."""
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

    def on_ranked(done: int) -> None:
        display.on_rank(done, len(split.test))
        _stop_if_requested(is_stopping)

    interactions = run.recipe.load(run.data_dir)
    split = run.recipe.split.split(interactions)
    _stop_if_requested(is_stopping)
    fitted = _fit(run, interactions, split, display, is_stopping)
    _stop_if_requested(is_stopping)
    rankings = rank(
        fitted.scorer,
        split.test,
        exclude_seen=evaluation.exclude_seen,
        depth=evaluation.depth,
        candidates=evaluation.candidates.draw(split.train, split.test) if evaluation.candidates else None,
        on_progress=on_ranked,
    )
    per_user = tabulate_users(rankings, split, evaluation)
    folder.write_history(as_frame(fitted.history))
    folder.write_per_user(per_user)
    folder.write_top_items(tabulate_top_items(rankings, split, interactions))
    folder.write_metrics(summarise(per_user, evaluation))
    seconds = time.monotonic() - started + fitted.seconds_before
    devices = [device.device_type for device in tf.config.list_logical_devices()]
    folder.finish(**fitted.status, seconds_total=seconds, peak_memory_gib=peak_memory_gib(), devices=devices)
    remove_checkpoints(folder.checkpoint_path)
    display.say(f"finished in {as_duration(seconds)}")


def _stop_if_requested(is_stopping: Callable[[], bool]) -> None:
    if is_stopping():
        raise StoppedError("before the end")


@dataclass(frozen=True, eq=False)
class _Fitted:
    """A model that can rank.

    Args:
        scorer: scores the catalogue for any history.
        status: what status.json says about the training.
        history: one record per epoch; empty for models that count.
        seconds_before: seconds of training before this process.
    """

    scorer: Scorer
    status: Json
    history: list[EpochRecord] = field(default_factory=list)
    seconds_before: float = 0.0


def _fit(
    run: ModelRun, interactions: Interactions, split: Split, display: Display, is_stopping: Callable[[], bool]
) -> _Fitted:
    """Count or train."""
    started = time.monotonic()
    if isinstance(run.model, CountingModel):
        return _Fitted(run.model.fit(split.test.known), {"seconds_to_best": time.monotonic() - started})
    fingerprint = {
        "model": describe(run.model),
        "seed": run.seed,
        "data": interactions.digest(),
        "split": [describe(run.recipe.split), split.digest()],
        "exclude_seen": run.recipe.evaluation.exclude_seen,
    }
    control = TrainingControl(
        time_limit=run.time_limit,
        checkpoints=Checkpoints(run.folder.checkpoint_path, fingerprint, display.say),
        is_stopping=is_stopping,
        on_step=display.on_step,
        on_epoch=display.on_epoch,
    )
    exclude_seen = run.recipe.evaluation.exclude_seen
    outcome = train(run.model, split, seed=run.seed, exclude_seen=exclude_seen, control=control)
    run.folder.write_weights(outcome.scorer.network.save_weights)
    best = outcome.best
    display.say(f"trained {len(outcome.history)} epochs, best {best.epoch}, stopped by {outcome.stopped_by}")
    status = {
        "seconds_to_best": best.seconds,
        "best_epoch": best.epoch,
        "best_validation": best.validation,
        "epochs": len(outcome.history),
        "stopped_by": outcome.stopped_by,
    }
    return _Fitted(outcome.scorer, status, outcome.history, outcome.seconds_before)


def as_frame(history: list[EpochRecord]) -> pd.DataFrame:
    """One row per epoch."""
    columns = list(EpochRecord.__dataclass_fields__)
    return pd.DataFrame([asdict(record) for record in history], columns=columns)


def tabulate_users(rankings: Rankings, split: Split, evaluation: Evaluation) -> pd.DataFrame:
    """One row per test user, with the source's ids and one column per metric."""
    test = split.test
    columns = {
        "user": test.known.user_ids[test.users],
        "target": test.known.item_ids[test.targets],
        "rank": rankings.ranks,
        "target_score": rankings.target_scores,
        "sigmoid_sum": rankings.sigmoid_sums,
        "logsumexp": rankings.logsumexps,
    }
    columns |= {str(metric): metric.per_user(rankings.ranks) for metric in evaluation.metrics}
    if (ranks := rankings.candidate_ranks) is not None:
        columns |= {sampled_name(str(metric)): metric.per_user(ranks) for metric in evaluation.metrics}
    return pd.DataFrame(columns)


def tabulate_top_items(rankings: Rankings, split: Split, interactions: Interactions) -> pd.DataFrame:
    """One row per test user and place in the ranking, with the source's ids."""
    case, place = np.nonzero(rankings.top_items != PADDING)
    return pd.DataFrame(
        {
            "user": interactions.user_ids[split.test.users[case]],
            "position": (place + 1).astype(np.int32),
            "item": interactions.item_ids[rankings.top_items[case, place]],
            "score": rankings.top_scores[case, place],
        }
    )


def summarise(per_user: pd.DataFrame, evaluation: Evaluation) -> Json:
    """Means with 95 % intervals over users."""
    metrics = {name: asdict(mean_interval(per_user[name].to_numpy())) for name in evaluation.columns}
    return {"metrics": metrics, "users": len(per_user)}
