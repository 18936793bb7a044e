"""Precision."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from aprec_like.metrics.base import CutoffMetric
from aprec_like.types import Array


@dataclass(frozen=True)
class Precision(CutoffMetric):
    """Precision@k with one target per user: 1 / k if the target is among the first k."""

    def _gain(self, ranks: Array) -> Array:
        return np.full_like(ranks, 1 / self.k)
