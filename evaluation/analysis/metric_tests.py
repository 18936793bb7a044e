"""Tests and intervals of the models of a run under one metric, over users and, with several seeds, over trainings."""

from __future__ import annotations

import itertools
import math
from collections.abc import Mapping, Sequence
from functools import cached_property

import numpy as np

from aprec_like.types import Array
from evaluation.analysis.significance import (
    TRAINING_TESTS,
    Interval,
    PairedTest,
    PairValues,
    correct,
    correct_tests,
    detectable_difference,
    mean_interval,
    paired_tests,
)
from evaluation.analysis.variance import (
    MIN_SEEDS,
    StandardError,
    Trainings,
    TrainingVariance,
    VarianceComponents,
    mean_squares,
    pool_trainings,
    pooled_p_values,
    standard_error,
)
from evaluation.results.load import ModelResults

MIN_RELATIVE_VARIANCE = 1e-9
"""A variance of differences below this share of the models' variances is computed from the differences themselves."""
MAX_CHUNK_VALUES = 1 << 22
"""Number of differences held at once."""


class MetricTests:
    """Tests and intervals of models under one metric.

    If any trained model has several seeds, the variance between trainings is part of all standard errors: pooled over
    the trained models, with one seed too, or a model's own from `MIN_SEEDS` seeds on. Models that count have none.
    Without several seeds, tests and intervals are over users alone.

    Args:
        models: of the run; those whose variances are pooled are among them.
        metric: name of the metric.
    """

    def __init__(self, models: Sequence[ModelResults], metric: str) -> None:
        self.models, self.metric = list(models), metric
        self.values = {model.name: model.per_user(metric) for model in models}
        trained = {model.name: model.values[metric] for model in models if not model.is_counting}
        self.pooled = pool_trainings(trained)
        self._own = {name: pool_trainings({name: table}) for name, table in trained.items() if len(table) >= MIN_SEEDS}

    @property
    def covers_trainings(self) -> bool:
        """Whether any trained model has several seeds."""
        return self.pooled is not None

    def scope(self, method: str) -> str:
        """Return what a test covers, as a part of captions."""
        if self.covers_trainings and method in TRAINING_TESTS:
            return "over users and trainings"
        return "over users" if self.are_counting else "over users alone, about these trained models"

    @property
    def are_counting(self) -> bool:
        """Whether all models count, so that there is no chance in training."""
        return all(model.is_counting for model in self.models)

    def training_variance(self, model: ModelResults) -> TrainingVariance | None:
        """Return the variance between trainings of a model; `None` for a counting model or if it is not known."""
        return None if model.is_counting else self._own.get(model.name) or self.pooled

    def components(self, model: ModelResults) -> VarianceComponents | None:
        """Return a model's own variances by source; `None` with one seed."""
        squares = mean_squares(model.values[self.metric])
        return squares.components if squares else None

    def interval(self, model: ModelResults) -> Interval:
        """Return the mean of a model and its 95 % interval."""
        return mean_interval(model.per_user(self.metric), trainings=self.trainings(model))

    def test(self, first: ModelResults, second: ModelResults, method: str = "paired-t") -> PairedTest:
        """Test the difference of two models; `method` is a key of `significance.TESTS`."""
        return paired_tests([self.pair(first, second)], method)[0]

    def pair(self, first: ModelResults, second: ModelResults) -> PairValues:
        """Return the values of two models, for tests of several pairs at once."""
        return PairValues(self.values[first.name], self.values[second.name], self.trainings(first, second))

    def difference_error(
        self, first: ModelResults, second: ModelResults, num_users: int | None = None
    ) -> StandardError:
        """Return the standard error of the difference of two models, or what it would be with other users.

        Args:
            first, second: the models.
            num_users: number of users; `None` for those of the models.
        """
        differences = self.values[first.name] - self.values[second.name]
        variance = float(np.var(differences, ddof=1)) if len(differences) > 1 else 0.0
        return standard_error(variance, num_users or max(2, len(differences)), self.trainings(first, second))

    def detectable(self, first: ModelResults, second: ModelResults, alpha: float, family_size: int) -> float:
        """Return the smallest difference of two models that these data show: see `detectable_difference`."""
        return detectable_difference(self.difference_error(first, second), alpha, family_size)

    def pair_p_values(self) -> dict[tuple[str, str], float]:
        """Return the p-values of the t-tests of all pairs of models, not corrected.

        The variance of the differences of two models follows from the covariance matrix of all of them, so that
        hundreds of thousands of pairs take seconds.
        """
        names = list(self.values)
        num_users = len(self.values[names[0]]) if names else 0
        pairs = list(itertools.combinations(names, 2))
        if num_users < 2 or not pairs:
            return dict.fromkeys(pairs, 1.0)
        means, covariance = self._moments
        rows, columns = np.triu_indices(len(names), k=1)
        totals = np.diag(covariance)[rows] + np.diag(covariance)[columns]
        differences, variances = means[rows] - means[columns], totals - 2 * covariance[rows, columns]
        self._set_exactly(
            variances <= MIN_RELATIVE_VARIANCE * totals, rows, columns, differences=differences, variances=variances
        )
        p_values = self._pair_p_values(differences, variances / num_users, num_users, rows, columns)
        return dict(zip(pairs, p_values.tolist(), strict=True))

    def _set_exactly(self, is_set: Array, rows: Array, columns: Array, *, differences: Array, variances: Array) -> None:
        """Set mean and variance of the differences of some pairs from the differences themselves, in chunks."""
        chosen = np.flatnonzero(is_set)
        if len(chosen) == 0:
            return
        table = np.stack(list(self.values.values()))
        step = max(1, MAX_CHUNK_VALUES // table.shape[1])
        for start in range(0, len(chosen), step):
            some = chosen[start : start + step]
            values = table[rows[some]] - table[columns[some]]
            differences[some] = values.mean(axis=1)
            variances[some] = np.where(np.ptp(values, axis=1) > 0, values.var(axis=1, ddof=1), 0.0)

    def _pair_p_values(self, differences: Array, users: Array, num_users: int, rows: Array, columns: Array) -> Array:
        """Return p-values of pairs, as `StandardError` does for one; pairs with the pooled variance all at once.

        Args:
            differences, users: of the pairs: mean differences, and squares of their standard errors over users.
            num_users: number of users.
            rows, columns: indices of the models of the pairs.
        """
        variances = [self.training_variance(model) for model in self.models]
        seeds = np.array([len(model.seeds) for model in self.models])
        is_own = np.array([each is not None and each is not self.pooled for each in variances])
        weights = np.where([each is None for each in variances], 0.0, 1 / seeds)
        p_values = pooled_p_values(differences, users, weights[rows] + weights[columns], self.pooled, num_users)
        for pair in np.flatnonzero(is_own[rows] | is_own[columns]):
            trainings = self.trainings(self.models[rows[pair]], self.models[columns[pair]])
            p_values[pair] = standard_error(users[pair] * num_users, num_users, trainings).p_value(differences[pair])
        return p_values

    @cached_property
    def _moments(self) -> tuple[Array, Array]:
        """Means of the models and the covariances of their values over users, (models,) and (models, models)."""
        table = np.stack(list(self.values.values()))
        return table.mean(axis=1), np.atleast_2d(np.cov(table))

    def trainings(self, *models: ModelResults) -> list[Trainings]:
        """Return the trainings of a model, or of two whose difference is meant."""
        return [
            Trainings(model.name, len(model.seeds), variance, sign)
            for model, sign in zip(models, (1, -1), strict=False)
            if (variance := self.training_variance(model)) is not None
        ]


Key = tuple[str, str]
"""A model and a metric."""


def correct_family(
    tests: Mapping[Key, PairedTest],
    best: Mapping[str, str] | None,
    metric_tests: Mapping[str, MetricTests],
    method: str,
    correction: str,
) -> tuple[dict[Key, float], int]:
    """Return the corrected p-values of the tests, and the size of the family that they are corrected for.

    With a baseline the family is these tests. Without one the comparator is the best model, chosen by the same data, so
    the family is all pairs of models under all metrics: whichever pairs the data choose, they are in it. The other
    pairs have p-values too in the t-test; in other tests, which take longer, they count as not rejected.

    Args:
        tests: by model and metric.
        best: name of the best model by metric, with which the others were tested; `None` with a baseline.
        metric_tests: by metric.
        method: a key of `significance.TESTS`.
        correction: "holm", "bonferroni" or "none".
    """
    if best is None or correction == "none" or not tests:
        return correct_tests(tests, correction), len(tests)
    p_values = [test.p_value for test in tests.values()]
    if method == "paired-t":
        for metric, each in metric_tests.items():
            p_values += [p_value for pair, p_value in each.pair_p_values().items() if best[metric] not in pair]
    family_size = sum(math.comb(len(each.models), 2) for each in metric_tests.values())
    return dict(zip(tests, correct(p_values, correction, family_size), strict=False)), family_size
