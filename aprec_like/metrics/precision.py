"""Precision."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from typing_extensions import override

from aprec_like.metrics.base import CutoffMetric
from aprec_like.types import Array


@dataclass(frozen=True)
class Precision(CutoffMetric):
    """Precision@k with one target per user: 1 / k if the target is among the first k.

    Args:
        k: cutoff.

    Example:
        >>> import numpy as np
        >>> Precision(10).per_user(np.array([1, 10, 11])).tolist()
        [0.1, 0.1, 0.0]
    """

    @override
    def _gain(self, ranks: Array) -> Array:
        return np.full_like(ranks, 1 / self.k)
