"""Tests and intervals of the models of a run under one metric, over users and, with several seeds, over trainings."""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from functools import cached_property

import numpy as np

from aprec_like.types import Array
from evaluation.analysis.significance import (
    TRAINING_TESTS,
    Interval,
    PairedTest,
    mean_interval,
    paired_test,
    t_test_p_value,
)
from evaluation.analysis.variance import (
    MIN_SEEDS,
    StandardError,
    Trainings,
    TrainingVariance,
    VarianceComponents,
    mean_squares,
    pool_trainings,
    standard_error,
)
from evaluation.results.load import ModelResults

MIN_RELATIVE_VARIANCE = 1e-9
"""A variance of differences below this share of the models' variances is computed from the differences themselves."""


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
        values = self.values[first.name], self.values[second.name]
        return paired_test(*values, method, self.trainings(first, second))

    def difference_error(self, first: ModelResults, second: ModelResults, num_users: int) -> StandardError:
        """Return the standard error that the difference of two models would have with this number of users."""
        variance = float(np.var(self.values[first.name] - self.values[second.name], ddof=1))
        return standard_error(variance, num_users, self.trainings(first, second))

    def pair_p_values(self) -> dict[tuple[str, str], float]:
        """Return the p-values of the t-tests of all pairs of models, not corrected.

        The variance of the differences of two models follows from the covariance matrix of all of them, so that
        hundreds of pairs cost little more than one.
        """
        names = list(self.values)
        num_users = len(self.values[names[0]]) if names else 0
        if num_users < 2:
            return dict.fromkeys(itertools.combinations(names, 2), 1.0)
        means, covariance = self._moments
        p_values = {}
        for (row, first), (column, second) in itertools.combinations(enumerate(self.models), 2):
            total = covariance[row, row] + covariance[column, column]
            variance = float(total - 2 * covariance[row, column])
            if variance <= MIN_RELATIVE_VARIANCE * total:
                p_values[first.name, second.name] = self.test(first, second).p_value
            else:
                error = standard_error(variance, num_users, self.trainings(first, second))
                p_values[first.name, second.name] = t_test_p_value(float(means[row] - means[column]), error)
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
