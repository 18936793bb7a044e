"""Ranges of settings that a search chooses from: numbers, whole numbers, and choices."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

from typing_extensions import override

from aprec_like.settings import check_tuple


@dataclass(frozen=True)
class SearchRange:
    """Base class of ranges of numbers, both ends included.

    Args:
        low: smallest value.
        high: largest value.
    """

    low: float
    high: float

    def __post_init__(self) -> None:
        name = type(self).__name__
        for value in (self.low, self.high):
            if isinstance(value, bool) or not isinstance(value, (int, float)) or not math.isfinite(value):
                raise TypeError(f"{name} needs finite numbers. Received: {value!r}")
        if not self.low < self.high:
            raise ValueError(f"{name} needs low < high. Received: low={self.low!r}, high={self.high!r}")

    @property
    def num_values(self) -> int | None:
        """Number of values; `None` if it is not finite."""
        return None

    @property
    def examples(self) -> tuple[Any, ...]:
        """Values at the ends, with which the range is checked."""
        return (self.low, self.high)

    def holds(self, value: object) -> bool:
        """Return whether a value lies in the range."""
        is_number = isinstance(value, (int, float)) and not isinstance(value, bool)
        return is_number and self.low <= float(value) <= self.high  # type: ignore[arg-type]

    def __str__(self) -> str:
        return f"{self.low:g} to {self.high:g}"


@dataclass(frozen=True)
class Uniform(SearchRange):
    """All numbers between two."""


@dataclass(frozen=True)
class LogUniform(SearchRange):
    """All numbers between two positive ones, uniform in their logarithm, as learning rates are searched.

    Example:
        >>> str(LogUniform(1e-4, 1e-2))
        '0.0001 to 0.01 (log)'
    """

    def __post_init__(self) -> None:
        super().__post_init__()
        if not self.low > 0:
            raise ValueError(f"LogUniform needs positive numbers. Received: low={self.low!r}")

    def __str__(self) -> str:
        return f"{super().__str__()} (log)"


@dataclass(frozen=True)
class Integers(SearchRange):
    """Whole numbers from `low` to at most `high`.

    Args:
        low: smallest value.
        high: largest value.
        step: difference between neighbours.

    Example:
        >>> Integers(16, 64, step=16).num_values
        4
    """

    low: int
    high: int
    step: int = 1

    def __post_init__(self) -> None:
        super().__post_init__()
        for value in (self.low, self.high, self.step):
            if not isinstance(value, int):
                raise TypeError(f"{type(self).__name__} needs whole numbers. Received: {value!r}")
        if self.step < 1:
            raise ValueError(f"{type(self).__name__} needs a step of at least 1. Received: step={self.step}")

    @property
    @override
    def num_values(self) -> int:
        return (self.high - self.low) // self.step + 1

    @property
    @override
    def examples(self) -> tuple[Any, ...]:
        return (self.low, self.low + (self.num_values - 1) * self.step)

    @override
    def holds(self, value: object) -> bool:
        return isinstance(value, int) and super().holds(value) and (value - self.low) % self.step == 0

    def __str__(self) -> str:
        return super().__str__() + (f" by {self.step}" if self.step > 1 else "")


@dataclass(frozen=True)
class LogIntegers(SearchRange):
    """Whole numbers between two positive ones, uniform in their logarithm, as numbers of negatives are searched."""

    low: int
    high: int

    def __post_init__(self) -> None:
        Integers(self.low, self.high)
        if self.low < 1:
            raise ValueError(f"LogIntegers needs positive numbers. Received: low={self.low!r}")

    @property
    @override
    def num_values(self) -> int:
        return self.high - self.low + 1

    @override
    def holds(self, value: object) -> bool:
        return isinstance(value, int) and super().holds(value)

    def __str__(self) -> str:
        return f"{super().__str__()} (log)"


@dataclass(frozen=True)
class Choice:
    """A few values of any kind: numbers, texts, or settings such as optimisers and losses.

    Args:
        values: at least two, all different.

    Example:
        >>> str(Choice((50, 100, 200)))
        'one of 50, 100, 200'
    """

    values: tuple[Any, ...]

    def __post_init__(self) -> None:
        check_tuple("Choice", "values", self.values)
        if len(self.values) < 2 or len(set(map(repr, self.values))) < len(self.values):
            raise ValueError(f"Choice needs at least two different values. Received: values={self.values!r}")

    @property
    def num_values(self) -> int:
        """Number of values."""
        return len(self.values)

    @property
    def examples(self) -> tuple[Any, ...]:
        """The values."""
        return tuple(self.values)

    def holds(self, value: object) -> bool:
        """Return whether a value is one of the choices."""
        return value in self.values

    def __str__(self) -> str:
        return f"one of {', '.join(map(str, self.values))}"


Range = SearchRange | Choice
"""Any range."""
