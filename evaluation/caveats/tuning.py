"""What the choice of each model's settings has cost, and whether the models of a table had the same budget."""

from __future__ import annotations

from collections.abc import Sequence

from aprec_like.types import Json
from evaluation.results.load import ModelResults, Origin


def tuning_text(origin: Origin, tuning: Json | None) -> str:
    """Return a cell of the table: "50 trials, 0.8 h", "none" for a network that was not tuned, empty for others."""
    if tuning is None:
        return "none" if origin == "trained" else ""
    return f"{_trials(tuning)}, {_hours(tuning)}"


def tuning_sentence(models: Sequence[ModelResults]) -> str | None:
    """Return the budgets of all networks for the notes of a table; `None` if none was tuned."""
    if not any(model.tuning for model in models):
        return None
    budgets: dict[str, list[str]] = {}
    for model in _networks(models):
        budgets.setdefault(_describe(model.tuning), []).append(model.name)
    return "tuned on validation: " + ", ".join(f"{' and '.join(names)} {text}" for text, names in budgets.items())


def tuning_warnings(models: Sequence[ModelResults]) -> list[str]:
    """Return warnings if some networks were tuned and others not, or with other budgets."""
    networks = _networks(models)
    tuned = [model for model in networks if model.tuning]
    others = [model.name for model in networks if not model.tuning]
    found = []
    if tuned and others:
        found.append(
            f"warning: {', '.join(model.name for model in tuned)} {_were(tuned)} tuned and {', '.join(others)} "
            f"{_were(others)} not; the table favours what was tuned"
        )
    if any(not _is_equal(tuned[0].tuning or {}, model.tuning or {}) for model in tuned[1:]):
        budgets = ", ".join(f"{model.name} {tuning_text(model.origin, model.tuning)}" for model in tuned)
        found.append(f"warning: the models were tuned with different budgets: {budgets}")
    return found


def _networks(models: Sequence[ModelResults]) -> list[ModelResults]:
    """Return the models that could have been tuned: trained here, or imported with a budget."""
    return [model for model in models if model.origin == "trained"]


def _were(models: Sequence[object]) -> str:
    return "were" if len(models) > 1 else "was"


def _is_equal(one: Json, other: Json) -> bool:
    """Return whether two budgets are equal: the same number of trials, or the same limit of hours."""
    if one["trials"] == other["trials"]:
        return True
    hours = one.get("max_hours")
    return hours is not None and hours == other.get("max_hours")


def _trials(tuning: Json) -> str:
    return f"{tuning['trials']:,} trial{'s' if tuning['trials'] != 1 else ''}"


def _hours(tuning: Json) -> str:
    hours = float(tuning["hours"])
    return f"{hours:.1f} h" if hours >= 0.1 else f"{hours:.2f} h"


def _describe(tuning: Json | None) -> str:
    """Return a budget in full: trials, the size of the space, epochs, hours."""
    if not tuning:
        return "not at all"
    size = tuning.get("num_combinations")
    space = "" if not tuning.get("num_settings") else f" of {tuning['num_settings']} settings"
    space += f" ({size:,} combinations)" if size else " (continuous)" if space else ""
    epochs = "" if tuning.get("epochs") is None else f", {tuning['epochs']:,} epochs"
    return f"{_trials(tuning)}{space}{epochs}, {_hours(tuning)}"
