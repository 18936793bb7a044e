"""Paired tests of every pair of models under one metric."""

from __future__ import annotations

import itertools
from dataclasses import dataclass

from evaluation.analysis.comparison import Rules
from evaluation.analysis.metric_tests import MetricTests
from evaluation.analysis.significance import PairedTest, correct_tests, paired_tests
from evaluation.results.load import LoadedRuns
from evaluation.table import Entry, Table, signed


@dataclass(frozen=True)
class Pairwise:
    """The tests of all pairs of models under one metric.

    Args:
        metric: name of the metric.
        names: of the models, in table order.
        tests: by (first, second), for the difference first minus second; each pair once.
        p_corrected: p-values corrected for all pairs, by (first, second).
        rules: of the tests.
        scope: what the tests cover, as a part of captions.
        run: name of the run.
    """

    metric: str
    names: list[str]
    tests: dict[tuple[str, str], PairedTest]
    p_corrected: dict[tuple[str, str], float]
    rules: Rules
    scope: str
    run: str = ""


def compare_pairs(runs: LoadedRuns, metric: str, rules: Rules) -> Pairwise:
    """Test every pair of models; p-values are corrected for all pairs."""
    models = MetricTests(runs.tested_models, metric)
    pairs = list(itertools.combinations(models.models, 2))
    found = paired_tests([models.pair(*pair) for pair in pairs], rules.test)
    tests = {(first.name, second.name): test for (first, second), test in zip(pairs, found, strict=True)}
    p_corrected = correct_tests(tests, rules.correction)
    return Pairwise(metric, list(models.values), tests, p_corrected, rules, models.scope(rules.test), runs.title)


def pairwise_table(pairs: Pairwise) -> Table:
    """Return the matrix of differences, row minus column; a star marks significant ones."""

    def entry(row: str, column: str) -> Entry:
        if row == column:
            return Entry("")
        key, sign = ((row, column), 1) if (row, column) in pairs.tests else ((column, row), -1)
        mark = "*" if pairs.p_corrected[key] < pairs.rules.alpha else ""
        return Entry(signed(sign * pairs.tests[key].difference.mean, ".4f"), mark=mark)

    star = pairs.rules.explain_star(f"{len(pairs.tests)} pairs", pairs.scope)
    return Table(
        label=f"{pairs.run}-pairs-{pairs.metric}",
        header=["", *pairs.names],
        blocks=[[[row, *(entry(row, column) for column in pairs.names)] for row in pairs.names]],
        caption=f"{pairs.metric}, row minus column; {star}.",
    )
