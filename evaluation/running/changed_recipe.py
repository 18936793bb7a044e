"""Whether results and checkpoints of a folder can stay beside a recipe: what may change, and what is refused."""

from __future__ import annotations

import difflib
import json
import math
from typing import Any

from aprec_like.errors import InputError
from aprec_like.training.checkpoints import has_checkpoint, without_limits
from aprec_like.types import Json
from evaluation.results.identity import NOT_RANKING, SHARED_SETTINGS, changed_code, learns_validation
from evaluation.results.store import ModelFolder, RunFolder


def check_unchanged(run: RunFolder, settings: Json, dataset: Json, kept: set[str]) -> Json:
    """Check that the folder's results and checkpoints have these settings and data; returns recipe.json."""
    try:
        stored, stored_data = run.read_recipe(), run.read_dataset()
    except InputError as error:
        raise InputError(f"{error}; --fresh trains all models again") from error
    for name in SHARED_SETTINGS:
        _check_equal(run, name, *(_of_ranks(each.get(name)) for each in (stored, settings)))
    models = stored_models(stored)
    for name in sorted(kept & set(settings["models"])):
        _check_model(run, name, models[name], settings["models"][name])
        _check_learned_data(run, name, models[name], stored.get("fit_on", "mixed"), settings["fit_on"])
    for name in changed_code(stored, settings, kept):
        raise InputError(
            f"{run.path}: the code of {name} is not the one that finished or started models were run with; put it "
            f"back, train again with --fresh, or keep both with --results DIR"
        )
    # Earlier versions stored the leakage of leave-one-out among the sizes of a temporal split.
    stored_split = {name: value for name, value in stored_data.get("split", {}).items() if name != "leave_one_out"}
    if (stored_data.get("sha256"), stored_split) != (dataset["sha256"], dataset["split"]):
        raise InputError(f"{run.path}: has results on different data; --fresh trains again, --results DIR keeps both")
    return stored


def _check_model(run: RunFolder, name: str, old: Json, new: Json) -> None:
    """Check that the settings of a model have not changed, but for limits of its training that may have grown."""
    place = f"models[{name!r}]"
    _check_equal(run, place, without_limits(old), without_limits(new))
    before, after = _limits(old), _limits(new)
    if any(new_limit < old_limit for old_limit, new_limit in zip(before, after, strict=True)):
        _check_equal(run, place, old, new)
    if before != after:
        for found, seed, folder in run.models():
            if found == name and goes_on(folder, new, math.inf) and not has_checkpoint(folder.checkpoint_path):
                raise InputError(
                    f"{folder.path}: the training can't go on, because its checkpoint was not kept (--keep-checkpoints "
                    f"keeps it); --fresh --only {name!r} trains again for seed {seed}"
                )


def goes_on(folder: ModelFolder, model: Json, time_limit: float) -> bool:
    """Return whether a finished training would go on with these limits.

    Args:
        folder: results folder of the model.
        model: settings of the model.
        time_limit: seconds of training.
    """
    try:
        finished = folder.as_finished()
    except InputError:
        return False
    status = finished.status() if finished else {}
    if "epochs" not in status:
        return False
    max_epochs, patience = _limits(model)
    epochs, reason = status["epochs"], status.get("stopped_by")
    if reason == "max_epochs":
        return bool(epochs < max_epochs)
    if reason == "early_stopping":
        return bool(epochs < max_epochs and epochs - status["best_epoch"] < patience)
    return reason == "time_limit" and bool(status.get("seconds_trained", math.inf) < time_limit)


def can_go_on(folder: ModelFolder, model: Json, time_limit: float) -> bool:
    """Return whether a finished training would go on with these limits, and has the state to go on from."""
    return has_checkpoint(folder.checkpoint_path) and goes_on(folder, model, time_limit)


def has_other_depth(folder: ModelFolder, model: Json, depth: int, stored_depth: int) -> bool:
    """Return whether a finished model must be ranked again, because its top items are more or fewer than `depth`.

    Args:
        folder: results folder of the model.
        model: settings of the model.
        depth: number of top items of the recipe.
        stored_depth: that of recipe.json, for results of earlier versions, whose status.json does not say it.

    Raises:
        InputError: if the weights of a network are not there.
    """
    found = folder.status().get("depth", stored_depth)
    if found != depth and model.get("class") == "Trained" and not folder.weights_path.is_file():
        raise InputError(
            f"{folder.path}: has the best {found} items of every user; for {depth} it must be ranked again, and its "
            f"weights are not there; put back depth={found}, or train again with --fresh"
        )
    return bool(found != depth)


def _limits(model: Json) -> tuple[float, float]:
    """Return the maximum number of epochs and the patience of a model; zeros for a counting model."""
    training = model.get("training") or {}
    return training.get("max_epochs", 0), (training.get("early_stopping") or {}).get("patience", 0)


def stored_models(recipe: Json) -> Json:
    """Return the settings in recipe.json of all models, those that were taken out of the recipe included."""
    return recipe["models"] | recipe.get("removed_models", {})


def _of_ranks(settings: Any) -> Any:
    """Return settings of an evaluation without those that need no training; others as they are."""
    if not isinstance(settings, dict):
        return settings
    return {name: value for name, value in settings.items() if name not in NOT_RANKING}


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
        raise InputError(
            f"{run.path}: has results or checkpoints of another recipe; {name} has changed: {show_changes(old, new)}; "
            f"--fresh trains again, --results DIR keeps both"
        )


def show_changes(old: object, new: object) -> str:
    """Return the first lines in which two JSON values differ, as one line."""
    before, after = (json.dumps(value, indent=1).splitlines() for value in (old, new))
    changes = [
        line
        for line in difflib.unified_diff(before, after, lineterm="", n=0)
        if not line.startswith(("---", "+++", "@@"))
    ]
    return "; ".join(" ".join(line.split()) for line in changes[:8])
