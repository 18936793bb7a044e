"""The ladder of a recipe whose models change one setting at a time: each model tested against the one before it."""

from __future__ import annotations

import itertools

import numpy as np

from aprec_like.errors import InputError
from evaluation.analysis.comparison import Rules
from evaluation.analysis.main_table import format_p_value
from evaluation.analysis.significance import correct, paired_test
from evaluation.results.load import LoadedRuns
from evaluation.table import Entry, Table, TableRow


def ladder_table(runs: LoadedRuns, metric: str, rules: Rules) -> Table:
    """Return a table of the models in the recipe's order; p-values are corrected for all steps."""
    models = runs.tested_models
    if len(models) < 2:
        raise InputError(f"{runs.title}: a ladder needs two finished models. Received: {len(models)}")
    tests = [
        paired_test(model.per_user(metric), previous.per_user(metric), rules.test)
        for previous, model in itertools.pairwise(models)
    ]
    steps: list[TableRow] = [["", "", ""]]
    for test, p_value in zip(tests, correct([test.p_value for test in tests], rules.correction), strict=True):
        mark, difference = "*" if p_value < rules.alpha else "", test.difference
        interval = f"{difference.low:+.4f} to {difference.high:+.4f}"
        steps.append([Entry(f"{difference.mean:+.4f}", mark=mark), interval, format_p_value(p_value)])
    rows: list[TableRow] = []
    for model, step in zip(models, steps, strict=True):
        validation = "" if model.best_validation is None else f"{model.best_validation:.4f}"
        rows.append([model.name, validation, f"{np.mean(model.per_user(metric)):.4f}", *step])
    return Table(
        label=f"ladder-{metric}",
        header=["Model", "Best validation", metric, "Step", "95 % interval", "p"],
        blocks=[rows],
        caption=f"{metric} of every model and its difference to the one above it; "
        f"{rules.explain_star(f'{len(tests)} steps')}. Best validation: what the metric that chose the epoch reached.",
    )
