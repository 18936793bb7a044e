"""One trial: trains a model with the settings that a study chose, on validation alone; the test is never ranked."""

from __future__ import annotations

import math
import traceback
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
import optuna
import pandas as pd

from aprec_like.devices import prepare_devices
from aprec_like.errors import InputError, StoppedError
from aprec_like.interactions import Interactions
from aprec_like.recipe import Recipe, Trained, load_recipe
from aprec_like.recipe.fitting import validated_training
from aprec_like.splits import Split
from aprec_like.training import TrainingControl, train
from aprec_like.training.state import EpochRecord
from evaluation.cli import DONE, FAILED
from evaluation.running.fit_model import make_checkpoints
from evaluation.running.progress import Log
from evaluation.running.result_tables import tabulate_history
from evaluation.running.run_job import failure_reason
from evaluation.running.signals import StopFlag
from evaluation.tuning.file_locks import exclusive
from evaluation.tuning.folders import StudyFolder, TrialFolder
from evaluation.tuning.options import TrialOptions
from evaluation.tuning.study import SECONDS, Study, load_study


class PrunedError(Exception):
    """A trial ends early, because its validation stays below the median of the others."""


@dataclass(frozen=True, eq=False)
class TrialData:
    """What the trainings of a trial share.

    Args:
        recipe: the recipe.
        trained: the model with the settings of the trial.
        interactions: all interactions.
        split: their split, of which only training and validation are used.
    """

    recipe: Recipe
    trained: Trained
    interactions: Interactions
    split: Split


def run_trial(options: TrialOptions, stop: StopFlag) -> int:
    """Train the settings of a trial with every seed, and write the result to its folder; returns the exit code."""
    recipe = load_recipe(options.recipe)
    study = load_study(StudyFolder(options.study), recipe)
    folder = TrialFolder(options.study / options.folder)
    with exclusive(folder.writer_lock_path):  # the process of a command that was killed may need a moment to end
        return _run_and_record(options, recipe, study, folder, stop)


def _run_and_record(options: TrialOptions, recipe: Recipe, study: Study, folder: TrialFolder, stop: StopFlag) -> int:
    log = Log(folder.log_path)
    histories: dict[int, list[EpochRecord]] = {seed: [] for seed in options.seeds}
    stopped_by = ""
    try:
        prepare_devices()
        trained = study.model_of(options.number)
        log.write(f"settings: {study.values(options.number)}")
        data = _load(recipe, trained, options, study)
        trial = study.optuna_trial(options.number) if options.is_trial else None
        for seed in options.seeds:
            stopped_by = _train(data, folder, seed, histories, options.seconds_left, trial, stop, log)
    except StoppedError as stopped:
        log.write(f"stopped {stopped}")
        return stop.exit_code
    except InputError:  # the recipe or the data were changed, or the disk is full: no other trial would succeed
        raise
    except PrunedError:
        _finish(folder, "pruned", histories)
    except Exception as error:  # a failing trial must not stop the others; its log has the traceback
        log.write(traceback.format_exc())
        reason = failure_reason(error, study.trained)
        _finish(folder, "failed", histories, reason=reason)
        return FAILED
    else:
        _finish(folder, "complete", histories, stopped_by=stopped_by)
    finally:
        log.close()
    return DONE


def _load(recipe: Recipe, trained: Trained, options: TrialOptions, study: Study) -> TrialData:
    """Load and split the data, and check that they are those of the study."""
    interactions = recipe.load(options.data_dir)
    split = recipe.split_interactions(interactions)
    if (interactions.digest(), split.digest()) != (study.definition["data"], study.definition["split"]):
        raise InputError("the data were changed during the study; put them back and start the same command again")
    return TrialData(recipe, validated_training(trained, recipe.fit_on), interactions, split)


def _train(
    data: TrialData,
    folder: TrialFolder,
    seed: int,
    histories: dict[int, list[EpochRecord]],
    seconds_left: float,
    trial: optuna.Trial | None,
    stop: Callable[[], bool],
    log: Log,
) -> str:
    """Train with one seed from the last checkpoint, and return what ended it.

    Every epoch is added to `histories` and reported to the study.
    """
    history = histories[seed]

    def on_epoch(record: EpochRecord) -> None:
        history.append(record)
        log.write(f"seed {seed}, epoch {record.epoch}, loss {record.loss:.4f}, validation {record.validation:.4f}")
        if trial is not None:
            trial.set_user_attr(SECONDS, _seconds(histories))
            if seed == next(iter(histories)):  # the curve of the first seed decides
                report(trial, record.epoch, float(record.validation or 0.0))

    checkpoints = make_checkpoints(
        data.recipe, data.trained, seed, data.interactions, data.split, folder.checkpoint_path(seed), log.write
    )
    saved = checkpoints.load()
    for values in saved.state["history"] if saved else []:
        on_epoch(EpochRecord(**values))
    seconds_before = float(saved.state["seconds"]) if saved else 0.0
    control = TrainingControl(
        time_limit=seconds_before + seconds_left if math.isfinite(seconds_left) else math.inf,
        checkpoints=checkpoints,
        is_stopping=stop,
        on_epoch=on_epoch,
    )
    exclude_seen = data.recipe.evaluation.exclude_seen
    return train(data.trained, data.split, seed=seed, exclude_seen=exclude_seen, control=control).stopped_by


def report(trial: optuna.Trial, epoch: int, validation: float) -> None:
    """Report the validation value of an epoch; raises `PrunedError` if the trial is not worth going on."""
    frozen = trial.study.get_trials(deepcopy=False)[trial.number]
    if epoch not in frozen.intermediate_values:  # a resumed trial has reported it before
        trial.report(validation, epoch)
    if trial.should_prune():
        raise PrunedError


def _finish(folder: TrialFolder, state: str, histories: dict[int, list[EpochRecord]], **details: object) -> None:
    """Write the curves and the result of a trial, and remove its checkpoints."""
    trained = {seed: history for seed, history in histories.items() if history}
    best = {seed: max(history, key=lambda record: record.validation or 0.0) for seed, history in trained.items()}
    values = [float(record.validation or 0.0) for record in best.values()]
    tables = [tabulate_history(history).assign(seed=seed) for seed, history in trained.items()]
    if tables:
        folder.write_curve(pd.concat(tables))
    folder.write_result(
        state,
        value=float(np.mean(values)) if values else None,
        values=values,
        best_epoch=round(float(np.mean([record.epoch for record in best.values()]))) if best else None,
        epochs=sum(map(len, trained.values())),
        seconds=_seconds(histories),
        **details,
    )
    folder.remove_checkpoints()


def _seconds(histories: dict[int, list[EpochRecord]]) -> float:
    """Return the seconds of training of all seeds."""
    return sum(history[-1].seconds for history in histories.values() if history)
