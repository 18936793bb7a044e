"""Smoke runs: shrinks a recipe so that it runs in seconds."""

from __future__ import annotations

import dataclasses
from pathlib import Path
from typing import Any

from aprec_like.datasets import Dataset, FirstUsers, Lengths, Simulated
from aprec_like.recipe import Recipe
from aprec_like.splits import LeaveOneOut

LIMITS = {
    "max_length": 16,
    "max_epochs": 2,
    "max_steps_per_epoch": 4,
    "batch_size": 64,
    "num_negatives": 16,
    "num_validation_users": 64,
    "depth": 20,
    "num_users": 1_000,
    "num_items": 5_000,
}
"""Maximum of the settings of these names."""

MAX_SIMULATED_ITEMS = 2_000
MAX_SIMULATED_LENGTH = 200


def shrink(recipe: Recipe, data_dir: Path) -> Recipe:
    """Return the recipe with fewer users, short sequences and a few training steps; its title, in captions, says so.

    Data that is not on disk is not downloaded but replaced by simulated data of similar shape.
    """
    small, title = _apply_limits(recipe), recipe.title or type(recipe.dataset).__name__
    if not isinstance(recipe.dataset, Simulated):
        on_disk = recipe.dataset.is_on_disk(data_dir)
        data = FirstUsers(recipe.dataset, recipe.filters) if on_disk else simulate_like(recipe.dataset)
        split = small.split if on_disk else LeaveOneOut(LIMITS["num_validation_users"])
        small = dataclasses.replace(small, dataset=data, filters=(), split=split)
        title = title if on_disk else f"simulated data in the place of {title}"
    return dataclasses.replace(small, published={}, literature={}, title=f"Smoke run, not a result: {title}")


def simulate_like(dataset: Dataset) -> Simulated:
    """Return simulated data with a dataset's mean sequence length and at most `MAX_SIMULATED_ITEMS` of its items."""
    sizes = dataset.publication.sizes if dataset.publication else None
    mean_length = sizes.interactions / sizes.users if sizes else 20.0
    num_items = min(sizes.items if sizes else MAX_SIMULATED_ITEMS, MAX_SIMULATED_ITEMS)
    longest = min(MAX_SIMULATED_LENGTH, num_items // 2)
    lengths = Lengths(median=mean_length, spread=0.5, minimum=min(5, longest), maximum=longest)
    return Simulated(num_users=LIMITS["num_users"], num_items=num_items, num_types=min(8, num_items), lengths=lengths)


def _apply_limits(value: Any) -> Any:
    """Return a copy of nested settings in which no number exceeds its limit."""
    if isinstance(value, dict):
        return {key: _apply_limits(item) for key, item in value.items()}
    if not dataclasses.is_dataclass(value) or isinstance(value, type):
        return value
    changes = {}
    for field in dataclasses.fields(value):
        setting = getattr(value, field.name)
        is_number = field.name in LIMITS and setting is not None
        limited = min(setting, LIMITS[field.name]) if is_number else _apply_limits(setting)
        if limited is not setting:
            changes[field.name] = limited
    return dataclasses.replace(value, **changes) if changes else value
