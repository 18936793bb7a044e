"""Popularity: the row that every table needs."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from aprec_like.interactions import Interactions
from aprec_like.models.base import CommonScorer, CountingModel, Scorer
from aprec_like.types import Array


@dataclass(frozen=True)
class Popularity(CountingModel):
    """Ranks items by how often they occur, the same for everyone; repeats count each time."""

    def fit(self, known: Interactions) -> Scorer:
        """Count."""
        return PopularityScorer(known.item_counts())


@dataclass(frozen=True, eq=False)
class PopularityScorer(CommonScorer):
    """Scores every item by its count.

    Args:
        counts: (num_items,).
    """

    counts: Array

    @property
    def common_scores(self) -> Array:
        """The counts."""
        return self.counts.astype(np.float32)
