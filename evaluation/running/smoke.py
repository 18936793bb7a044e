"""Shrinking a recipe to seconds, to see that everything in it runs."""

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
"""The largest value that a setting of this name keeps."""

MAX_ITEMS_SIMULATED = 2_000
MAX_LENGTH_SIMULATED = 200


def shrink(recipe: Recipe, data_dir: Path) -> Recipe:
    """The same recipe on fewer users, with short sequences and a few steps of training.

    Data that is not on disk is not fetched: simulated data of its kind stands in for it.
    """
    small = _limited(recipe)
    if not isinstance(recipe.dataset, Simulated):
        on_disk = recipe.dataset.is_on_disk(data_dir)
        data = FirstUsers(recipe.dataset, recipe.filters) if on_disk else stand_in(recipe.dataset)
        split = small.split if on_disk else LeaveOneOut(LIMITS["num_validation_users"])
        small = dataclasses.replace(small, dataset=data, filters=(), split=split)
    return dataclasses.replace(small, published={}, literature={})


def stand_in(dataset: Dataset) -> Simulated:
    """Simulated data with the lengths of a dataset, as far as they are known, and some of its items."""
    sizes = dataset.publication.sizes if dataset.publication else None
    mean_length = sizes.interactions / sizes.users if sizes else 20.0
    num_items = min(sizes.items if sizes else MAX_ITEMS_SIMULATED, MAX_ITEMS_SIMULATED)
    longest = min(MAX_LENGTH_SIMULATED, num_items // 2)
    lengths = Lengths(median=mean_length, spread=0.5, minimum=min(5, longest), maximum=longest)
    return Simulated(num_users=LIMITS["num_users"], num_items=num_items, num_types=min(8, num_items), lengths=lengths)


def _limited(value: Any) -> Any:
    """A copy of nested settings in which no number exceeds its limit."""
    if isinstance(value, dict):
        return {key: _limited(item) for key, item in value.items()}
    if not dataclasses.is_dataclass(value) or isinstance(value, type):
        return value
    changes = {}
    for field in dataclasses.fields(value):
        setting = getattr(value, field.name)
        is_number = field.name in LIMITS and setting is not None
        limited = min(setting, LIMITS[field.name]) if is_number else _limited(setting)
        if limited is not setting:
            changes[field.name] = limited
    return dataclasses.replace(value, **changes) if changes else value
