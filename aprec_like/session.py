"""The steps of a training, one after the other, with their saves: what makes it go on from anywhere."""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Iterator
from typing import Any

import tensorflow as tf

from aprec_like.batches import Batch, Tensor
from aprec_like.checkpoints import Checkpoints, Variables
from aprec_like.ranking import NotFiniteError
from aprec_like.training_state import EpochRecord, Progress, TrainingState

Step = Callable[[Batch, Tensor], Tensor]

STEPS_BETWEEN_LOOKS = 16
"""How often the loss is brought to the host, which waits for the device."""

SECONDS_BETWEEN_SAVES = 180
"""How much of a long epoch can be lost at the most; the state is saved after every epoch as well."""

QUICK_SAVE, SHARE_OF_SAVES = 1.0, 0.02
"""A save of more than a second, of a model of gigabytes, waits until it is no more than this share of the time."""


class StoppedError(Exception):
    """Training was asked to stop and has saved its state."""


class Session:
    """A training from one start to its end or to the next stop.

    Args:
        state: where it goes on.
        variables: the arrays of the state.
        checkpoints: where both are kept.
        time_limit: seconds of training, over all its starts.
        is_stopping: whether to save and leave.
    """

    def __init__(
        self,
        state: TrainingState,
        variables: Variables,
        checkpoints: Checkpoints,
        time_limit: float,
        is_stopping: Callable[[], bool],
    ) -> None:
        self.state, self.variables, self.checkpoints = state, variables, checkpoints
        self.time_limit, self.is_stopping = time_limit, is_stopping
        self.started = time.monotonic() - state.seconds
        self.saved_at = time.monotonic()
        self.seconds_of_save = 0.0

    @property
    def seconds(self) -> float:
        """Of training so far, over all its starts."""
        return time.monotonic() - self.started

    @property
    def is_time_over(self) -> bool:
        """Whether the time limit is reached."""
        return self.seconds >= self.time_limit

    def is_save_due(self, seconds: float) -> bool:
        """Whether the last save was so many seconds ago, or more if saves take long."""
        if self.seconds_of_save > QUICK_SAVE:
            seconds = max(seconds, self.seconds_of_save / SHARE_OF_SAVES)
        return time.monotonic() - self.saved_at >= seconds

    def save(self) -> None:
        """Keep the state."""
        started = time.monotonic()
        self.state.seconds = self.seconds
        self.checkpoints.save(self.state.as_json(), self.variables)
        self.saved_at = time.monotonic()
        self.seconds_of_save = self.saved_at - started

    def heed(self) -> None:
        """Save and leave if asked to."""
        if self.is_stopping():
            self.save()
            raise StoppedError(f"in epoch {self.state.epoch}, after step {self.state.step}")

    def run_epoch(self, step: Step, batches: Iterator[Batch], steps: int, on_step: Callable[[Progress], None]) -> float:
        """The mean loss of the epoch under way, cut short at the time limit."""
        state = self.state
        total = tf.constant(state.loss_total, tf.float32)
        while state.step < steps:
            number = (state.epoch - 1) * steps + state.step
            total += step(next(batches), tf.constant(number, tf.int64))
            state.step += 1
            is_saving = self.is_stopping() or self.is_save_due(SECONDS_BETWEEN_SAVES)
            is_last = state.step == steps or self.is_time_over
            if is_saving or is_last or state.step % STEPS_BETWEEN_LOOKS == 0:
                state.loss_total = float(total)
                if not math.isfinite(state.loss_total):
                    raise NotFiniteError(
                        f"the loss is not finite in epoch {state.epoch}; a smaller learning rate may help"
                    )
                mean = state.loss_total / state.step
                on_step(Progress(state.epoch, state.step, steps, mean, self.seconds, state.best))
            if is_saving:
                self.heed()
                self.save()
            if is_last:
                break
        return state.loss_total / state.step

    def end_epoch(self, loss: float, validation: float | None, weights: Variables) -> EpochRecord:
        """Enter the epoch under way into the history, keep its weights if it is the best, and begin the next."""
        state = self.state
        is_best = validation is not None and state.is_improved_by(validation)
        if is_best:
            state.best_weights = self.checkpoints.save_best(state.epoch, weights)
        record = EpochRecord(state.epoch, loss, validation, is_best, self.seconds)
        state.add_epoch(record)
        return record


def named_variables(prefix: str, variables: list[Any]) -> dict[str, Any]:
    """Variables by names that are the same in every process."""
    return {f"{prefix}/{number:04}": variable for number, variable in enumerate(variables)}
