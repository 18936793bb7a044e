"""Variance of per-user values by source: users, trainings and their interaction; standard errors of means from it.

The value of user u after training s is a mean plus effects of the user, of the training, and of both together (the
interaction, which includes noise). A mean over S trainings and U users has the variance

    users / U + trainings / S + interaction / (S U).

The variance over users of the means over trainings, divided by U, estimates the first and the last part together, so a
standard error adds only trainings / S. The variance of the means of trainings estimates trainings + interaction / U;
the mean square of the interaction is subtracted from it, so that the interaction counts once. See docs/statistics.md.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cache, cached_property

import numpy as np
from scipy import optimize, special, stats

from aprec_like.types import Array

MIN_SEEDS = 10
"""A model with at least this many seeds has a training variance of its own; others share the pooled one."""


@dataclass(frozen=True)
class VarianceComponents:
    """Variances of a model's per-user values by source, estimated from mean squares; none is below zero.

    Args:
        users: of the users' expected values.
        trainings: of the expected means of trainings that differ in nothing but the seed.
        interaction: of what is particular to a user in a training.
        num_seeds: S.
        num_users: U.
    """

    users: float
    trainings: float
    interaction: float
    num_seeds: int
    num_users: int

    @property
    def shares(self) -> tuple[float, float, float]:
        """Shares of users, trainings and interaction in the variance of the mean over all users and trainings."""
        parts = (
            self.users / self.num_users,
            self.trainings / self.num_seeds,
            self.interaction / (self.num_seeds * self.num_users),
        )
        total = sum(parts)
        return (parts[0] / total, parts[1] / total, parts[2] / total) if total else (0.0, 0.0, 0.0)


@dataclass(frozen=True)
class MeanSquares:
    """Mean squares of a (seeds, users) table of one model: at least two of each.

    Args:
        seed_means: variance of the means of the seeds.
        user_means: variance of the means of the users.
        interaction: residual mean square, after the means of seeds and of users.
        num_seeds: number of seeds.
        num_users: number of users.
    """

    seed_means: float
    user_means: float
    interaction: float
    num_seeds: int
    num_users: int

    @property
    def components(self) -> VarianceComponents:
        """The variances whose expected mean squares these are."""
        return VarianceComponents(
            users=max(0.0, self.user_means - self.interaction / self.num_seeds),
            trainings=max(0.0, self.seed_means - self.interaction / self.num_users),
            interaction=self.interaction,
            num_seeds=self.num_seeds,
            num_users=self.num_users,
        )


def mean_squares(values: Array) -> MeanSquares | None:
    """Return the mean squares of values (seeds, users); `None` with one seed or one user."""
    num_seeds, num_users = values.shape
    if num_seeds < 2 or num_users < 2:
        return None
    seed_means, user_means = values.mean(axis=1), values.mean(axis=0)
    # One seed at a time: a table of residuals would take as much memory as the values.
    centred = user_means - user_means.mean()
    residual_sum = sum(
        float(np.sum(np.square(row - row_mean - centred))) for row, row_mean in zip(values, seed_means, strict=True)
    )
    return MeanSquares(
        seed_means=float(np.var(seed_means, ddof=1)),
        user_means=float(np.var(user_means, ddof=1)),
        interaction=residual_sum / ((num_seeds - 1) * (num_users - 1)),
        num_seeds=num_seeds,
        num_users=num_users,
    )


@dataclass(frozen=True, eq=False)
class TrainingVariance:
    """The variance between trainings, from one model or pooled over several, weighted by degrees of freedom.

    Args:
        seed_means: variance of the means of seeds, which includes the interaction.
        interaction: mean square of the interaction divided by the number of users: its part in `seed_means`.
        num_users: number of users.
        effects: means of the seeds minus their mean, (seeds,), by model.
    """

    seed_means: float
    interaction: float
    num_users: int
    effects: Mapping[str, Array]

    @property
    def value(self) -> float:
        """The variance between trainings without the interaction, at least zero."""
        return max(0.0, self.seed_means - self.interaction)

    @property
    def degrees_of_freedom(self) -> int:
        """Of the variance of the means of seeds."""
        return sum(len(effects) - 1 for effects in self.effects.values())


def pool_trainings(values: Mapping[str, Array]) -> TrainingVariance | None:
    """Return the training variance of models with values (seeds, users), by name; `None` if all have one seed."""
    found = {name: mean_squares(table) for name, table in values.items()}
    squares = [each for each in found.values() if each is not None]
    if not squares:
        return None
    weights = [each.num_seeds - 1 for each in squares]
    num_users = squares[0].num_users
    seed_means = {name: values[name].mean(axis=1) for name, each in found.items() if each is not None}
    return TrainingVariance(
        seed_means=float(np.average([each.seed_means for each in squares], weights=weights)),
        interaction=float(np.average([each.interaction for each in squares], weights=weights)) / num_users,
        num_users=num_users,
        effects={name: means - means.mean() for name, means in seed_means.items()},
    )


@dataclass(frozen=True, eq=False)
class Trainings:
    """The trainings behind one model's mean.

    Args:
        name: name of the model.
        num_seeds: number of its trainings.
        variance: between trainings: the model's own or the pooled one.
        sign: 1, or -1 for the second model of a difference.
    """

    name: str
    num_seeds: int
    variance: TrainingVariance
    sign: int = 1


NUM_NODES = 100
"""Points of the integral over the unknown training variance; relative errors of p-values are below 1e-6."""


@dataclass(frozen=True)
class StandardError:
    """Standard error of a mean or of a difference of means, and the distribution of the mean divided by it.

    The mean is normal with the variance rest + sum of weight * tau. Rest, the part of the users' expected values, is
    well known from thousands of users; each tau, the variance of the means of a model's trainings, is estimated from
    few. As Behrens and Fisher have it, tau has the distribution of seed_means * df / chi2(df), over which p-values
    are averaged: with rest = 0 this is Student's t-test of the means of trainings. A p-value is never below that over
    users alone, because a source of chance more is no evidence more. See docs/statistics.md.

    Args:
        users: square of the standard error over users of the means (or of the differences of means) over trainings.
        num_users: number of users, at least 2.
        trainings: variances between trainings, each with its weight: the sum of 1 / seeds of the models that have it.
    """

    users: float
    num_users: int
    trainings: tuple[tuple[TrainingVariance, float], ...] = ()

    @property
    def value(self) -> float:
        """The standard error over users and trainings; training variances count as at least zero."""
        return math.sqrt(self.users + sum(weight * variance.value for variance, weight in self.trainings))

    @property
    def degrees_of_freedom(self) -> float:
        """Of the standard error, by Satterthwaite's approximation: a description, p-values do not use it."""
        uncertainty = self.users**2 / (self.num_users - 1)
        for variance, weight in self.trainings:
            uncertainty += (weight * variance.seed_means) ** 2 / variance.degrees_of_freedom
        return max(1.0, self.value**4 / uncertainty) if self.trainings and uncertainty else self.num_users - 1.0

    def p_value(self, difference: float) -> float:
        """Return the two-sided p-value of a mean difference; without a standard error 0, but 1 for no difference."""
        if difference == 0:
            return 1.0
        over_users = self._average_p_value(difference, np.array([self.users]), np.ones(1))
        if not self.trainings:
            return over_users
        return max(over_users, self._average_p_value(difference, *self._variance_nodes))

    def half_width(self, confidence: float) -> float:
        """Return the difference from zero whose p-value is 1 - confidence: half the width of an interval."""
        alpha = 1 - confidence
        over_users = -float(special.stdtrit(self.num_users - 1, alpha / 2)) * math.sqrt(self.users)
        widest = over_users or self.value
        if not self.trainings or widest == 0 or self.p_value(widest) <= alpha:
            return over_users
        while self.p_value(widest) > alpha:
            widest *= 2
        return float(optimize.brentq(lambda width: self.p_value(width) - alpha, widest / 2, widest, rtol=1e-8))

    @cached_property
    def _variance_nodes(self) -> tuple[Array, Array]:
        """Possible variances of the mean and their probabilities, (nodes,) each."""
        rest = self.users - sum(weight * variance.interaction for variance, weight in self.trainings)
        nodes, probabilities = np.array([max(0.0, rest)]), np.ones(1)
        for variance, weight in self.trainings:
            ratios, shares = _inverse_chi2(variance.degrees_of_freedom)
            nodes = np.add.outer(nodes, weight * variance.seed_means * ratios).ravel()
            probabilities = np.multiply.outer(probabilities, shares).ravel()
        return nodes, probabilities

    def _average_p_value(self, difference: float, nodes: Array, probabilities: Array) -> float:
        errors = np.sqrt(nodes)
        statistics = np.divide(abs(difference), errors, out=np.full(len(nodes), np.inf), where=errors > 0)
        return min(1.0, float(2 * special.stdtr(self.num_users - 1, -statistics) @ probabilities))


