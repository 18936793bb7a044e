"""Predicted probabilities: their definition for each kind of loss, their optimum, their distance from the truth.

P is the true probability that an item comes next, k the number of negatives, |I| the number of items, alpha the
sampling rate, beta the power of gBCE (1 for BCE). Needs no TensorFlow.
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from dataclasses import dataclass, replace
from typing import ClassVar

import numpy as np
from scipy.special import expit
from typing_extensions import override

from aprec_like.interactions import PADDING
from aprec_like.types import Array

NUM_TOP_ITEMS = 10
"""Number of a user's top items that are compared with known true probabilities."""
MIN_PROBABILITY = 1e-12
"""Lower bound of predicted probabilities in logarithms."""


@dataclass(frozen=True)
class OptimalSigmoid:
    """Sigmoid of the logit that minimises the expected binary loss of an item, as a function of its P.

    If the positive is never sampled, an item is a negative only when it is not the next one, and the optimum is
    beta P / (alpha - alpha P + beta P), which is P itself for t = 1: Theorem 1 of the gSASRec paper. The authors'
    code samples from all items, the positive too, so that an item is a negative k / |I| times on average whatever comes
    next, and the optimum is beta P / (k / |I| + beta P). Negatives that reject a user's whole history come from
    somewhat fewer items; they are treated as if only the positive were rejected.

    Args:
        num_negatives: k.
        num_items: |I|.
        power: beta.
        excludes_positive: whether the item that comes next is never sampled as a negative.

    Example:
        One negative among 101 items, the positive excluded: P = 0.01 becomes 0.01 / (0.01 - 0.0001 + 0.01).

        >>> round(float(OptimalSigmoid(1, 101, power=1.0, excludes_positive=True)(0.01)), 4)
        0.5025
    """

    num_negatives: int
    num_items: int
    power: float
    excludes_positive: bool

    def __call__(self, probability: Array | float) -> Array:
        """Return the optimal sigmoid of items with the true probabilities P in [0, 1]."""
        probability = np.asarray(probability)
        positive = self.power * probability
        if not self.excludes_positive:
            return positive / (self.num_negatives / self.num_items + positive)
        alpha = self.num_negatives / (self.num_items - 1)
        return positive / (alpha - alpha * probability + positive)

    @property
    def theorem_1(self) -> OptimalSigmoid:
        """The optimum of Theorem 1: of the same loss if the positive were never sampled."""
        return replace(self, excludes_positive=True)

    def prior_logit(self) -> float:
        """Return the optimal logit of an item with the prior P = 1 / |I|."""
        sigmoid = float(self(1 / self.num_items))
        return math.log(sigmoid) - math.log1p(-sigmoid)


class Probability(ABC):
    """Predicted probabilities as a function of scores; subclasses are frozen dataclasses."""

    is_sum_bound: ClassVar[bool] = False
    """Whether `catalogue_sums` returns upper bounds, because the sums would need the scores of all items."""

    note: ClassVar[str] = ""
    """Sentence that captions of tables and figures need about these probabilities."""

    @abstractmethod
    def __call__(self, scores: Array, logsumexps: Array) -> Array:
        """Return (users, n) probabilities.

        Args:
            scores: (users, n) scores of some items.
            logsumexps: (users,) log of the sum of exp(score) over the catalogue.
        """

    @abstractmethod
    def catalogue_sums(self, scores: Array, logsumexps: Array, sigmoid_sums: Array) -> Array:
        """Return (users,) sums of the probabilities over the catalogue, or upper bounds (see `is_sum_bound`).

        Args:
            scores: (users, n) scores of the top items, NaN where a user has fewer.
            logsumexps: (users,) log of the sum of exp(score) over the catalogue.
            sigmoid_sums: (users,) sum of sigmoid(score) over the catalogue.
        """

    def seen_shares(self, sigmoid_sums: Array, seen_sigmoid_sums: Array, seen_softmax_sums: Array) -> Array | None:
        """Return (users,) shares of the predicted mass on items of the history; `None` if they are not known.

        Args:
            sigmoid_sums: (users,) sum of sigmoid(score) over the catalogue.
            seen_sigmoid_sums: (users,) sum of sigmoid(score) over the items of the history.
            seen_softmax_sums: (users,) sum of the softmax over the catalogue of the same items.
        """
        return None


@dataclass(frozen=True)
class SigmoidProbability(Probability):
    """Sigmoid of the score, separately for each item: the probability of models trained with a binary loss."""

    @override
    def __call__(self, scores: Array, logsumexps: Array) -> Array:
        return expit(np.asarray(scores, np.float64))

    @override
    def catalogue_sums(self, scores: Array, logsumexps: Array, sigmoid_sums: Array) -> Array:
        return sigmoid_sums

    @override
    def seen_shares(self, sigmoid_sums: Array, seen_sigmoid_sums: Array, seen_softmax_sums: Array) -> Array:
        return seen_sigmoid_sums / sigmoid_sums


