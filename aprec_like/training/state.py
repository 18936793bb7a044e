"""The state of a training: epoch, step, history and best epoch; what a checkpoint holds besides arrays."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from typing import Any

from aprec_like.training.cost import NO_COST, NOT_MEASURED, Cost


@dataclass(frozen=True)
class EpochRecord:
    """One row of a training history.

    Args:
        epoch: number of the epoch, from 1.
        loss: mean loss of its steps.
        validation: value of the early stopping metric, if there is validation.
        is_best: whether it is the best epoch so far.
        seconds: from the start of training to the end of this epoch's validation, over all restarts.
    """

    epoch: int
    loss: float
    validation: float | None
    is_best: bool
    seconds: float


@dataclass
class TrainingState:
    """The state of a training.

    Args:
        epoch: number of the current epoch, from 1.
        step: number of completed steps of the current epoch.
        loss_total: sum of the losses of these steps; a float32 number, which JSON stores exactly.
        seconds: seconds of training so far, over all restarts.
        cost: cost of training so far, over all restarts; saved states of earlier versions do not know it.
        history: the completed epochs.
        best_weights: name of the file with the weights of the best epoch, if any.
        stopped_by: what ended training; `None` before its end.
    """

    epoch: int = 1
    step: int = 0
    loss_total: float = 0.0
    seconds: float = 0.0
    cost: Cost = NO_COST
    history: list[EpochRecord] = field(default_factory=list)
    best_weights: str | None = None
    stopped_by: str | None = None

    @classmethod
    def from_json(cls, values: Mapping[str, Any]) -> TrainingState:
        """Restore a state from the values of `as_json`."""
        history = [EpochRecord(**record) for record in values["history"]]
        cost = Cost(**values["cost"]) if "cost" in values else NOT_MEASURED
        return cls(**{**values, "history": history, "cost": cost})

    def as_json(self) -> dict[str, Any]:
        """The state as JSON values, which are restored exactly."""
        return asdict(self)

    @property
    def best(self) -> EpochRecord | None:
        """The best epoch so far; `None` before the first or without validation."""
        return next((record for record in reversed(self.history) if record.is_best), None)

    def is_improved_by(self, validation: float) -> bool:
        """Return whether a validation value is greater than that of the best epoch."""
        return self.best is None or self.best.validation is None or validation > self.best.validation

    def add_epoch(self, record: EpochRecord) -> None:
        """Add the current epoch to the history and begin the next one."""
        self.history.append(record)
        self.epoch, self.step, self.loss_total = record.epoch + 1, 0, 0.0

    def ended_earlier_with(self, max_epochs: int, patience: int | None) -> bool:
        """Return whether these limits would have ended training before its last completed epoch."""
        best: int | None = None
        for record in self.history[:-1]:
            best = record.epoch if record.is_best else best
            if patience is not None and best is not None and record.epoch - best >= patience:
                return True
        return len(self.history) > max_epochs

    def is_patience_over(self, patience: int) -> bool:
        """Return whether at least `patience` epochs have passed since the best one."""
        return self.best is not None and len(self.history) - self.best.epoch >= patience


@dataclass(frozen=True)
class Progress:
    """The progress of a training, for a display.

    Args:
        epoch: number of the current epoch, from 1.
        step: number of completed steps of the current epoch.
        steps_per_epoch: number of steps in an epoch.
        loss: mean loss of the completed steps.
        seconds: seconds of training so far, over all restarts.
        best: the best epoch so far.
    """

    epoch: int
    step: int
    steps_per_epoch: int
    loss: float
    seconds: float
    best: EpochRecord | None
