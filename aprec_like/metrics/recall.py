"""Recall."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from aprec_like.metrics.base import CutoffMetric
from aprec_like.types import Array


@dataclass(frozen=True)
class Recall(CutoffMetric):
    """Recall@k with one target per user: 1 if the target is among the first k (also called Hit@k)."""

    def _gain(self, ranks: Array) -> Array:
        return np.ones_like(ranks)
