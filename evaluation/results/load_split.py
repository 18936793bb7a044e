"""Loads and splits the data of a run again, from the settings in recipe.json; no code of a results folder is run."""

from __future__ import annotations

from pathlib import Path

from aprec_like.datasets import Dataset
from aprec_like.datasets.cache import filter_cached
from aprec_like.errors import InputError
from aprec_like.filters import Filter
from aprec_like.recipe_classes import DATA_CLASSES
from aprec_like.settings import SettingsClasses, restore
from aprec_like.splits import Split, SplitRule, sample_cases
from evaluation.results.own_classes import known_classes
from evaluation.results.store import RunFolder


def load_split(run: RunFolder, data_dir: Path, own: SettingsClasses | None = None) -> Split:
    """Load and split the data of a run; raises `InputError` if it is not on disk, or not the same data.

    Args:
        run: the results folder.
        data_dir: folder of data files.
        own: classes of the recipe's own, as `load_own_classes` returns them.
    """
    settings, description = run.read_recipe(), run.read_dataset()
    classes = known_classes(settings, DATA_CLASSES, own or {})
    dataset = restore(settings.get("dataset"), classes)
    rule = restore(settings.get("split"), classes)
    filters = restore(settings.get("filters", []), classes)
    if not isinstance(dataset, Dataset) or not dataset.is_on_disk(data_dir):
        raise InputError(f"the data of {run.path.name} are not in {data_dir}; name their folder with --data")
    if not isinstance(rule, SplitRule) or not all(isinstance(each, Filter) for each in filters):
        raise InputError(f"{run.path}: its recipe.json has no split or filters that this version knows")
    interactions = filter_cached(dataset.load(data_dir), filters)
    evaluation = settings["evaluation"]
    split = sample_cases(rule.split(interactions), evaluation.get("users"), evaluation.get("seed", 1))
    digests = description["sha256"], description.get("split", {}).get("digest")
    if (interactions.digest(), split.digest()) != digests:
        raise InputError(f"{run.path}: was made with different data, or by a different version")
    return split
