"""Base classes of metrics, which give each user a value from the rank of the user's one target."""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass

import numpy as np
from typing_extensions import override

from aprec_like.types import Array


@dataclass(frozen=True)
class Metric(ABC):
    """Metric of the rank of the target; its `str()` is its name in every table and on the command line.

    Rank 1 is the best; tied items share the mean of their ranks; a target that cannot be ranked has an infinite rank
    and is a miss.
    """

    def per_user(self, ranks: Array) -> Array:
        """Return (users,) float64 values from (users,) ranks."""
        ranks = np.asarray(ranks, np.float64)
        if ranks.size and not ranks.min() >= 1:
            raise ValueError(f"Ranks must be at least 1. Received: {ranks.min()}")
        return self._values(ranks)

    @abstractmethod
    def _values(self, ranks: Array) -> Array: ...


def check_cutoff(metric: Metric, k: object) -> None:
    """Raise `ValueError` unless a metric's cutoff is an integer of at least 1."""
    if not isinstance(k, int) or isinstance(k, bool) or k < 1:
        raise ValueError(f"{type(metric).__name__} needs an integer k of at least 1. Received: k={k!r}")


@dataclass(frozen=True)
class CutoffMetric(Metric):
    """Metric of the first `k` items, which is 0 for targets below them.

    Args:
        k: cutoff; a target counts if its rank is at most `k`.
    """

    k: int

    def __post_init__(self) -> None:
        check_cutoff(self, self.k)

    def __str__(self) -> str:
        return f"{type(self).__name__}@{self.k}"

    @override
    def _values(self, ranks: Array) -> Array:
        return np.where(ranks <= self.k, self._gain(ranks), 0.0)

    @abstractmethod
    def _gain(self, ranks: Array) -> Array:
        """Return the values of targets at ranks within the first `k`."""
