"""Settings of learning rate schedules, and the Keras schedules that they build."""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import Any

import keras
from typing_extensions import override


@dataclass(frozen=True)
class Schedule(ABC):
    """A learning rate that changes with the number of the step. Subclasses are frozen dataclasses.

    Args:
        learning_rate: the largest learning rate.
        num_steps: number of steps after which it no longer changes.
    """

    learning_rate: float
    num_steps: int

    def __post_init__(self) -> None:
        if not self.learning_rate > 0 or self.num_steps < 2:
            raise ValueError(
                f"{type(self).__name__} needs a positive learning_rate and num_steps of at least 2. "
                f"Received: learning_rate={self.learning_rate}, num_steps={self.num_steps}"
            )

    @abstractmethod
    def build(self) -> Any:
        """Build the Keras schedule."""


@dataclass(frozen=True)
class WarmUp(Schedule):
    """A learning rate that rises linearly from learning_rate / num_steps and then stays.

    Example:
        >>> schedule = WarmUp(learning_rate=0.1, num_steps=10).build()
        >>> [round(float(schedule(step)), 4) for step in (0, 4, 9, 50)]
        [0.01, 0.05, 0.1, 0.1]
    """

    @override
    def build(self) -> Any:
        first = self.learning_rate / self.num_steps
        return keras.optimizers.schedules.PolynomialDecay(first, self.num_steps - 1, self.learning_rate)


@dataclass(frozen=True)
class CosineDecay(Schedule):
    """A learning rate that falls along half a cosine to `final_share` of itself, after a linear rise from 0.

    Args:
        learning_rate: the largest learning rate.
        num_steps: number of steps of rise and fall together.
        warmup_steps: number of steps of the rise.
        final_share: last learning rate as a share of the largest.

    Example:
        >>> schedule = CosineDecay(learning_rate=0.1, num_steps=100, warmup_steps=20).build()
        >>> [round(float(schedule(step)), 4) for step in (10, 20, 60, 100)]
        [0.05, 0.1, 0.05, 0.0]
    """

    warmup_steps: int = 0
    final_share: float = 0.0

    def __post_init__(self) -> None:
        super().__post_init__()
        if not 0 <= self.warmup_steps < self.num_steps or not 0 <= self.final_share <= 1:
            raise ValueError(
                f"CosineDecay needs 0 <= warmup_steps < num_steps and 0 <= final_share <= 1. Received: {self}"
            )

    @override
    def build(self) -> Any:
        decay, warmup_steps = keras.optimizers.schedules.CosineDecay, self.warmup_steps
        if warmup_steps == 0:
            return decay(self.learning_rate, self.num_steps, alpha=self.final_share)
        num_steps, share = self.num_steps - warmup_steps, self.final_share
        return decay(0.0, num_steps, alpha=share, warmup_target=self.learning_rate, warmup_steps=warmup_steps)


def learning_rate_at(setting: float | Schedule, step: int) -> float:
    """Return the learning rate of a step, counted from 0; a number is the rate of all steps."""
    return float(setting.build()(step)) if isinstance(setting, Schedule) else setting
