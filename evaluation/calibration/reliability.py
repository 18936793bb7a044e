"""How often predictions came true, counted in parts of the users, so that millions of users need no more memory.

Needs no TensorFlow.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from aprec_like.out_of_core import release, slices
from aprec_like.types import Array

NUM_BINS = 20
PART_SIZE = 1 << 22
"""Predictions that are processed at once."""
NUM_LEVELS, LEVEL_SHIFT = 1 << 20, 11
"""Probabilities of which the upper bits as 32-bit floats are equal, to about 1 part in 4,096, share a bin."""


@dataclass(frozen=True, eq=False)
class Predictions:
    """Predicted probabilities of every user's top items, and which of these items came next.

    Args:
        probabilities: (users, depth) predicted probabilities, best items first; NaN where a user has fewer.
        is_target: (users, depth) whether the item was the one that came next.
    """

    probabilities: Array
    is_target: Array

    def parts(self) -> Iterator[tuple[Array, Array]]:
        """Yield probabilities and `is_target` of consecutive users."""
        num_users, depth = self.probabilities.shape
        for users in slices(num_users, max(1, PART_SIZE // max(1, depth))):
            yield self.probabilities[users], self.is_target[users]
            release(self.probabilities, self.is_target)


def confidence_curve(predictions: Predictions) -> tuple[Array, Array]:
    """Return (depth,) mean predicted probability of the top K items and (depth,) mean Precision@K, K = 1, 2, ..."""
    num_users, depth = predictions.probabilities.shape
    sums, counts, hits = np.zeros(depth), np.zeros(depth, np.int64), np.zeros(depth, np.int64)
    for probabilities, is_target in predictions.parts():
        sums += np.nansum(probabilities, axis=0, dtype=np.float64)
        counts += np.count_nonzero(~np.isnan(probabilities), axis=0)
        hits += np.count_nonzero(is_target, axis=0)
    return np.cumsum(sums) / np.cumsum(counts), np.cumsum(hits) / (num_users * np.arange(1, depth + 1))


@dataclass(frozen=True, eq=False)
class Reliability:
    """Predictions in bins of about equal size, from the least to the most confident.

    Args:
        predicted: (bins,) mean predicted probability.
        observed: (bins,) share of the predicted items that came next.
        low, high: (bins,) Wilson's 95 % interval of `observed`.
        counts: (bins,) number of predictions.
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
    """Return how often predictions of each level came true; equal probabilities are in the same bin."""
    from statsmodels.stats.proportion import proportion_confint  # slow to import, and only reports need it

    counts, hits, sums = np.zeros(NUM_LEVELS, np.int64), np.zeros(NUM_LEVELS, np.int64), np.zeros(NUM_LEVELS)
    for probabilities, is_target in predictions.parts():
        is_item = ~np.isnan(probabilities)
        values = probabilities[is_item]
        levels = (values.astype(np.float32).view(np.uint32) >> LEVEL_SHIFT).astype(np.int64)
        counts += np.bincount(levels, minlength=NUM_LEVELS)
        hits += np.bincount(levels[is_target[is_item]], minlength=NUM_LEVELS)
        sums += np.bincount(levels, values, NUM_LEVELS)
    middles = np.cumsum(counts) - counts / 2
    bins = np.minimum(middles * num_bins // max(1, counts.sum()), num_bins - 1).astype(np.int64)
    counts, hits, sums = (_sum_by_bin(bins, each, num_bins) for each in (counts, hits, sums))
    is_used = counts > 0
    counts, hits, sums = counts[is_used], hits[is_used], sums[is_used]
    low, high = proportion_confint(hits, counts, alpha=0.05, method="wilson")
    return Reliability(sums / counts, hits / counts, low, high, counts)


def _sum_by_bin(bins: Array, values: Array, num_bins: int) -> Array:
    return np.bincount(bins, values, num_bins).astype(values.dtype)
