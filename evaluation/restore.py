"""From recipe.json back to settings and data, through classes known here: no code of a results folder is ever run."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from pathlib import Path
from types import ModuleType
from typing import Any

from aprec_like import datasets, filters, splits
from aprec_like.datasets import Dataset
from aprec_like.errors import InputError
from aprec_like.filters import filtered
from aprec_like.splits import Split
from evaluation.documents import Json
from evaluation.store import RunFolder

Known = Mapping[str, type]
"""Frozen dataclasses of settings, by name."""


def classes_of(*modules: ModuleType) -> Known:
    """The dataclasses that modules hold."""
    return {
        name: value
        for module in modules
        for name, value in vars(module).items()
        if isinstance(value, type) and dataclasses.is_dataclass(value)
    }


DATA_CLASSES = classes_of(datasets, filters, splits)


def restore(value: Any, known: Known) -> Any:
    """The settings that `aprec_like.recipe.describe` wrote as `value`; raises `InputError` if they are not known."""
    if isinstance(value, list):
        return tuple(restore(item, known) for item in value)
    if not isinstance(value, dict):
        return value
    fields = {key: restore(item, known) for key, item in value.items() if key != "class"}
    if "class" not in value:
        return fields
    name = value["class"]
    if not isinstance(name, str) or name not in known:
        raise InputError(f"recipe.json has settings of the class {name!r}, which this version does not know")
    try:
        return known[name](**fields)
    except (TypeError, ValueError) as error:
        raise InputError(f"recipe.json has settings of {name} that this version does not know: {error}") from error


def settings_of(run: RunFolder) -> Json:
    """The recipe of a run as it was understood."""
    settings = run.read_recipe()
    if settings is None:
        raise InputError(f"{run.path}: is not a results folder (it has no recipe.json)")
    return settings


def load_split(run: RunFolder, data_dir: Path, known: Known = DATA_CLASSES) -> Split:
    """The data of a run, split as it was; raises `InputError` where it can't be had or is not the same."""
    settings, description = settings_of(run), run.read_dataset()
    dataset = restore(settings["dataset"], known)
    if not isinstance(dataset, Dataset) or not dataset.is_on_disk(data_dir):
        raise InputError(f"the data of {run.path.name} are not in {data_dir}; name their folder with --data")
    interactions = filtered(dataset.load(data_dir), restore(settings["filters"], known))
    split: Split = restore(settings["split"], known).split(interactions)
    if (interactions.digest(), split.digest()) != (description["sha256"], description["split"]["digest"]):
        raise InputError(f"{run.path}: was made with other data than is read now, or with another version")
    return split