def standard_error(user_variance: float, num_users: int, trainings: Sequence[Trainings] = ()) -> StandardError:
    """Return the standard error over users and trainings.

    Args:
        user_variance: variance over users of the means (or of the differences of means) over trainings.
        num_users: number of users, at least 2.
        trainings: of the models that the mean or the difference is of; none to cover users alone.
    """
    weights: dict[TrainingVariance, float] = {}
    for each in trainings:
        weights[each.variance] = weights.get(each.variance, 0.0) + 1 / each.num_seeds
    return StandardError(user_variance / num_users, num_users, tuple(weights.items()))


MAX_CHUNK_PAIRS = 10_000
"""Pairs whose p-values are computed at once."""


def pooled_p_values(
    differences: Array, users: Array, weights: Array, variance: TrainingVariance | None, num_users: int
) -> Array:
    """Return the p-values of many mean differences, as `StandardError.p_value` does for one.

    Args:
        differences: mean differences, (pairs,).
        users: squares of their standard errors over users, (pairs,).
        weights: of the training variance, (pairs,); zero where a pair has none.
        variance: between trainings, the same for all pairs; `None` to cover users alone.
        num_users: number of users.
    """

    def average(chosen: slice, nodes: Array, shares: Array) -> Array:
        distances = np.abs(differences[chosen])[:, None]
        errors = np.sqrt(nodes)
        statistics = np.divide(distances, errors, out=np.full(nodes.shape, np.inf), where=errors > 0)
        return np.minimum(1.0, 2 * special.stdtr(num_users - 1, -statistics) @ shares)

    p_values = average(slice(None), users[:, None], np.ones(1))
    if variance is not None:
        ratios, shares = _inverse_chi2(variance.degrees_of_freedom)
        for start in range(0, len(differences), MAX_CHUNK_PAIRS):
            chosen = slice(start, start + MAX_CHUNK_PAIRS)
            rest = np.maximum(0.0, users[chosen] - weights[chosen] * variance.interaction)
            nodes = rest[:, None] + np.multiply.outer(weights[chosen] * variance.seed_means, ratios)
            p_values[chosen] = np.maximum(p_values[chosen], average(chosen, nodes, shares))
    return np.where(differences == 0, 1.0, p_values)


@cache
def _inverse_chi2(degrees_of_freedom: int) -> tuple[Array, Array]:
    """Return values of df / chi2(df) and their probabilities, (nodes,): a trapezoidal rule over the logarithm."""
    distribution = stats.chi2(degrees_of_freedom)
    log_chi2 = np.linspace(np.log(distribution.ppf(1e-13)), np.log(distribution.isf(1e-14)), NUM_NODES)
    log_density = degrees_of_freedom / 2 * log_chi2 - np.exp(log_chi2) / 2
    weights = np.exp(log_density - log_density.max())
    return degrees_of_freedom / np.exp(log_chi2), weights / weights.sum()
