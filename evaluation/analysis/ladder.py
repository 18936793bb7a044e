"""The ladder of a recipe whose models change one setting at a time: what validation says of every change."""

from __future__ import annotations

import itertools

from aprec_like.errors import InputError
from evaluation.analysis.comparison import Rules
from evaluation.analysis.metric_tests import MetricTests
from evaluation.results.load import LoadedRuns, ModelResults
from evaluation.table import Table, TableRow


def ladder_table(runs: LoadedRuns, metric: str, rules: Rules) -> Table:
    """Return a table of the models in the recipe's order: validation decides on each change, the test is shown beside.

    Validation values of single users are not stored. The half-width of a step is that of as many users as were
    validated, with the spread of the two models' differences among the test users and between trainings.
    """
    models = runs.tested_models
    if len(models) < 2:
        raise InputError(f"{runs.title}: a ladder needs two finished models. Received: {len(models)}")
    tests = MetricTests(models, metric)
    num_users = runs.folders[0].read_dataset().get("split", {}).get("validation_users") or 0
    steps = [["", "", ""]]
    for previous, model in itertools.pairwise(models):
        steps.append(_step_texts(tests, previous, model, num_users, rules.alpha))
    rows: list[TableRow] = []
    for model, step in zip(models, steps, strict=True):
        validation, value = model.best_validation, tests.interval(model)
        interval = f"{value.low:.4f} to {value.high:.4f}"
        rows.append([
            model.name, "" if validation is None else f"{validation:.4f}", *step, f"{value.mean:.4f}", interval
        ])  # fmt: skip
    scope = tests.scope("paired-t")
    return Table(
        label=f"{runs.title}-ladder-{metric}",
        header=["Model", "Validation", "Step", "Half-width", "Preferred", f"Test {metric}", "95 % interval"],
        blocks=[rows],
        caption="Every model, its best validation value, and the difference to the model above it. Validation alone "
        f"decides: a step is preferred if it exceeds its {100 * (1 - rules.alpha):g} % half-width ({scope}), which is "
        f"that of {num_users:,} validation users whose differences spread as those of the test users. Test values "
        "describe the chosen model and are no reason to choose it.",
    )


def _step_texts(
    tests: MetricTests, previous: ModelResults, model: ModelResults, num_users: int, alpha: float
) -> list[str]:
    """Return the step of validation, its half-width, and whether validation prefers the model."""
    before, after = previous.best_validation, model.best_validation
    if before is None or after is None:
        return ["", "", ""]
    step = after - before
    if num_users < 2 or {_validation_metric(previous), _validation_metric(model)} != {tests.metric}:
        return [f"{step:+.4f}", "", ""]
    error = tests.difference_error(model, previous, num_users)
    half_width = error.half_width(1 - alpha)
    preferred = "yes" if step > half_width else "no" if step < -half_width else "not clearly"
    return [f"{step:+.4f}", f"{half_width:.4f}", preferred]


def _validation_metric(model: ModelResults) -> str:
    """Return the name of the metric that chose the epoch; empty without early stopping."""
    return str(((model.settings.get("training") or {}).get("early_stopping") or {}).get("metric", ""))
