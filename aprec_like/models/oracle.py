"""Oracle: the best possible ranking of simulated data, by the true probabilities."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from typing_extensions import override

from aprec_like.datasets import Simulated
from aprec_like.datasets.simulated.true_probabilities import TrueProbabilities
from aprec_like.interactions import Histories, Interactions
from aprec_like.models.base import CountingModel, Scorer
from aprec_like.types import Array

SMALLEST_PROBABILITY = 1e-30
"""Replaces the zero probability of items that cannot come next, so that scores are finite."""


@dataclass(frozen=True)
class Oracle(CountingModel):
    """Ranks by the true probability of the next item: an upper bound, not a model to compare with.

    Args:
        dataset: the recipe's simulated dataset.
    """

    dataset: Simulated

    def __post_init__(self) -> None:
        self.dataset.true_probabilities()  # refuses catalogues that are too large

    @override
    def fit(self, known: Interactions) -> Scorer:
        return OracleScorer(self.dataset.true_probabilities())


@dataclass(frozen=True, eq=False)
class OracleScorer(Scorer):
    """Scores every item by log P(item | history)."""

    truth: TrueProbabilities

    @override
    def score(self, histories: Histories) -> Array:
        probabilities = self.truth.probabilities(histories)
        return np.log(np.maximum(probabilities, SMALLEST_PROBABILITY)).astype(np.float32)
