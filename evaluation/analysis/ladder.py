"""The ladder of a recipe whose models change one setting at a time: what validation says of every change."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

from aprec_like.errors import InputError
from evaluation.analysis.comparison import Rules
from evaluation.analysis.metric_tests import MetricTests
from evaluation.results.load import LoadedRuns, ModelResults
from evaluation.table import Table, TableRow, signed


def ladder_table(runs: LoadedRuns, metric: str, rules: Rules) -> Table:
    """Return a table of the models in the recipe's order: validation decides on each change, the test is shown beside.

    A step is the difference to the model that a model was made from: of those above it the one with the fewest other
    settings, the nearest of equals. Kept are the model with the best validation value and those it was made from.

    Validation values of single users are not stored. The half-width of a step is that of as many users as were
    validated, with the spread of the two models' differences among the test users and between trainings.
    """
    models = runs.tested_models
    if len(models) < 2:
        raise InputError(f"{runs.title}: a ladder needs two finished models. Received: {len(models)}")
    tests = MetricTests(models, metric)
    num_users = runs.folders[0].read_dataset().get("split", {}).get("validation_users") or 0
    origins = [None, *(_origin(models[:place], model) for place, model in enumerate(models) if place)]
    kept = _kept(models, origins)
    rows: list[TableRow] = []
    for place, (model, origin) in enumerate(zip(models, origins, strict=True)):
        step = ["", "", ""]
        if origin is not None:
            step = _step_texts(tests, models[origin], model, num_users, rules.alpha)
        validation, value = model.best_validation, tests.interval(model)
        rows.append([
            model.name, "" if origin is None else models[origin].name,
            "" if validation is None else f"{validation:.4f}", *step, "yes" if place in kept else "no",
            f"{value.mean:.4f}", f"{value.low:.4f} to {value.high:.4f}",
        ])  # fmt: skip
    scope = tests.scope("paired-t")
    return Table(
        label=f"{runs.title}-ladder-{metric}",
        header=[
            "Model",
            "From",
            "Validation",
            "Step",
            "Half-width",
            "Preferred",
            "Kept",
            f"Test {metric}",
            "95 % interval",
        ],
        blocks=[rows],
        caption="Every model, its best validation value, and the difference to the model that it was made from: of "
        "those above it the one with the fewest other settings. Kept is the way to the best validation value; other "
        "models are shown because they were tried. Validation alone "
        f"decides: a step is preferred if it exceeds its {100 * (1 - rules.alpha):g} % half-width ({scope}), which is "
        f"that of {num_users:,} validation users whose differences spread as those of the test users. Test values "
        "describe the chosen model and are no reason to choose it.",
    )


def _origin(above: Sequence[ModelResults], model: ModelResults) -> int:
    """Return the place of the model above with the fewest other settings, the nearest of equals."""
    return min(range(len(above)), key=lambda place: (num_differences(above[place].settings, model.settings), -place))


def num_differences(settings: Any, others: Any) -> int:
    """Return in how many settings two models differ; a part of another class, or that one lacks, counts once."""
    if not isinstance(settings, dict) or not isinstance(others, dict) or settings.get("class") != others.get("class"):
        return int(settings != others)
    return sum(num_differences(settings.get(name), others.get(name)) for name in {*settings, *others})


def _kept(models: Sequence[ModelResults], origins: Sequence[int | None]) -> set[int]:
    """Return the places of the model with the best validation value and of those that it was made from."""
    place: int | None = max(range(len(models)), key=lambda number: models[number].best_validation or -math.inf)
    found: set[int] = set()
    while place is not None:
        found.add(place)
        place = origins[place]
    return found


def _step_texts(
    tests: MetricTests, previous: ModelResults, model: ModelResults, num_users: int, alpha: float
) -> list[str]:
    """Return the step of validation, its half-width, and whether validation prefers the model."""
    before, after = previous.best_validation, model.best_validation
    if before is None or after is None:
        return ["", "", ""]
    step = after - before
    if num_users < 2 or {_validation_metric(previous), _validation_metric(model)} != {tests.metric}:
        return [signed(step, ".4f"), "", ""]
    error = tests.difference_error(model, previous, num_users)
    half_width = error.half_width(1 - alpha)
    preferred = "yes" if step > half_width else "no" if step < -half_width else "not clearly"
    return [signed(step, ".4f"), f"{half_width:.4f}", preferred]


def _validation_metric(model: ModelResults) -> str:
    """Return the name of the metric that chose the epoch; empty without early stopping."""
    return str(((model.settings.get("training") or {}).get("early_stopping") or {}).get("metric", ""))
