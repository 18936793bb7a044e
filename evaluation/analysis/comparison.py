"""Comparison of models: means, and paired tests of each model against the best one or a baseline."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np

from aprec_like.errors import InputError
from evaluation.analysis.comparison_result import ALPHA, Cell, Comparison, Row, Rules
from evaluation.analysis.metric_tests import MetricTests, correct_family
from evaluation.analysis.paper_claims import read_claims
from evaluation.analysis.significance import (
    caveat_of_test,
    paired_tests,
)
from evaluation.caveats.choice import choice_sentences
from evaluation.caveats.data import data_sentences
from evaluation.caveats.learning_data import learning_data_sentence
from evaluation.caveats.training import training_caveats
from evaluation.caveats.tuning import tuning_sentence, tuning_warnings
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
    pairs = {
        (model.name, metric): metric_tests[metric].pair(model, comparator)
        for metric, comparator in comparators.items()
        for model in models
        if model is not comparator
    }
    tests = dict(zip(pairs, paired_tests(list(pairs.values()), rules.test), strict=True))
    best = {metric: model.name for metric, model in comparators.items()} if rules.baseline is None else None
    p_corrected, family_size = correct_family(tests, best, metric_tests, rules.test, rules.correction)
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
            detectable=metric_tests[metric].detectable(model, comparators[metric], rules.alpha, num_corrected)
            if test
            else None,
            published=published.get(model.name, {}).get(metric),
        )

    def row(model: ModelResults) -> Row:
        cells = {name: cell(model, name) for name in runs.metrics}
        statuses = [folder.status() for folder in model.folders]
        caveats = (*model.caveats, *training_caveats(model.settings, statuses))
        return Row(model.name, model.seeds, cells, model.seconds_to_best, model.origin, caveats, model.tuning)

    rows = [row(model) for model in models]
    caveat = caveat_of_test(rules.test, rules.alpha, family_size, rules.correction) if tests else None
    return Comparison(
        run=runs.title,
        metrics=runs.metrics,
        rows=rows,
        bounds=[row(model) for model in runs.models if model.is_oracle],
        literature=runs.settings.get("literature", {}),
        remarks=[
            *tuning_warnings(models),
            *([caveat] if caveat else []),
            *_undetectable_differences(rows, runs.metrics, rules),
            *runs.remarks,
        ],
        rules=rules,
        family_size=family_size,
        training_std={name: math.sqrt(each.pooled.value) for name, each in metric_tests.items() if each.pooled},
        num_users=runs.num_users,
        exclude_seen=runs.settings["evaluation"]["exclude_seen"],
        num_candidates=(runs.settings["evaluation"].get("candidates") or {}).get("num_candidates"),
        groups=runs.settings.get("groups", {}),
        claims=read_claims(runs.settings),
        data_sentences=_data_sentences(runs),
        choices=choice_sentences(models, runs.metrics),
        dataset=runs.dataset_title,
        sample=_sample(runs),
    )


def _sample(runs: LoadedRuns) -> tuple[int, int] | None:
    split = runs.dataset.get("split", {})
    return (split["sampled_from"], split["sample_seed"]) if "sampled_from" in split else None


def _data_sentences(runs: LoadedRuns) -> tuple[str, ...]:
    learning = learning_data_sentence(runs.tested_models, runs.dataset)
    tuning = tuning_sentence(runs.tested_models)
    sentences = [sentence for sentence in (learning, tuning) if sentence]
    return (*sentences, *data_sentences(runs.dataset))


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


def _undetectable_differences(rows: list[Row], metrics: Sequence[str], rules: Rules) -> list[str]:
    """Return a remark on the differences that are not significant and too small for these users to show."""
    small: dict[str, list[str]] = {}
    for row in rows:
        for metric, cell in row.cells.items():
            is_insignificant = cell.p_corrected is not None and cell.p_corrected >= rules.alpha
            if is_insignificant and cell.test and abs(cell.test.difference.mean) < (cell.detectable or 0.0):
                small.setdefault(row.name, []).append(metric)
    if not small:
        return []
    texts = [name if len(found) == len(metrics) else f"{name} in {', '.join(found)}" for name, found in small.items()]
    comparator = rules.baseline or "the best"
    return [
        f"differences from {comparator} that are not significant, and smaller than these data could show: "
        + "; ".join(texts)
    ]
