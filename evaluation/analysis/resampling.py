"""P-values by resampling: the sign-flip randomisation test, and the paired bootstrap of users and of trainings.

Metrics of one target take few distinct values, and so do their per-user differences. Flipping the signs of c equal
differences is a binomial draw, and resampling users is a multinomial draw: the same distributions as flipping and
drawing users one by one, at a small fraction of the cost.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np

from aprec_like.types import Array
from evaluation.analysis.variance import Trainings, TrainingVariance, standard_error

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
    total = np.concatenate([sums for sums, _ in _resample_users(differences, num_resamples, random)])
    return _p_value(total - differences.sum(), float(differences.sum()))


def bootstrap_trainings(
    differences: Array,
    trainings: Sequence[Trainings],
    num_resamples: int = NUM_RESAMPLES,
    seed: int = RESAMPLING_SEED,
) -> float:
    """Return the p-value of the paired bootstrap of users and trainings.

    Users are resampled with their differences, which hold the interaction with trainings. The effects of trainings are
    resampled from those of the models that share a training variance, scaled to that variance without the interaction.
    The statistic is the mean divided by its standard error, which is computed anew in every resample: with few
    trainings the mean alone would reject too often.

    Args:
        differences: (users,) differences of the means over trainings.
        trainings: of the two models, or of the one of them that is trained.
        num_resamples: number of resamples.
        seed: random seed.
    """
    random = np.random.default_rng(seed)
    num_users = len(differences)
    parts = list(_resample_users(differences, num_resamples, random))
    means = np.concatenate([sums for sums, _ in parts]) / num_users
    squares = np.concatenate([squares for _, squares in parts])
    variances = (squares - num_users * means**2) / (num_users - 1) / num_users
    shift = means - differences.mean()
    for variance in dict.fromkeys(each.variance for each in trainings):
        sharing = [each for each in trainings if each.variance is variance]
        effects, seed_variance = _resample_trainings(variance, sharing, num_resamples, random)
        shift += effects
        weight = sum(1 / each.num_seeds for each in sharing)
        variances += weight * np.maximum(0.0, seed_variance - variance.interaction)
    observed = standard_error(float(np.var(differences, ddof=1)), num_users, trainings).value
    errors = np.sqrt(np.maximum(variances, 0.0))
    statistics = np.divide(shift, errors, out=np.full(num_resamples, np.inf), where=errors > 0)
    return _p_value(statistics, float(differences.mean()) / observed)


def _resample_users(
    differences: Array, num_resamples: int, random: np.random.Generator
) -> Iterator[tuple[Array, Array]]:
    """Yield sums and sums of squares of resampled users, (resamples of a chunk,) each."""
    values, counts = np.unique(differences, return_counts=True)
    num_users = len(differences)
    if len(values) * BINOMIAL_COST < num_users:
        for start, stop in _chunks(num_resamples, len(values)):
            drawn = random.multinomial(num_users, counts / num_users, size=stop - start)
            yield drawn @ values, drawn @ np.square(values)
    else:
        for start, stop in _chunks(num_resamples, num_users):
            users = random.integers(num_users, size=(stop - start, num_users), dtype=np.uint32)
            drawn = differences[users]
            yield drawn.sum(axis=1), np.square(drawn, out=drawn).sum(axis=1)


def _resample_trainings(
    variance: TrainingVariance, trainings: Sequence[Trainings], num_resamples: int, random: np.random.Generator
) -> tuple[Array, Array]:
    """Return the resampled effects of trainings on a difference and the resampled variances of seed means.

    Effects of a model's S seeds are multiplied by sqrt(S / (S - 1)), since their mean is zero by construction.
    """
    pool = np.concatenate([each * np.sqrt(len(each) / (len(each) - 1)) for each in variance.effects.values()])
    scale = np.sqrt(variance.value / variance.seed_means) if variance.seed_means else 0.0
    drawn = {name: random.choice(pool, (num_resamples, len(each))) for name, each in variance.effects.items()}
    seed_variance = sum(np.var(each, axis=1, ddof=1) * (each.shape[1] - 1) for each in drawn.values())
    effects = np.zeros(num_resamples)
    for model in trainings:
        draws = drawn.get(model.name)
        if draws is None:  # one training, with the variance of other models
            draws = random.choice(pool, (num_resamples, model.num_seeds))
        effects += model.sign * scale * draws.mean(axis=1)
    return effects, np.asarray(seed_variance / variance.degrees_of_freedom)


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
