"""Where a training stands: its place, its history and its best epoch; all that a checkpoint keeps beside the arrays."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from typing import Any


@dataclass(frozen=True)
class EpochRecord:
    """One row of a training history; `seconds` from the start of training to the end of this epoch's validation."""

    epoch: int
    loss: float
    validation: float | None
    is_best: bool
    seconds: float


@dataclass
class TrainingState:
    """Where a training stands.

    Args:
        epoch: the one under way, from 1.
        step: how many steps of it are done.
        loss_total: sum of the losses of these steps; a float32, which JSON keeps exactly.
        seconds: of training so far, over all its starts.
        history: the epochs that are done.
        best_weights: name of the file with the weights of the best epoch, if there is one.
        stopped_by: what ended training; `None` while it goes on.
    """

    epoch: int = 1
    step: int = 0
    loss_total: float = 0.0
    seconds: float = 0.0
    history: list[EpochRecord] = field(default_factory=list)
    best_weights: str | None = None
    stopped_by: str | None = None

    @classmethod
    def from_json(cls, values: Mapping[str, Any]) -> TrainingState:
        """The state that `as_json` described."""
        return cls(**{**values, "history": [EpochRecord(**record) for record in values["history"]]})

    def as_json(self) -> dict[str, Any]:
        """The state as plain values, which JSON keeps exactly."""
        return asdict(self)

    @property
    def best(self) -> EpochRecord | None:
        """The best epoch so far; `None` before the first or without validation."""
        return next((record for record in reversed(self.history) if record.is_best), None)

    def is_improved_by(self, validation: float) -> bool:
        """Whether a value is strictly better than that of the best epoch."""
        return self.best is None or self.best.validation is None or validation > self.best.validation

    def add_epoch(self, record: EpochRecord) -> None:
        """The epoch under way is done; the next begins."""
        self.history.append(record)
        self.epoch, self.step, self.loss_total = record.epoch + 1, 0, 0.0

    def is_patience_over(self, patience: int) -> bool:
        """Whether this many epochs have passed since the best one."""
        return self.best is not None and len(self.history) - self.best.epoch >= patience


@dataclass(frozen=True)
class Progress:
    """Where training stands, for a display.

    Args:
        epoch: the one under way.
        step: how many steps of it are done.
        steps_per_epoch: of how many.
        loss: mean loss of these steps.
        seconds: of training so far, over all its starts.
        best: the best epoch so far.
    """

    epoch: int
    step: int
    steps_per_epoch: int
    loss: float
    seconds: float
    best: EpochRecord | None
