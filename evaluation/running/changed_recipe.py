"""Whether results and checkpoints of a folder can stay beside a recipe: what may change, and what is refused."""

from __future__ import annotations

import difflib
import json
from typing import Any

from aprec_like.errors import InputError
from aprec_like.types import Json
from evaluation.results.identity import SHARED_SETTINGS, learns_validation
from evaluation.results.store import RunFolder


def check_unchanged(run: RunFolder, settings: Json, dataset: Json, kept: set[str]) -> Json:
    """Check that the folder's results and checkpoints have these settings and data; returns recipe.json."""
    try:
        stored, stored_data = run.read_recipe(), run.read_dataset()
    except InputError as error:
        raise InputError(f"{error}; --fresh trains all models again") from error
    for name in SHARED_SETTINGS:
        _check_equal(run, name, *(_without_metrics(each.get(name)) for each in (stored, settings)))
    models = stored_models(stored)
    for name in sorted(kept & set(settings["models"])):
        _check_equal(run, f"models[{name!r}]", models.get(name), settings["models"][name])
        _check_learned_data(run, name, models[name], stored.get("fit_on", "mixed"), settings["fit_on"])
    if (stored_data.get("sha256"), stored_data.get("split")) != (dataset["sha256"], dataset["split"]):
        raise InputError(f"{run.path}: has results on different data; --fresh trains again, --results DIR keeps both")
    return stored


def stored_models(recipe: Json) -> Json:
    """Return the settings in recipe.json of all models, those that were taken out of the recipe included."""
    return recipe["models"] | recipe.get("removed_models", {})


def _without_metrics(settings: Any) -> Any:
    """Return settings of an evaluation without its metrics, which follow from the stored ranks; others as they are."""
    if not isinstance(settings, dict):
        return settings
    return {name: value for name, value in settings.items() if name != "metrics"}


def _check_learned_data(run: RunFolder, name: str, model: Json, old: str, new: str) -> None:
    """Check that a model learned from the interactions that the recipe's `fit_on` names."""
    if learns_validation(model, old) != learns_validation(model, new):
        raise InputError(
            f"{run.path}: {name} was trained with fit_on={old!r}, and the recipe has fit_on={new!r}; --fresh trains "
            f"again, --results DIR keeps both"
        )


def _check_equal(run: RunFolder, name: str, old: object, new: object) -> None:
    """Check that a setting has not changed; the error shows the difference."""
    if old != new:
        before, after = (json.dumps(value, indent=1).splitlines() for value in (old, new))
        changes = [
            line
            for line in difflib.unified_diff(before, after, lineterm="", n=0)
            if not line.startswith(("---", "+++", "@@"))
        ]
        shown = "; ".join(" ".join(line.split()) for line in changes[:8])
        raise InputError(
            f"{run.path}: has results or checkpoints of another recipe; {name} has changed: {shown}; "
            f"--fresh trains again, --results DIR keeps both"
        )
