"""Mean reciprocal rank."""

from __future__ import annotations

from dataclasses import dataclass

from typing_extensions import override

from aprec_like.metrics.base import Metric
from aprec_like.types import Array


@dataclass(frozen=True)
class MRR(Metric):
    """Reciprocal rank of the target over the whole ranking, without a cutoff; 0 for a target without a rank.

    Example:
        >>> import numpy as np
        >>> MRR().per_user(np.array([1, 2, 4, np.inf])).tolist()
        [1.0, 0.5, 0.25, 0.0]
    """

    def __str__(self) -> str:
        return "MRR"

    @override
    def _values(self, ranks: Array) -> Array:
        return 1 / ranks
