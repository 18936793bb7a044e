"""Oracle: the best possible ranking of simulated data."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from aprec_like.datasets import Simulated
from aprec_like.datasets.simulated.truth import Truth
from aprec_like.interactions import Histories, Interactions
from aprec_like.models.base import CountingModel, Scorer
from aprec_like.types import Array

SMALLEST_PROBABILITY = 1e-30
"""Stands for the zero of items that cannot come next, so that scores are finite."""


@dataclass(frozen=True)
class Oracle(CountingModel):
    """Ranks by the true probability of the next item. A bound for the table, not a competitor.

    Args:
        dataset: the simulated data that is ranked; the recipe's own.
    """

    dataset: Simulated

    def __post_init__(self) -> None:
        self.dataset.truth()  # refuses catalogues that are too large

    def fit(self, known: Interactions) -> Scorer:
        """There is nothing to learn."""
        return OracleScorer(self.dataset.truth())


@dataclass(frozen=True, eq=False)
class OracleScorer(Scorer):
    """Scores every item by the logarithm of its true probability."""

    truth: Truth

    def score(self, histories: Histories) -> Array:
        """(users, num_items) log P(i | history)."""
        probabilities = self.truth.probabilities(histories)
        return np.log(np.maximum(probabilities, SMALLEST_PROBABILITY)).astype(np.float32)
