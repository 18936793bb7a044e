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

import numpy as np

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


@dataclass(frozen=True)
class StandardError:
    """Standard error of a mean or of a difference of means, and its degrees of freedom."""

    value: float
    degrees_of_freedom: float


def standard_error(user_variance: float, num_users: int, trainings: Sequence[Trainings] = ()) -> StandardError:
    """Return the standard error over users and trainings, with Welch and Satterthwaite's degrees of freedom.

    The degrees of freedom are those of a sum of mean squares, also where the training variance is estimated as zero:
    with those of the users alone, such estimates would make small p-values far too small.

    Args:
        user_variance: variance over users of the means (or of the differences of means) over trainings.
        num_users: number of users, at least 2.
        trainings: of the models that the mean or the difference is of; none to cover users alone.
    """
    users = user_variance / num_users
    weights: dict[TrainingVariance, float] = {}
    for each in trainings:
        weights[each.variance] = weights.get(each.variance, 0.0) + 1 / each.num_seeds
    total = users + sum(weight * variance.value for variance, weight in weights.items())
    uncertainty = users**2 / (num_users - 1)
    for variance, weight in weights.items():
        df = variance.degrees_of_freedom
        uncertainty += (weight * variance.seed_means) ** 2 / df
        uncertainty += (weight * variance.interaction) ** 2 / (df * (num_users - 1))
    df_total = total**2 / uncertainty if uncertainty and weights else num_users - 1.0
    return StandardError(math.sqrt(total), max(1.0, df_total))
