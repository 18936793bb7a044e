"""The budget with which a model's settings were chosen on validation, and recipes with the settings so chosen."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from aprec_like.recipe.space import with_settings
from aprec_like.training.settings import Trained

if TYPE_CHECKING:
    from aprec_like.recipe.recipe import Recipe


@dataclass(frozen=True)
class TuningBudget:
    """What it cost to choose the settings of a model; the table shows it beside the model's values.

    `python -m evaluation.tune` writes it; for a model that was tuned elsewhere it can be declared in the recipe.

    Args:
        trials: number of settings that were tried, those that were ended early or failed included.
        hours: hours of their training and validation.
        epochs: number of their epochs; `None` if it is not known.
        num_settings: number of searched settings; `None` if it is not known.
        num_combinations: number of points of the space; `None` if it is not finite or not known.
        max_trials: the number of trials that was allowed; `None` if it was not limited.
        max_hours: the hours that were allowed; `None` if they were not limited.
    """

    trials: int
    hours: float
    epochs: int | None = None
    num_settings: int | None = None
    num_combinations: int | None = None
    max_trials: int | None = None
    max_hours: float | None = None

    def __post_init__(self) -> None:
        if self.trials < 1 or self.hours < 0:
            raise ValueError(f"TuningBudget needs at least one trial and no negative hours. Received: {self}")


def tuned_recipe(
    recipe: Recipe, settings: Mapping[str, Mapping[str, Any]], budgets: Mapping[str, TuningBudget]
) -> Recipe:
    """Return a recipe with other settings of its models, and the budgets with which they were chosen.

    Args:
        recipe: the recipe that was tuned.
        settings: by name of the model, values by name as in its search space.
        budgets: by name of the model.

    Raises `ValueError` for a name that no network of the recipe has.
    """
    models = dict(recipe.models)
    for name, values in settings.items():
        model = models.get(name)
        if not isinstance(model, Trained):
            raise ValueError(f"tuned_recipe needs names of networks of the recipe. Received: {name!r}")
        models[name] = with_settings(model, values)
    return replace(recipe, models=models, tuning={**recipe.tuning, **budgets})
