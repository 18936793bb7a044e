"""P-values by resampling users: the sign-flip randomisation test and the paired bootstrap.

Metrics of one target take few distinct values, and so do their per-user differences. Flipping the signs of c equal
differences is a binomial draw, and resampling users is a multinomial draw: the same distributions as flipping and
drawing users one by one, at a small fraction of the cost.
"""

from __future__ import annotations

import numpy as np

from aprec_like.types import Array

NUM_RESAMPLES = 10_000
RESAMPLING_SEED = 20_230_918
BINOMIAL_COST = 10
"""A binomial draw takes about as long as drawing this many users."""
MAX_CHUNK_DRAWS = 1 << 22
"""Random numbers that are held in memory at once."""


def randomisation(differences: Array, num_resamples: int = NUM_RESAMPLES, seed: int = RESAMPLING_SEED) -> float:
    """Return the p-value of the sign-flip test: how often random signs give a sum at least as far from zero."""
    random = np.random.default_rng(seed)
    sizes, counts = np.unique(np.abs(differences[differences != 0]), return_counts=True)
    is_single = counts == 1
    single, several, counts = sizes[is_single], sizes[~is_single], counts[~is_single]
    # With h of c equal sizes positive, they add (2 h - c) times the size to the sum.
    total = np.full(num_resamples, -(counts @ several) - single.sum())
    for start, stop in _chunks(len(several), num_resamples):
        num_positive = random.binomial(counts[start:stop], 0.5, size=(num_resamples, stop - start))
        total += 2 * (num_positive @ several[start:stop])
    for start, stop in _chunks(len(single), num_resamples):
        width = stop - start
        bits = np.frombuffer(random.bytes((num_resamples * width + 7) // 8), np.uint8)
        is_positive = np.unpackbits(bits, count=num_resamples * width).reshape(num_resamples, width)
        total += 2 * (is_positive.astype(np.float64) @ single[start:stop])
    return _p_value(total, float(differences.sum()))


def bootstrap(differences: Array, num_resamples: int = NUM_RESAMPLES, seed: int = RESAMPLING_SEED) -> float:
    """Return the p-value of the paired bootstrap.

    It is how often the mean of resampled users is as far from the observed mean as that is from zero.
    """
    random = np.random.default_rng(seed)
    values, counts = np.unique(differences, return_counts=True)
    num_users = len(differences)
    total = np.empty(num_resamples)
    if len(values) * BINOMIAL_COST < num_users:
        for start, stop in _chunks(num_resamples, len(values)):
            total[start:stop] = random.multinomial(num_users, counts / num_users, size=stop - start) @ values
    else:
        for start, stop in _chunks(num_resamples, num_users):
            drawn = random.integers(num_users, size=(stop - start, num_users), dtype=np.uint32)
            total[start:stop] = differences[drawn].sum(axis=1)
    return _p_value(total - differences.sum(), float(differences.sum()))


def _chunks(length: int, draws_per_row: int) -> list[tuple[int, int]]:
    """Return (start, stop) of chunks of at most `MAX_CHUNK_DRAWS` random numbers."""
    step = max(1, MAX_CHUNK_DRAWS // max(1, draws_per_row))
    return [(start, min(start + step, length)) for start in range(0, length, step)]


def _p_value(resampled: Array, observed: float) -> float:
    """Return (b + 1) / (m + 1), where b of m sums are at least as far from zero as the observed one.

    The tolerance covers rounding errors of sums in a different order.
    """
    tolerance = 1e-9 * max(1.0, abs(observed))
    num_as_far = int(np.sum(np.abs(resampled) >= abs(observed) - tolerance))
    return (num_as_far + 1) / (len(resampled) + 1)
