"""Fits one model of a recipe: counts, or trains a network, on the interactions that the recipe names (`fit_on`)."""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext
from dataclasses import dataclass, field, replace
from pathlib import Path

from aprec_like.errors import InputError, StoppedError
from aprec_like.files import remove_folder
from aprec_like.interactions import Interactions
from aprec_like.models import CountingModel, Scorer
from aprec_like.out_of_core import digest_arrays
from aprec_like.ranking import NetworkScorer
from aprec_like.recipe import Recipe, Trained
from aprec_like.recipe.fitting import refitting, validated_training
from aprec_like.settings import describe
from aprec_like.splits import Split, counted_interactions
from aprec_like.training import TrainingControl, TrainingOutcome, train
from aprec_like.training.checkpoints import Checkpoints, remove_checkpoints, remove_older_states
from aprec_like.training.cost import NO_COST, NOT_MEASURED, Cost
from aprec_like.training.state import EpochRecord
from aprec_like.types import Json
from evaluation.results.identity import Identity
from evaluation.results.store import WEIGHTS, ModelFolder
from evaluation.running.changed_recipe import goes_on
from evaluation.running.progress import Display
from evaluation.tracking.tensorboard import TensorBoardLog

NOT_OF_TRAINING = ("state", "at", "identity", "sha256")
"""Entries of status.json that are written anew whenever a model is finished."""


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
        keep_checkpoint: keep the last state of the training, even if no limit ended it.
        title: name in messages; `None` for the name of the model.
        is_display_shared: whether another process shows the progress.
        has_tensorboard: whether curves are written for TensorBoard.
        training_scope: context of a training, such as that of several devices; gets the number of epochs of a second
            training, `None` for the first.
    """

    recipe: Recipe
    name: str
    seed: int
    data_dir: Path
    folder: ModelFolder
    time_limit: float = math.inf
    identity: Identity | None = None
    keep_checkpoint: bool = False
    title: str | None = None
    is_display_shared: bool = False
    has_tensorboard: bool = False
    training_scope: Callable[[int | None], AbstractContextManager[object]] = lambda refit_epochs: nullcontext()

    @property
    def model(self) -> Trained | CountingModel:
        """Settings of the model."""
        return self.recipe.models[self.name]

    def make_display(self, kind: type[Display] = Display) -> Display:
        """Return a progress display of some kind for this model."""
        metric, max_epochs, patience = "", 1, None
        if isinstance(self.model, Trained):
            max_epochs, stopping = self.model.training.max_epochs, self.model.training.early_stopping
            metric, patience = (str(stopping.metric), stopping.patience) if stopping else ("", None)
        return kind(
            self.title or self.name,
            self.folder.log_path,
            metric,
            max_epochs,
            self.time_limit,
            patience=patience,
            is_shared=self.is_display_shared,
        )


@dataclass(frozen=True, eq=False)
class FittedModel:
    """A trained or counted model.

    Args:
        scorer: scores the catalogue for any history.
        status: entries of status.json about the training.
        history: one record per epoch of the training with validation; empty for counting models, `None` if history.csv
            is there already.
        seconds_before: seconds of training in earlier processes.
        cost_before: cost of training in earlier processes.
    """

    scorer: Scorer
    status: Json
    history: list[EpochRecord] | None = field(default_factory=list)
    seconds_before: float = 0.0
    cost_before: Cost = NO_COST


def fit_model(
    run: ModelRun,
    interactions: Interactions,
    split: Split,
    display: Display,
    is_stopping: Callable[[], bool],
    read_cost: Callable[[], Cost] = lambda: NOT_MEASURED,
) -> FittedModel:
    """Fit a counting model, or train a network and, if the recipe says so, train it again with the validation part."""
    stop_if_requested(is_stopping)
    started, fit_on = time.monotonic(), run.recipe.fit_on
    if isinstance(run.model, CountingModel):
        scorer = run.model.fit(counted_interactions(split, fit_on))
        return FittedModel(scorer, {"seconds_to_best": time.monotonic() - started})
    control = TrainingControl(
        time_limit=run.time_limit,
        is_stopping=is_stopping,
        read_cost=read_cost,
        on_step=display.on_step,
        on_epoch=display.on_epoch,
    )
    first = validated_training(run.model, fit_on)
    with _tracked(run, first, control, interactions.num_items) as tracked:
        outcome = _train(run, first, interactions, split, display, tracked, run.folder.checkpoint_path)
    best, scorer = outcome.best, outcome.scorer
    seconds_before, cost_before = outcome.seconds_before, outcome.cost_before
    num_epochs = len(outcome.history)
    epochs = f"{num_epochs} epoch{'s' * (num_epochs != 1)}"
    display.print_line(f"trained {epochs}, best {best.epoch}, stopped by {outcome.stopped_by}")
    status = {
        "seconds_to_best": best.seconds,
        "best_epoch": best.epoch,
        "best_validation": best.validation,
        "epochs": len(outcome.history),
        "stopped_by": outcome.stopped_by,
        "seconds_trained": outcome.history[-1].seconds,
        "is_checkpoint_kept": run.keep_checkpoint or outcome.stopped_by != "early_stopping",
    }
    if second := refitting(run.model, fit_on, best.epoch):
        display.print_line(f"trains again for {best.epoch} epochs, now with the validation part")
        display.max_epochs = best.epoch
        unlimited = replace(control, time_limit=math.inf)
        refit = _train(run, second, interactions, split, display, unlimited, run.folder.refit_path, best.epoch)
        status["refit_seconds"] = refit.history[-1].seconds
        scorer = refit.scorer
        seconds_before, cost_before = seconds_before + refit.seconds_before, cost_before + refit.cost_before
    run.folder.write_weights(scorer.network.save_weights)
    return FittedModel(scorer, status, outcome.history, seconds_before, cost_before)


@contextmanager
def _tracked(run: ModelRun, trained: Trained, control: TrainingControl, num_items: int) -> Iterator[TrainingControl]:
    """Let TensorBoard follow a training, if asked to."""
    if not run.has_tensorboard:
        yield control
        return
    log = TensorBoardLog(run.folder.path, trained, num_items)
    try:
        yield log.follow(control)
    finally:
        log.close()


def load_fitted(run: ModelRun, split: Split, display: Display) -> FittedModel | None:
    """Return a network with the weights of its finished training, to be ranked again; `None` if it must be fitted."""
    finished = run.folder.as_finished()
    if finished is None or run.identity is None or not isinstance(run.model, Trained):
        return None
    if goes_on(finished, describe(run.model), run.time_limit):
        return None
    try:
        finished.check_identity(run.identity)
        finished.read_history()
        weights = finished.verified(WEIGHTS)
    except InputError as error:
        display.print_line(f"can't be ranked again without a training: {error}")
        return None
    network = run.model.build_network(run.model.training_data(split))
    network.load_weights(weights)
    display.print_line(f"is ranked again with its stored weights, for the best {run.recipe.evaluation.depth} items")
    status = {name: value for name, value in finished.status().items() if name not in NOT_OF_TRAINING}
    return FittedModel(NetworkScorer(network), status, history=None, cost_before=NOT_MEASURED)


def _train(
    run: ModelRun,
    trained: Trained,
    interactions: Interactions,
    split: Split,
    display: Display,
    control: TrainingControl,
    checkpoint_path: Path,
    refit_epochs: int | None = None,
) -> TrainingOutcome:
    """Train with checkpoints in a folder."""
    checkpoints = make_checkpoints(
        run.recipe, trained, run.seed, interactions, split, checkpoint_path, display.print_line
    )
    control = replace(control, checkpoints=checkpoints)
    with run.training_scope(refit_epochs):
        return train(trained, split, seed=run.seed, exclude_seen=run.recipe.evaluation.exclude_seen, control=control)


def make_checkpoints(
    recipe: Recipe,
    trained: Trained,
    seed: int,
    interactions: Interactions,
    split: Split,
    path: Path,
    log: Callable[[str], None],
) -> Checkpoints:
    """Return the checkpoints in a folder of a training that is identified by all that its weights depend on."""
    fingerprint = {
        "model": describe(trained),
        "seed": seed,
        "data": interactions.digest(),
        "split": [describe(recipe.split), split.digest()],
        "exclude_seen": recipe.evaluation.exclude_seen,
    }
    if trained.model.time_gaps is not None and interactions.timestamps is not None:
        fingerprint["times"] = digest_arrays(interactions.timestamps)
    return Checkpoints(path, fingerprint, log)


def remove_states(folder: ModelFolder, *, is_last_kept: bool = False) -> None:
    """Remove the states of a model's training, all or all but the last, and no other files."""
    remove_folder(folder.refit_path)
    if is_last_kept:
        remove_older_states(folder.checkpoint_path)
    else:
        remove_checkpoints(folder.checkpoint_path)


def stop_if_requested(is_stopping: Callable[[], bool]) -> None:
    """Raise `StoppedError` if a stop was requested."""
    if is_stopping():
        raise StoppedError("before the end")
