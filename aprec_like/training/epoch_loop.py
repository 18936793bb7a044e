"""The loop over steps and epochs with its checkpoints; only this module changes a `TrainingState`."""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import tensorflow as tf

from aprec_like.errors import InputError, NotFiniteError, StoppedError
from aprec_like.ranking import Rankings
from aprec_like.training.checkpoints import Checkpoints, Variables
from aprec_like.training.cost import NOT_MEASURED, Cost
from aprec_like.training.settings import Training
from aprec_like.training.state import EpochRecord, Progress, TrainingState
from aprec_like.training.step import Steps

MAX_STEPS_PER_CALL, SECONDS_PER_CALL = 16, 0.25
"""Steps of one call, after which the loss is read, which waits for the device: fewer where steps are slow, so that a
stop or the time limit does not have to wait."""

SECONDS_BETWEEN_SAVES = 180
"""Seconds between saves within an epoch; the state is saved after every epoch as well."""

FAST_SAVE_SECONDS, MAX_SHARE_OF_SAVES = 1.0, 0.02
"""Saves slower than 1 s are limited to 2 % of training time."""


@dataclass(frozen=True, eq=False)
class TrainingControl:
    """Limits, checkpoints, stopping and callbacks of a training.

    Args:
        time_limit: seconds of training, over all restarts, after which the current epoch ends with its validation and
            training ends.
        checkpoints: where the state is saved; `None` for a temporary folder and no resuming.
        is_stopping: called every few steps (at most 16, for about 0.25 s) and between chunks of validation users; once
            it returns True, the state is saved and `StoppedError` raised.
        read_cost: returns what this process has used so far; differences are added up over restarts.
        on_start: called before the first step of this process, with the completed epochs and the number of completed
            steps of the current one.
        on_step: called every few steps.
        on_validation: called with the rankings of every validation.
        on_epoch: called after every epoch.
        validation_depth: number of top items in the rankings of `on_validation`; 0 computes the ranks only.
    """

    time_limit: float = math.inf
    checkpoints: Checkpoints | None = None
    is_stopping: Callable[[], bool] = lambda: False
    read_cost: Callable[[], Cost] = lambda: NOT_MEASURED
    on_start: Callable[[Sequence[EpochRecord], int], None] = lambda history, step: None
    on_step: Callable[[Progress], None] = lambda progress: None
    on_validation: Callable[[Rankings], None] = lambda rankings: None
    on_epoch: Callable[[EpochRecord], None] = lambda record: None
    validation_depth: int = 0


