"""Predicted probabilities: what a model's scores say of an item, what came true, and what theory expects of them.

P is the true probability that an item comes next, alpha the sampling rate, beta the power of gBCE (1 for BCE). Needs no
TensorFlow.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
from scipy.special import expit

from aprec_like.interactions import PADDING
from aprec_like.types import Array

if TYPE_CHECKING:
    from aprec_like.losses import BinaryLoss
    from aprec_like.negatives import Negatives

NUM_BINS = 20
TOP = 10
"""How many of a user's best items are compared with a known truth."""
NORMAL_95 = 1.959964
SMALLEST = 1e-12
"""Stands for a predicted probability of zero in a logarithm."""

Probability = Callable[[Array, Array], Array]
"""From (users, n) scores and the (users,) logarithms of the sum of exp(score) over the catalogue to probabilities."""


@dataclass(frozen=True)
class SamplingLaw:
    """What Theorem 1 needs to know of a binary loss and its negatives.

    Args:
        num_negatives: k.
        num_items: |I|.
        power: beta.
        rejects_positive: whether the item that came next is never drawn as a negative.
    """

    num_negatives: int
    num_items: int
    power: float
    rejects_positive: bool

    def optimal_sigmoid(self, probability: Array) -> Array:
        """The sigmoid that minimises the expected loss of an item whose true probability is P; see the function."""
        positive = self.power * probability
        if not self.rejects_positive:
            return positive / (self.num_negatives / self.num_items + positive)
        alpha = self.num_negatives / (self.num_items - 1)
        return positive / (alpha - alpha * probability + positive)


def optimal_sigmoid(
    probability: Array | float, loss: BinaryLoss, num_items: int, negatives: Negatives | None = None
) -> Array | float:
    """The sigmoid that minimises the expected loss of an item whose true probability is P.

    With the positive rejected, an item is a negative only when it is not the next one, and the optimum is
    beta P / (alpha - alpha P + beta P), which is P itself for t = 1 (Theorem 1). The authors' sampler draws any
    item, the positive too, k / |I| times on average whatever comes next: beta P / (k / |I| + beta P). Negatives that
    reject a user's whole history come from somewhat fewer items; they count as if only the positive were rejected.

    Args:
        probability: P, in [0, 1].
        loss: gives k and beta.
        num_items: |I|.
        negatives: the law of the negatives; by default the authors'.
    """
    if negatives is not None and negatives.by_popularity:
        raise ValueError("Theorem 1 does not cover negatives drawn by popularity: there is no closed form")
    rejects_positive = negatives is not None and (negatives.reject_positive or negatives.reject_history)
    law = SamplingLaw(loss.num_negatives, num_items, loss.power(num_items), rejects_positive)
    return law.optimal_sigmoid(np.asarray(probability))


def prior_logit(loss: BinaryLoss, num_items: int, negatives: Negatives | None = None) -> float:
    """The logit of the optimal sigmoid of an item of which nothing is known: P = 1 / |I|."""
    sigmoid = float(optimal_sigmoid(1 / num_items, loss, num_items, negatives))
    return math.log(sigmoid) - math.log1p(-sigmoid)


def sigmoid_probability(scores: Array, logsumexps: Array) -> Array:
    """The probability that a model trained with a binary loss gives: the sigmoid of the score, each item apart."""
    return expit(np.asarray(scores, np.float64))


def softmax_probability(scores: Array, logsumexps: Array) -> Array:
    """The probability that a model trained with softmax gives: it sums to 1 over the catalogue."""
    return np.exp(np.asarray(scores, np.float64) - np.asarray(logsumexps, np.float64)[:, None])


