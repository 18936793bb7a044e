"""Shrinking a recipe to seconds, to see that everything in it runs."""

from __future__ import annotations

import dataclasses
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from aprec_like.datasets import Dataset
from aprec_like.errors import InputError
from aprec_like.interactions import Interactions
from aprec_like.recipe import Recipe

LIMITS = {
    "max_length": 16,
    "max_epochs": 2,
    "max_steps_per_epoch": 4,
    "batch_size": 64,
    "num_negatives": 16,
    "num_validation_users": 64,
    "depth": 20,
}
"""The largest value that a setting of this name keeps."""

MAX_USERS = 1_000


@dataclass(frozen=True)
class FirstUsers(Dataset):
    """The first users of another dataset; the catalogue stays as it is."""

    dataset: Dataset
    num_users: int = MAX_USERS

    def load(self, data_dir: Path) -> Interactions:
        """Read the dataset, which must be on disk, and keep the first users."""
        if not self.dataset.is_on_disk(data_dir):
            raise InputError(
                f"{type(self.dataset).__name__} is not in {data_dir}; put it there or run without --smoke to fetch it"
            )
        whole = self.dataset.load(data_dir)
        users = np.arange(min(self.num_users, whole.num_users))
        kept = whole.histories(users)
        return Interactions(
            kept.items, kept.offsets, whole.user_ids[users], whole.item_ids, item_columns=whole.item_columns
        )

    def is_on_disk(self, data_dir: Path) -> bool:
        """Whether the whole dataset is."""
        return self.dataset.is_on_disk(data_dir)


def shrink(recipe: Recipe) -> Recipe:
    """The same recipe on fewer users, with short sequences and a few steps of training."""
    return dataclasses.replace(_limited(recipe), dataset=FirstUsers(recipe.dataset), published={}, literature={})


def _limited(value: Any) -> Any:
    """A copy of nested settings in which no number exceeds its limit."""
    if isinstance(value, dict):
        return {key: _limited(item) for key, item in value.items()}
    if not dataclasses.is_dataclass(value) or isinstance(value, type):
        return value
    changes = {}
    for field in dataclasses.fields(value):
        setting = getattr(value, field.name)
        limited = min(setting, LIMITS[field.name]) if field.name in LIMITS else _limited(setting)
        if limited is not setting:
            changes[field.name] = limited
    return dataclasses.replace(value, **changes) if changes else value
