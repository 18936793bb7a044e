"""What each change brought: every model beside the one before it."""

from __future__ import annotations

import itertools

import numpy as np

from aprec_like.errors import InputError
from evaluation.analysis.comparison import Rules
from evaluation.analysis.main_table import p_text
from evaluation.analysis.significance import TEST_NAMES, correct, paired_test
from evaluation.results.load import LoadedRuns
from evaluation.table import Entry, Line, Table


def ladder_table(runs: LoadedRuns, metric: str, rules: Rules) -> Table:
    """The models in the order of the recipe, each tested against the one before it; the family is all steps."""
    rungs = [model for model in runs.models if not model.is_oracle]
    if len(rungs) < 2:
        raise InputError(f"{runs.title}: a ladder needs two finished models. Received: {len(rungs)}")
    tests = [
        paired_test(above.per_user(metric), below.per_user(metric), rules.test)
        for below, above in itertools.pairwise(rungs)
    ]
    steps: list[Line] = [["", "", ""]]
    for test, p_value in zip(tests, correct([test.p_value for test in tests], rules.correction), strict=True):
        mark, difference = "*" if p_value < rules.alpha else "", test.difference
        interval = f"{difference.low:+.4f} to {difference.high:+.4f}"
        steps.append([Entry(f"{difference.mean:+.4f}", mark=mark), interval, p_text(p_value)])
    lines: list[Line] = []
    for model, step in zip(rungs, steps, strict=True):
        validation = "" if model.best_validation is None else f"{model.best_validation:.4f}"
        lines.append([model.name, validation, f"{np.mean(model.per_user(metric)):.4f}", *step])
    return Table(
        label=f"ladder-{metric}",
        header=["Model", "Best validation", metric, "Step", "95 % interval", "p"],
        blocks=[lines],
        caption=f"{metric} of every model and its difference to the one above it; * differs "
        f"({TEST_NAMES[rules.test]}, p < {rules.alpha:g}, {rules.correction} over {len(tests)} steps). Best "
        "validation: what the metric that chose the epoch reached.",
    )