@dataclass(frozen=True)
class SampledSoftmaxProbability:
    """The probability that a model trained with sampled softmax gives: its own formula with expected negatives.

    In training an item competes with k drawn items only. Here it competes with what k draws amount to on average:
    e^s / (e^s + k mean(e^s')), the mean being over the items that may be drawn: all, or all others where the positive
    is rejected. Over the catalogue this sums to far more than 1. With the correction for sampling each draw stands for
    (|I| - 1) / k items, and with the positive rejected too this is the softmax.

    Args:
        num_negatives: k.
        num_items: |I|.
        rejects_positive: whether the item that came next is never drawn as a negative.
        is_corrected: whether draws are weighted by (|I| - 1) / k.
    """

    num_negatives: int
    num_items: int
    rejects_positive: bool = False
    is_corrected: bool = False

    def __call__(self, scores: Array, logsumexps: Array) -> Array:
        """Probabilities of (users, n) scores."""
        return self._of_shares(softmax_probability(scores, logsumexps))

    def largest_sums(self, scores: Array, logsumexps: Array) -> Array:
        """(users,) what the sum over the catalogue can't exceed, from the (users, n) best scores, NaN where fewer.

        The formula is concave in an item's share of the softmax: what is left to the others weighs most in equal parts.
        """
        shares = softmax_probability(scores, logsumexps)
        num_others = np.maximum(self.num_items - np.sum(~np.isnan(shares), axis=1), 1)
        left = np.maximum(1 - np.nansum(shares, axis=1), 0)
        return np.nansum(self._of_shares(shares), axis=1) + num_others * self._of_shares(left / num_others)

    def _of_shares(self, shares: Array) -> Array:
        drawable = self.num_items - 1 if self.rejects_positive else self.num_items
        weight = ((self.num_items - 1) if self.is_corrected else self.num_negatives) / drawable
        return shares / (shares + weight * ((1 - shares) if self.rejects_positive else 1.0))


@dataclass(frozen=True, eq=False)
class Predictions:
    """What a model said of every user's best items, and what came true.

    Args:
        probabilities: (users, depth) predicted, best items first; NaN where a user has fewer.
        is_target: (users, depth) whether the item was the one that came next.
    """

    probabilities: Array
    is_target: Array


def confidence_curve(predictions: Predictions) -> tuple[Array, Array]:
    """(depth,) mean predicted probability of the first K items, and (depth,) mean Precision@K, for K = 1, 2, ..."""
    is_item = ~np.isnan(predictions.probabilities)
    counts = np.cumsum(is_item.sum(axis=0))
    predicted = np.cumsum(np.nansum(predictions.probabilities, axis=0)) / counts
    num_users, depth = predictions.is_target.shape
    precision = np.cumsum(predictions.is_target.sum(axis=0)) / (num_users * np.arange(1, depth + 1))
    return predicted, precision


@dataclass(frozen=True, eq=False)
class Reliability:
    """Predictions in bins of about equal size, from the least to the most confident.

    Args:
        predicted: (bins,) mean predicted probability.
        observed: (bins,) how often it came true.
        low, high: (bins,) Wilson's 95 % interval of `observed`.
        counts: (bins,) how many predictions.
    """

    predicted: Array
    observed: Array
    low: Array
    high: Array
    counts: Array

    @property
    def expected_error(self) -> float:
        """Expected calibration error: the mean distance between predicted and observed, over all predictions."""
        return float(np.average(np.abs(self.predicted - self.observed), weights=self.counts))


def reliability(predictions: Predictions, num_bins: int = NUM_BINS) -> Reliability:
    """How often predictions of each level came true."""
    is_item = ~np.isnan(predictions.probabilities)
    probabilities, came_true = predictions.probabilities[is_item], predictions.is_target[is_item]
    order = np.argsort(probabilities, kind="stable")
    bins = [rows for rows in np.array_split(order, num_bins) if len(rows)]
    counts = np.array([len(rows) for rows in bins])
    observed = np.array([came_true[rows].mean() for rows in bins])
    predicted = np.array([probabilities[rows].mean() for rows in bins])
    square = NORMAL_95**2
    centre = (observed + square / (2 * counts)) / (1 + square / counts)
    half = NORMAL_95 * np.sqrt(observed * (1 - observed) / counts + square / (4 * counts**2)) / (1 + square / counts)
    return Reliability(predicted, observed, np.maximum(0, centre - half), centre + half, counts)


@dataclass(frozen=True)
class TruthGap:
    """How far predicted probabilities are from the true ones; means over users.

    Args:
        top: mean |p - P| of each user's first 10 items.
        catalogue: mean |p - P| of all items.
        divergence: KL(P || p / sum p): what is wrong with the shape, whatever the sum.
    """

    top: float
    catalogue: float
    divergence: float


def truth_gap(predicted: Array, truth: Array, best: Array) -> TruthGap:
    """Compare (users, items) predicted and true probabilities.

    Args:
        predicted: (users, items).
        truth: (users, items).
        best: (users, 10) the first items of each user, PADDING where there are fewer.
    """
    distance = np.abs(predicted - truth)
    shape = np.maximum(predicted / predicted.sum(axis=1, keepdims=True), SMALLEST)
    ratios = np.where(truth > 0, truth / shape, 1.0)
    return TruthGap(
        top=float(np.take_along_axis(distance, np.maximum(best, 0), axis=1)[best != PADDING].mean()),
        catalogue=float(distance.mean()),
        divergence=float((truth * np.log(ratios)).sum(axis=1).mean()),
    )
