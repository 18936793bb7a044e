"""Normalised discounted cumulative gain."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from typing_extensions import override

from aprec_like.metrics.base import CutoffMetric
from aprec_like.types import Array


@dataclass(frozen=True)
class NDCG(CutoffMetric):
    """NDCG@k with one target per user: 1 / log2(rank + 1) if the target is among the first k.

    Args:
        k: cutoff.

    Example:
        >>> import numpy as np
        >>> NDCG(10).per_user(np.array([1, 3, 7, 11])).round(4).tolist()
        [1.0, 0.5, 0.3333, 0.0]
    """

    @override
    def _gain(self, ranks: Array) -> Array:
        return 1 / np.log2(ranks + 1)
