"""Comparison of models: means, and paired tests of each model against the best one or a baseline."""

from __future__ import annotations

import math
from collections.abc import Mapping

import numpy as np

from aprec_like.errors import InputError
from evaluation.analysis.comparison_result import ALPHA, Cell, Comparison, Row, Rules
from evaluation.analysis.metric_tests import MetricTests
from evaluation.analysis.significance import (
    PairedTest,
    caveat_of_test,
    correct,
    correct_tests,
    detectable_difference,
)
from evaluation.caveats.learning_data import learning_data_sentence
from evaluation.caveats.training import training_caveats
from evaluation.results.load import LoadedRuns, ModelResults

__all__ = ["ALPHA", "Cell", "Comparison", "Row", "Rules", "compare_models"]


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
