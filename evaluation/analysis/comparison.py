"""Comparison of models: means, and paired tests of each model against the best one or a baseline."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Literal

import numpy as np

from aprec_like.errors import InputError
from evaluation.analysis.metric_tests import MetricTests
from evaluation.analysis.significance import (
    TEST_NAMES,
    Interval,
    PairedTest,
    caveat_of_test,
    correct,
    correct_tests,
    detectable_difference,
)
from evaluation.analysis.variance import VarianceComponents
from evaluation.caveats.learning_data import learning_data_sentence
from evaluation.caveats.training import training_caveats
from evaluation.results.load import Caveat, LoadedRuns, ModelResults, Origin

ALPHA = 0.05


@dataclass(frozen=True)
class Rules:
    """Settings of the significance tests.

    Args:
        baseline: name of the model that every other is tested against; `None` for the best of each metric.
        test: a key of `significance.TESTS`.
        correction: of p-values for the number of tests: "holm", "bonferroni" or "none".
        alpha: significance level.
    """

    baseline: str | None = None
    test: str = "paired-t"
    correction: str = "holm"
    alpha: float = ALPHA

    def explain_star(self, family: str, scope: str) -> str:
        """Return the part of a caption that explains stars.

        Args:
            family: what p-values are corrected for: "6 pairs".
            scope: what the test covers: "over users and trainings".
        """
        return f"* differs ({TEST_NAMES[self.test]} {scope}, p < {self.alpha:g}, {self.correction} over {family})"


@dataclass(frozen=True)
class Cell:
    """One model under one metric. The comparator is the baseline, or the best model of the metric.

    Args:
        value: mean over users and its 95 % interval, over users and trainings if several seeds are known.
        seed_std: standard deviation of the mean over seeds; `None` with one seed.
        variance: of the model's values by source: users, trainings, interaction; `None` with one seed.
        comparator: name of the comparator; `None` for the comparator itself.
        test: test of the difference to the comparator; `None` for the comparator itself.
        relative: the difference divided by the comparator's mean; `None` if that is zero.
        p_corrected: p-value of the test, corrected for the number of tests.
        detectable: smallest difference to the comparator that these users can show.
        published: the paper's number; `None` if the recipe has none.
    """

    value: Interval
    seed_std: float | None
    variance: VarianceComponents | None
    comparator: str | None
    test: PairedTest | None
    relative: float | None
    p_corrected: float | None
    detectable: float | None
    published: float | None


@dataclass(frozen=True)
class Row:
    """One finished model: a cell per metric, and the mean time to its best epoch over seeds.

    Args:
        name: name of the model.
        seeds: training seeds.
        cells: by metric.
        seconds_to_best: mean over seeds; `None` for imported results.
        origin: where the results come from.
        caveats: what tables must say about the values.
    """

    name: str
    seeds: tuple[int, ...]
    cells: dict[str, Cell]
    seconds_to_best: float | None
    origin: Origin
    caveats: tuple[Caveat, ...] = ()

    @property
    def label(self) -> str:
        """Name of the model with the marks of its caveats, the first column of the table."""
        marks = ", ".join(caveat.mark for caveat in self.caveats)
        return f"{self.name} ({marks})" if marks else self.name


@dataclass(frozen=True)
class Comparison:
    """The tested results of all models of a run.

    Args:
        run: name of the run.
        metrics: names of the metrics.
        rows: the finished models.
        bounds: the oracle of simulated data, an upper bound: never best, second, or tested.
        literature: quoted numbers by model and metric, never tested.
        remarks: caveats about tests and data; unfinished models, with reasons.
        rules: settings of the tests.
        family_size: number of tests that p-values are corrected for; without a baseline, all pairs of models under all
            metrics, so that the choice of the best is part of the family.
        training_std: standard deviation between trainings by metric, pooled over the models with several seeds; empty
            if there are none: tests and intervals then cover users alone.
        num_users: number of users.
        exclude_seen: whether seen items are left out of the rankings.
        num_candidates: number of sampled items that the sampled metrics rank; `None` without such metrics.
        groups: names of models by group; a table separates groups by rules.
        data_sentences: what the caption says about the data: what models learned from.
        dataset: name of the data in captions.
    """

    run: str
    metrics: tuple[str, ...]
    rows: list[Row]
    bounds: list[Row]
    literature: dict[str, dict[str, float]]
    remarks: list[str]
    rules: Rules
    family_size: int
    training_std: dict[str, float]
    num_users: int
    exclude_seen: bool
    num_candidates: int | None
    groups: dict[str, list[str]]
    data_sentences: tuple[str, ...] = ()
    dataset: str = ""

    @property
    def published_metrics(self) -> tuple[str, ...]:
        """The metrics if any model has a published number, else none."""
        cells = [cell for row in self.rows for cell in row.cells.values()]
        return self.metrics if any(cell.published is not None for cell in cells) else ()

    def ranked(self, metric: str) -> list[str]:
        """Return the names of the models, best first."""
        return self._ranked[metric]

    @cached_property
    def _ranked(self) -> dict[str, list[str]]:
        """Names of the models by metric, best first."""
        return {
            metric: [row.name for row in sorted(self.rows, key=lambda row: -row.cells[metric].value.mean)]
            for metric in self.metrics
        }

    @cached_property
    def smallest_half_widths(self) -> dict[str, float | None]:
        """Half the width of the narrowest interval by metric; `None` if all are points."""
        values = {metric: [row.cells[metric].value for row in self.rows] for metric in self.metrics}
        return {
            metric: min(((value.high - value.low) / 2 for value in intervals if value.high > value.low), default=None)
            for metric, intervals in values.items()
        }

    def emphasis(self, name: str, metric: str) -> Literal["best", "second"] | None:
        """Return whether a model is the best or the second of at least two; equal means share their place.

        `None` for the others and the oracle.
        """
        return self._emphases[metric].get(name)

    @cached_property
    def _emphases(self) -> dict[str, dict[str, Literal["best", "second"]]]:
        """The best and the second models by metric."""
        found: dict[str, dict[str, Literal["best", "second"]]] = {metric: {} for metric in self.metrics}
        for metric, emphases in found.items():
            means = {row.name: row.cells[metric].value.mean for row in self.rows}
            best, second, *_ = [*sorted(set(means.values()), reverse=True), math.nan, math.nan]
            if len(means) > 1:
                emphases |= {name: "best" for name, mean in means.items() if mean == best}
                emphases |= {name: "second" for name, mean in means.items() if mean == second}
        return found

    def is_significant(self, cell: Cell) -> bool:
        """Return whether the difference to the comparator is significant."""
        return cell.p_corrected is not None and cell.p_corrected < self.rules.alpha


def compare_models(runs: LoadedRuns, rules: Rules | None = None) -> Comparison:
    """Test every model against the baseline, or without one against the best of each metric.

    Raises `InputError` if the baseline is not a finished model.
    """
    rules = rules or Rules()
    _check_names(runs, rules.baseline)
    models = runs.tested_models
    metric_tests = {metric: MetricTests(models, metric) for metric in runs.metrics}
    comparators = {metric: _comparator(models, metric, rules.baseline) for metric in runs.metrics} if models else {}
    tests = {
        (model.name, metric): metric_tests[metric].test(model, comparator, rules.test)
        for metric, comparator in comparators.items()
        for model in models
        if model is not comparator
    }
    p_corrected, family_size = _correct_family(tests, comparators, metric_tests, rules)
    published = runs.settings.get("published", {})
    num_corrected = 1 if rules.correction == "none" else family_size

    def cell(model: ModelResults, metric: str) -> Cell:
        key = (model.name, metric)
        test = tests.get(key)
        mean = float(np.mean(comparators[metric].per_user(metric))) if test else 0.0
        return Cell(
            value=metric_tests[metric].interval(model),
            seed_std=model.seed_std(metric),
            variance=metric_tests[metric].components(model),
            comparator=comparators[metric].name if test else None,
            test=test,
            relative=test.difference.mean / mean if test and mean else None,
            p_corrected=p_corrected.get(key),
            detectable=_detectable(test, rules.alpha, num_corrected) if test else None,
            published=published.get(model.name, {}).get(metric),
        )

    def row(model: ModelResults) -> Row:
        cells = {name: cell(model, name) for name in runs.metrics}
        statuses = [folder.status() for folder in model.folders]
        caveats = (*model.caveats, *training_caveats(model.settings, statuses))
        return Row(model.name, model.seeds, cells, model.seconds_to_best, model.origin, caveats)

    rows = [row(model) for model in models]
    caveat = caveat_of_test(rules.test, rules.alpha, family_size, rules.correction) if tests else None
    return Comparison(
        run=runs.title,
        metrics=runs.metrics,
        rows=rows,
        bounds=[row(model) for model in runs.models if model.is_oracle],
        literature=runs.settings.get("literature", {}),
        remarks=[*([caveat] if caveat else []), *_undetectable_differences(rows, rules), *runs.remarks],
        rules=rules,
        family_size=family_size,
        training_std={name: math.sqrt(each.pooled.value) for name, each in metric_tests.items() if each.pooled},
        num_users=len(runs.cases),
        exclude_seen=runs.settings["evaluation"]["exclude_seen"],
        num_candidates=(runs.settings["evaluation"].get("candidates") or {}).get("num_candidates"),
        groups=runs.settings.get("groups", {}),
        data_sentences=_data_sentences(runs),
        dataset=runs.dataset_title,
    )


def _data_sentences(runs: LoadedRuns) -> tuple[str, ...]:
    sentences = [learning_data_sentence(runs.tested_models, runs.dataset)]
    return tuple(sentence for sentence in sentences if sentence)


Key = tuple[str, str]
"""A model and a metric."""


def _correct_family(
    tests: Mapping[Key, PairedTest],
    comparators: Mapping[str, ModelResults],
    metric_tests: Mapping[str, MetricTests],
    rules: Rules,
) -> tuple[dict[Key, float], int]:
    """Return the corrected p-values of the tests, and the size of the family that they are corrected for.

    With a baseline the family is these tests. Without one the comparator is the best model, chosen by the same data, so
    the family is all pairs of models under all metrics: whichever pairs the data choose, they are in it. The other
    pairs have p-values too in the t-test; in other tests, which take longer, they count as not rejected.
    """
    if rules.baseline is not None or rules.correction == "none" or not tests:
        return correct_tests(tests, rules.correction), len(tests)
    p_values = [test.p_value for test in tests.values()]
    if rules.test == "paired-t":
        for metric, each in metric_tests.items():
            best = comparators[metric].name
            p_values += [p_value for pair, p_value in each.pair_p_values().items() if best not in pair]
    family_size = sum(math.comb(len(each.models), 2) for each in metric_tests.values())
    return dict(zip(tests, correct(p_values, rules.correction, family_size), strict=False)), family_size


def _detectable(test: PairedTest, alpha: float, family_size: int) -> float:
    return detectable_difference(test.standard_error, test.degrees_of_freedom, alpha, family_size)


def _check_names(runs: LoadedRuns, baseline: str | None) -> None:
    names = [model.name for model in runs.models]
    if repeated := [name for name in names if names.count(name) > 1]:
        raise InputError(f"{runs.title}: two models are called {repeated[0]}; names must be unique")
    if baseline is not None and runs.find(baseline).is_oracle:
        raise InputError(f"{baseline} is the best possible ranking, not a model to be tested against")


def _comparator(models: list[ModelResults], metric: str, baseline: str | None) -> ModelResults:
    """Return the baseline if it is named, else the best model."""
    best = max(models, key=lambda model: float(np.mean(model.per_user(metric))))
    return next((model for model in models if model.name == baseline), best)


def _undetectable_differences(rows: list[Row], rules: Rules) -> list[str]:
    """Return remarks on differences that are not significant and too small for these users to show."""
    return [
        f"{row.name} and {cell.comparator}, {metric}: the difference of {abs(cell.test.difference.mean):.4f} is not "
        f"significant, and these data could hardly show one below {cell.detectable:.4f}"
        for row in rows
        for metric, cell in row.cells.items()
        if cell.test and cell.p_corrected is not None and cell.p_corrected >= rules.alpha
        if cell.detectable is not None and abs(cell.test.difference.mean) < cell.detectable
    ]