@dataclass(frozen=True)
class SoftmaxProbability(Probability):
    """Softmax over the catalogue: the probability of models trained with full softmax; it sums to 1."""

    @override
    def __call__(self, scores: Array, logsumexps: Array) -> Array:
        return np.exp(np.asarray(scores, np.float64) - np.asarray(logsumexps, np.float64)[:, None])

    @override
    def catalogue_sums(self, scores: Array, logsumexps: Array, sigmoid_sums: Array) -> Array:
        return np.ones(len(logsumexps))

    @override
    def seen_shares(self, sigmoid_sums: Array, seen_sigmoid_sums: Array, seen_softmax_sums: Array) -> Array:
        return seen_softmax_sums


@dataclass(frozen=True)
class SampledSoftmaxProbability(Probability):
    """Probability of models trained with sampled softmax: the formula of the loss with expected negatives.

    In training an item competes with k sampled items only. Here it competes with the expectation of k samples:
    e^s / (e^s + k mean(e^s')), where the mean is over the items that can be sampled: all, or all others if the positive
    is excluded. Over the catalogue this sums to far more than 1. With the correction for sampling each sample stands
    for (|I| - 1) / k items, and if the positive is excluded as well this is the softmax.

    Args:
        num_negatives: k.
        num_items: |I|.
        excludes_positive: whether the item that comes next is never sampled as a negative.
        is_corrected: whether samples are weighted by (|I| - 1) / k.
    """

    is_sum_bound: ClassVar[bool] = True
    note: ClassVar[str] = (
        "The probability of sampled softmax is its own formula with k average negatives, e^s / (e^s + k mean e^s'), "
        "corrected where its loss is; ≤ is the largest sum that the stored scores allow."
    )

    num_negatives: int
    num_items: int
    excludes_positive: bool = False
    is_corrected: bool = False

    @override
    def __call__(self, scores: Array, logsumexps: Array) -> Array:
        return self.from_softmax(SoftmaxProbability()(scores, logsumexps))

    @override
    def catalogue_sums(self, scores: Array, logsumexps: Array, sigmoid_sums: Array) -> Array:
        """Return upper bounds: the formula is concave in the softmax, so equal shares of the rest maximise the sum."""
        softmax = SoftmaxProbability()(scores, logsumexps)
        num_others = np.maximum(self.num_items - np.sum(~np.isnan(softmax), axis=1), 1)
        rest = np.maximum(1 - np.nansum(softmax, axis=1), 0)
        return np.nansum(self.from_softmax(softmax), axis=1) + num_others * self.from_softmax(rest / num_others)

    def from_softmax(self, softmax: Array) -> Array:
        """Return the probabilities from those of the softmax over the catalogue, arrays or tensors."""
        num_sampled_from = self.num_items - 1 if self.excludes_positive else self.num_items
        weight = ((self.num_items - 1) if self.is_corrected else self.num_negatives) / num_sampled_from
        return softmax / (softmax + weight * ((1 - softmax) if self.excludes_positive else 1.0))


@dataclass(frozen=True)
class TruthGap:
    """Distance of predicted probabilities p from the true ones; means over users.

    Args:
        top: mean |p - P| of each user's first 10 items.
        catalogue: mean |p - P| of all items.
        divergence: KL(P || p / sum p), which compares the shapes and ignores the sum of p.
        excluded: share of the sum of p on items of the history, which a ranking may exclude.
    """

    top: float
    catalogue: float
    divergence: float
    excluded: float


def truth_gap(predicted: Array, truth: Array, top_items: Array, is_seen: Array) -> TruthGap:
    """Compare predicted and true probabilities.

    Args:
        predicted: (users, items) predicted probabilities.
        truth: (users, items) true probabilities.
        top_items: (users, 10) the first items of each user, PADDING where there are fewer.
        is_seen: (users, items) whether an item is in the user's history.
    """
    distance = np.abs(predicted - truth)
    normalised = np.maximum(predicted / predicted.sum(axis=1, keepdims=True), MIN_PROBABILITY)
    ratios = np.where(truth > 0, truth / normalised, 1.0)
    return TruthGap(
        top=float(np.take_along_axis(distance, np.maximum(top_items, 0), axis=1)[top_items != PADDING].mean()),
        catalogue=float(distance.mean()),
        divergence=float((truth * np.log(ratios)).sum(axis=1).mean()),
        excluded=float(np.mean((predicted * is_seen).sum(axis=1) / predicted.sum(axis=1))),
    )
