"""From recipe.json back to settings and data, through classes known here: no code of a results folder is ever run."""

from __future__ import annotations

from pathlib import Path

from aprec_like.datasets import Dataset
from aprec_like.errors import InputError
from aprec_like.filters import apply_filters
from aprec_like.recipe_classes import DATA_CLASSES
from aprec_like.settings import restore
from aprec_like.splits import Split
from evaluation.results.store import RunFolder


def load_split(run: RunFolder, data_dir: Path) -> Split:
    """The data of a run, split as it was; raises `InputError` where it can't be had or is not the same."""
    settings, description = run.read_recipe(), run.read_dataset()
    dataset = restore(settings["dataset"], DATA_CLASSES)
    if not isinstance(dataset, Dataset) or not dataset.is_on_disk(data_dir):
        raise InputError(f"the data of {run.path.name} are not in {data_dir}; name their folder with --data")
    interactions = apply_filters(dataset.load(data_dir), restore(settings["filters"], DATA_CLASSES))
    split: Split = restore(settings["split"], DATA_CLASSES).split(interactions)
    if (interactions.digest(), split.digest()) != (description["sha256"], description["split"]["digest"]):
        raise InputError(f"{run.path}: was made with other data than is read now, or with another version")
    return split