class EpochLoop:
    """Runs a training from its saved state, or from the beginning, to its end or the next stop.

    Args:
        control: limits, stopping and callbacks.
        checkpoints: where the state is saved.
        max_steps_per_call: steps of one call; fewer where steps are slow.
    """

    def __init__(
        self, control: TrainingControl, checkpoints: Checkpoints, max_steps_per_call: int = MAX_STEPS_PER_CALL
    ) -> None:
        self.control, self.checkpoints, self.max_steps_per_call = control, checkpoints, max_steps_per_call
        self._saved = checkpoints.load()
        self.state = TrainingState.from_json(self._saved.state) if self._saved else TrainingState()
        self.seconds_before, self.cost_before = self.state.seconds, self.state.cost
        self._cost_at_start = control.read_cost()
        self.weights: Variables = {}
        self.variables: Variables = {}
        self._started = time.monotonic() - self.state.seconds
        self._saved_at = time.monotonic()
        self._save_seconds = 0.0
        self._num_steps_in_time = 1
        self._is_cut = False

    def reopen(self, training: Training) -> None:
        """Go on with a finished training whose limits have grown; raises `InputError` if they have shrunk."""
        state = self.state
        reason = self._reason_to_stop(training) if state.history else None
        patience = training.early_stopping.patience if training.early_stopping else None
        if state.ended_earlier_with(training.max_epochs, patience):
            raise InputError(
                f"the checkpoint is of {len(state.history)} epochs, longer than max_epochs and patience allow now; "
                f"--fresh trains from the beginning"
            )
        if state.stopped_by and reason != "time_limit":
            state.stopped_by = reason

    def restore(self, weights: list[Any], optimizer_variables: list[Any]) -> None:
        """Register the variables that checkpoints hold, and restore their saved values, if any."""
        self.weights = _by_name("weights", weights)
        self.variables = self.weights | _by_name("optimizer", optimizer_variables)
        if self._saved:
            self._saved.restore(self.variables)
            self.checkpoints.log(
                f"is already trained: {len(self.state.history)} epochs"
                if self.state.stopped_by
                else f"resumes from epoch {self.state.epoch}, step {self.state.step}"
            )

    @property
    def seconds(self) -> float:
        """Seconds of training so far, over all restarts."""
        return time.monotonic() - self._started

    @property
    def is_time_over(self) -> bool:
        """Whether the time limit is reached."""
        return self.seconds >= self.control.time_limit

    def is_save_due(self, seconds: float) -> bool:
        """Whether the last save is at least `seconds` ago; longer where saves are slow."""
        if self._save_seconds > FAST_SAVE_SECONDS:
            seconds = max(seconds, self._save_seconds / MAX_SHARE_OF_SAVES)
        return time.monotonic() - self._saved_at >= seconds

    def save(self) -> None:
        """Save the state and all variables."""
        started = time.monotonic()
        self.state.seconds = self.seconds
        self.state.cost = self.cost_before + (self.control.read_cost() - self._cost_at_start)
        self.checkpoints.save(self.state.as_json(), self.variables)
        self._saved_at = time.monotonic()
        self._save_seconds = self._saved_at - started

    def stop_if_requested(self) -> None:
        """Save and raise `StoppedError` if a stop was requested."""
        if self.control.is_stopping():
            self.save()
            raise StoppedError(f"in epoch {self.state.epoch}, after step {self.state.step}")

    def run_epoch(self, steps: Steps, num_steps: int) -> float:
        """Run the remaining steps of the current epoch, or until the time limit; returns the mean loss of the epoch."""
        state = self.state
        while state.step < num_steps and not (state.step and self.is_time_over):
            first = (state.epoch - 1) * num_steps + state.step
            to_report = MAX_STEPS_PER_CALL - state.step % MAX_STEPS_PER_CALL
            number = min(self._num_steps_in_time, self.max_steps_per_call, to_report, num_steps - state.step)
            started = time.monotonic()
            state.loss_total = float(
                steps(tf.constant(first, tf.int64), tf.constant(number, tf.int64), tf.constant(state.loss_total))
            )
            self._num_steps_in_time = max(1, int(number * SECONDS_PER_CALL / (time.monotonic() - started)))
            state.step += number
            if not math.isfinite(state.loss_total):
                raise NotFiniteError(f"the loss is not finite in epoch {state.epoch}; a smaller learning rate may help")
            is_saving = self.control.is_stopping() or self.is_save_due(SECONDS_BETWEEN_SAVES)
            is_last = state.step == num_steps or self.is_time_over
            if is_saving or is_last or state.step % MAX_STEPS_PER_CALL == 0:
                mean = state.loss_total / state.step
                self.control.on_step(Progress(state.epoch, state.step, num_steps, mean, self.seconds, state.best))
            if is_saving:
                self.stop_if_requested()
                self.save()
            if is_last:
                break
        self._is_cut = state.step < num_steps
        if self._is_cut:  # a larger time limit goes on from here
            self.save()
        return state.loss_total / state.step

    def end_epoch(self, loss: float, validation: float | None, training: Training) -> None:
        """Record the current epoch, save its weights if it is the best, save the state, decide whether to stop."""
        state = self.state
        is_best = validation is not None and state.is_improved_by(validation)
        if is_best:
            state.best_weights = self.checkpoints.save_best(state.epoch, self.weights)
        record = EpochRecord(state.epoch, loss, validation, is_best, self.seconds)
        state.add_epoch(record)
        state.stopped_by = self._reason_to_stop(training)
        if not self._is_cut and (state.stopped_by or self.is_save_due(0.0)):
            self.save()
        self.control.on_epoch(record)

    def _reason_to_stop(self, training: Training) -> str | None:
        if self.is_time_over:
            return "time_limit"
        if training.early_stopping and self.state.is_patience_over(training.early_stopping.patience):
            return "early_stopping"
        return "max_epochs" if len(self.state.history) >= training.max_epochs else None

    def restore_best_weights(self) -> None:
        """Assign the weights of the best epoch; without validation the network keeps the last ones."""
        if self.state.best_weights:
            self.checkpoints.restore_best(self.state.best_weights, self.weights)


def save_seconds(weights: list[Any], optimizer_variables: list[Any], folder: Path) -> float:
    """Measure the seconds to save the state and the best weights once, in an empty folder (for benchmarks)."""
    loop = EpochLoop(TrainingControl(), Checkpoints(folder, fingerprint={}))
    loop.restore(weights, optimizer_variables)
    started = time.monotonic()
    loop.state.best_weights = loop.checkpoints.save_best(loop.state.epoch, loop.weights)
    loop.save()
    return time.monotonic() - started


def _by_name(prefix: str, variables: list[Any]) -> dict[str, Any]:
    """Name variables by their index, which is the same in every process."""
    return {f"{prefix}/{index:04}": variable for index, variable in enumerate(variables)}
