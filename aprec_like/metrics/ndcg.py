"""Normalised discounted cumulative gain."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from aprec_like.metrics.base import CutoffMetric
from aprec_like.types import Array


@dataclass(frozen=True)
class NDCG(CutoffMetric):
    """NDCG@k with one target per user: 1 / log2(rank + 1), so 1 at rank 1, 0.5 at rank 3."""

    def _gain(self, ranks: Array) -> Array:
        return 1 / np.log2(ranks + 1)
