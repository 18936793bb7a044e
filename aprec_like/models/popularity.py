"""Popularity: a baseline that ranks items by their number of interactions."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from typing_extensions import override

from aprec_like.interactions import Interactions
from aprec_like.models.base import CommonScorer, CountingModel, Scorer
from aprec_like.types import Array


@dataclass(frozen=True)
class Popularity(CountingModel):
    """Ranks items by their number of interactions, the same for all users; repeats count every time."""

    @override
    def fit(self, known: Interactions) -> Scorer:
        return PopularityScorer(known.item_counts())


@dataclass(frozen=True, eq=False)
class PopularityScorer(CommonScorer):
    """Scores every item by its count.

    Args:
        counts: (num_items,) interactions of each item.
    """

    counts: Array

    @property
    @override
    def common_scores(self) -> Array:
        return self.counts.astype(np.float32)
