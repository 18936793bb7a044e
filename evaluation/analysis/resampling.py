"""P-values by resampling: the sign-flip randomisation test, and the paired bootstrap of users and of trainings.

A resample of users is a row of weights: signs, or how often each user was drawn. Sums over the users of all tests
follow from one matrix product, so that many tests take little longer than one; memory is bounded by a chunk of rows.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence

import numpy as np

from aprec_like.types import Array
from evaluation.analysis.variance import Trainings, TrainingVariance, standard_error
from evaluation.cli import track

NUM_RESAMPLES = 10_000
RESAMPLING_SEED = 20_230_918
MAX_CHUNK_WEIGHTS = 1 << 23
"""Weights of users that are held in memory at once: 64 MiB."""

DrawWeights = Callable[[int, int, np.random.Generator], Array]
"""Draws weights (rows, users) from the numbers of rows and users."""


def randomisation(differences: Array, num_resamples: int = NUM_RESAMPLES) -> float:
    """Return the p-value of the sign-flip test of one model pair: see `randomisation_tests`."""
    return randomisation_tests([differences], num_resamples)[0]


def bootstrap(differences: Array, num_resamples: int = NUM_RESAMPLES) -> float:
    """Return the p-value of the paired bootstrap over users of one model pair: see `bootstrap_tests`."""
    return bootstrap_tests([differences], [()], num_resamples)[0]


def randomisation_tests(
    differences: Sequence[Array], num_resamples: int = NUM_RESAMPLES, seed: int = RESAMPLING_SEED
) -> list[float]:
    """Return p-values of the sign-flip test: how often random signs give a sum at least as far from zero.

    Args:
        differences: of every test, (users,) each; the users are the same.
        num_resamples: number of resamples.
        seed: random seed.
    """
    columns = np.stack(differences, axis=1)
    sums = np.concatenate(list(_weighted_sums(columns, _draw_signs, num_resamples, seed)))
    return [_p_value(sums[:, number], float(column.sum())) for number, column in enumerate(columns.T)]


def bootstrap_tests(
    differences: Sequence[Array],
    trainings: Sequence[Sequence[Trainings]],
    num_resamples: int = NUM_RESAMPLES,
    seed: int = RESAMPLING_SEED,
) -> list[float]:
    """Return p-values of the paired bootstrap of users and, where trainings are given, of trainings.

    Over users it is how often the mean of resampled users is as far from the observed mean as that is from zero. Over
    both, effects of trainings are resampled from those of the models that share a training variance, and users with
    their differences, scaled to the variance without the interaction, which the means of trainings contain. The
    statistic is then the mean divided by its standard error, computed anew in every resample: with few trainings the
    mean alone would reject too often. As in the t-test, the p-value is never below that over users alone.

    Args:
        differences: of every test, (users,) each, differences of means over trainings; the users are the same.
        trainings: of every test: of the two models, or of the one that is trained; none to resample users alone.
        num_resamples: number of resamples.
        seed: random seed.
    """
    num_tests, num_users = len(differences), len(differences[0])
    means = np.array([each.mean() for each in differences])
    columns = np.stack(differences, axis=1) - means
    if any(trainings):
        columns = np.concatenate([columns, np.square(columns)], axis=1)
    sums = np.concatenate(list(_weighted_sums(columns, _draw_counts, num_resamples, seed)))
    p_values = []
    for number, of_test in enumerate(trainings):
        shifts = sums[:, number] / num_users
        p_value = _p_value(shifts, float(means[number]))
        if of_test:
            squares = sums[:, num_tests + number] / num_users
            variances = np.maximum(0.0, squares - shifts**2) / (num_users - 1)
            spread = float(np.var(differences[number], ddof=1))
            statistics, scale = _studentise(shifts, variances, spread, num_users, of_test, seed)
            p_value = max(p_value, _p_value(statistics, float(means[number]) / scale))
        p_values.append(p_value)
    return p_values


def _studentise(
    shifts: Array, variances: Array, spread: float, num_users: int, trainings: Sequence[Trainings], seed: int
) -> tuple[Array, float]:
    """Return the resampled statistics over users and trainings, (resamples,), and the observed standard error.

    Args:
        shifts: of the mean by resampled users, (resamples,).
        variances: of the mean by resampled users, (resamples,).
        spread: variance of the differences over users.
        num_users: number of users.
        trainings: of the models.
        seed: random seed.
    """
    random = np.random.default_rng([seed, 1])
    error = standard_error(spread, num_users, trainings)
    interaction = sum(weight * variance.interaction for variance, weight in error.trainings)
    rest = max(0.0, 1 - interaction / error.users) if error.users else 0.0
    observed = rest * error.users
    shifts, variances = np.sqrt(rest) * shifts, rest * variances
    for variance, weight in error.trainings:
        sharing = [each for each in trainings if each.variance is variance]
        effects, seed_variances = _resample_trainings(variance, sharing, len(shifts), random)
        shifts = shifts + effects
        variances = variances + weight * seed_variances
        observed += weight * variance.seed_means
    errors = np.sqrt(variances)
    statistics = np.divide(shifts, errors, out=np.full(len(shifts), np.inf), where=errors > 0)
    return statistics, float(np.sqrt(observed)) or np.finfo(float).tiny


def _resample_trainings(
    variance: TrainingVariance, trainings: Sequence[Trainings], num_resamples: int, random: np.random.Generator
) -> tuple[Array, Array]:
    """Return the resampled effects of trainings on a difference and the resampled variances of seed means.

    Effects of a model's S seeds are multiplied by sqrt(S / (S - 1)), since their mean is zero by construction.
    """
    pool = np.concatenate([each * np.sqrt(len(each) / (len(each) - 1)) for each in variance.effects.values()])
    drawn = {name: random.choice(pool, (num_resamples, len(each))) for name, each in variance.effects.items()}
    squares = sum(np.var(each, axis=1, ddof=1) * (each.shape[1] - 1) for each in drawn.values())
    effects = np.zeros(num_resamples)
    for model in trainings:
        draws = drawn.get(model.name)
        if draws is None:  # one training, with the variance of other models
            draws = random.choice(pool, (num_resamples, model.num_seeds))
        effects += model.sign * draws.mean(axis=1)
    return effects, np.asarray(squares / variance.degrees_of_freedom)


def _weighted_sums(columns: Array, draw: DrawWeights, num_resamples: int, seed: int) -> Iterator[Array]:
    """Yield sums over users of the columns (users, columns), weighted by resamples: (rows of a chunk, columns)."""
    random = np.random.default_rng(seed)
    step = max(1, MAX_CHUNK_WEIGHTS // len(columns))
    table = np.ascontiguousarray(columns.T)
    for start in track(range(0, num_resamples, step), "chunks of resamples", -(-num_resamples // step)):
        weights = draw(min(step, num_resamples - start), len(columns), random)
        # In this order of the factors OpenBLAS uses one thread; its threads wait for each other in the other order.
        yield (table @ weights.T).T


def _draw_signs(num_rows: int, num_users: int, random: np.random.Generator) -> Array:
    size = num_rows * num_users
    bits = np.unpackbits(np.frombuffer(random.bytes((size + 7) // 8), np.uint8), count=size)
    signs = bits.reshape(num_rows, num_users).astype(np.float64)
    signs *= 2
    signs -= 1
    return signs


def _draw_counts(num_rows: int, num_users: int, random: np.random.Generator) -> Array:
    counts = np.empty((num_rows, num_users))
    for row in counts:  # one resample: bounded memory, and the counts of a row stay in the cache
        row[:] = np.bincount(random.integers(num_users, size=num_users), minlength=num_users)
    return counts


def _p_value(resampled: Array, observed: float) -> float:
    """Return (b + 1) / (m + 1), where b of m values are at least as far from zero as the observed one.

    The tolerance covers rounding errors of sums in a different order.
    """
    tolerance = 1e-9 * max(1.0, abs(observed))
    num_as_far = int(np.sum(np.abs(resampled) >= abs(observed) - tolerance))
    return (num_as_far + 1) / (len(resampled) + 1)
