"""Recall."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from typing_extensions import override

from aprec_like.metrics.base import CutoffMetric
from aprec_like.types import Array


@dataclass(frozen=True)
class Recall(CutoffMetric):
    """Recall@k with one target per user: 1 if the target is among the first k (also called Hit@k).

    Args:
        k: cutoff.

    Example:
        >>> import numpy as np
        >>> Recall(10).per_user(np.array([1, 10, 11])).tolist()
        [1.0, 1.0, 0.0]
    """

    @override
    def _gain(self, ranks: Array) -> Array:
        return np.ones_like(ranks)
