"""Tests and intervals of the models of a run under one metric, over users and, with several seeds, over trainings."""

from __future__ import annotations

import itertools
import math
from collections.abc import Sequence
from functools import cached_property

import numpy as np
from scipy import stats

from aprec_like.types import Array
from evaluation.analysis.significance import (
    TRAINING_TESTS,
    Interval,
    PairedTest,
    mean_interval,
    paired_test,
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
        values = self.values[first.name], self.values[second.name]
        return paired_test(*values, method, self.trainings(first, second))

    def difference_error(self, first: ModelResults, second: ModelResults, num_users: int) -> StandardError:
        """Return the standard error that the difference of two models would have with this number of users."""
        variance = float(np.var(self.values[first.name] - self.values[second.name], ddof=1))
        return standard_error(variance, num_users, self.trainings(first, second))

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
        errors, degrees_of_freedom = self._pair_errors(variances, num_users, rows, columns)
        with np.errstate(divide="ignore", invalid="ignore"):
            p_values = 2 * stats.t.sf(np.abs(differences) / errors, degrees_of_freedom)
        p_values = np.where(errors == 0, np.where(differences == 0, 1.0, 0.0), p_values)
        is_equal = (differences == 0) & (variances == 0)
        return dict(zip(pairs, np.where(is_equal, 1.0, p_values).tolist(), strict=True))

    def _set_exactly(self, is_set: Array, rows: Array, columns: Array, *, differences: Array, variances: Array) -> None:
        """Set mean and variance of the differences of some pairs from the differences themselves, in chunks."""
        table = np.stack(list(self.values.values()))
        chosen = np.flatnonzero(is_set)
        step = max(1, MAX_CHUNK_VALUES // table.shape[1])
        for start in range(0, len(chosen), step):
            some = chosen[start : start + step]
            values = table[rows[some]] - table[columns[some]]
            differences[some] = values.mean(axis=1)
            variances[some] = np.where(np.ptp(values, axis=1) > 0, values.var(axis=1, ddof=1), 0.0)

    def _pair_errors(self, variances: Array, num_users: int, rows: Array, columns: Array) -> tuple[Array, Array]:
        """Return standard errors and degrees of freedom of pairs, as `standard_error` does for one."""
        trainings = [self.training_variance(model) for model in self.models]
        weights = np.array([1 / len(model.seeds) for model in self.models])
        parts = np.array(
            [
                (each.value, each.seed_means / math.sqrt(df), each.interaction / math.sqrt(df * (num_users - 1)))
                if each and (df := each.degrees_of_freedom)
                else (0.0, 0.0, 0.0)
                for each in trainings
            ]
        )
        value, seed_means, interaction = (parts * weights[:, None]).T
        identifiers = np.array([id(each) for each in trainings])
        is_shared = identifiers[rows] == identifiers[columns]
        users = variances / num_users
        totals = users + value[rows] + value[columns]
        uncertainty = users**2 / (num_users - 1)
        for part in (seed_means, interaction):
            uncertainty += part[rows] ** 2 + part[columns] ** 2 + np.where(is_shared, 2 * part[rows] * part[columns], 0)
        has_trainings = np.array([each is not None for each in trainings])
        is_known = (has_trainings[rows] | has_trainings[columns]) & (uncertainty > 0)
        degrees_of_freedom = np.where(is_known, totals**2 / np.where(is_known, uncertainty, 1.0), num_users - 1.0)
        return np.sqrt(totals), np.maximum(1.0, degrees_of_freedom)

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
