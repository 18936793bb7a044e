"""Classes that recipe.json may name: settings are restored through these alone, so no code of a results folder runs."""

from __future__ import annotations

from functools import cache

from aprec_like import datasets, filters, losses, splits
from aprec_like.negatives import Negatives
from aprec_like.settings import SettingsClasses, dataclasses_in

DATA_CLASSES: SettingsClasses = dataclasses_in(datasets, filters, splits)
"""Datasets, filters and splitting rules."""

LOSS_CLASSES: SettingsClasses = {**dataclasses_in(losses), "Negatives": Negatives}
"""Losses and the sampling distribution of their negatives."""


@cache
def recipe_classes() -> SettingsClasses:
    """Return the classes of data and models; imports TensorFlow, which `DATA_CLASSES` does not need."""
    from aprec_like import models

    return {**DATA_CLASSES, **dataclasses_in(models)}
