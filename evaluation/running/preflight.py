"""Before a run: what it is of, whether that fits what its folder holds, and whether there is room on the disk."""

from __future__ import annotations

import difflib
import json
import shutil
import sys
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from pathlib import Path

import numpy as np
import pandas as pd

from aprec_like.datasets import Sizes
from aprec_like.devices import has_gpu
from aprec_like.errors import InputError
from aprec_like.files import StorageError, remove_parts
from aprec_like.interactions import Interactions
from aprec_like.recipe import Recipe, Trained
from aprec_like.settings import describe
from aprec_like.splits import Split, TemporalSplit, leave_one_out_leakage
from aprec_like.training.checkpoints import has_checkpoint
from aprec_like.types import Json
from evaluation.results.environment import describe_environment, memory_bytes
from evaluation.results.store import ModelFolder, RunFolder, check_names
from evaluation.running.plan import batch_size_within, memory_savers, predict_disk, predict_memory

SHARED_SETTINGS = ("dataset", "filters", "split", "evaluation")
"""What all models of a run have in common; results made with other ones can't stand in the same table."""

SECONDS_PER_DAY = 86_400
TENSORFLOW_BYTES = 1 << 30
"""About what TensorFlow and a small dataset take before any model does."""

Job = tuple[str, int]
"""A model's name and a seed."""


@dataclass(frozen=True, eq=False)
class Data:
    """The data of a run, read and checked."""

    interactions: Interactions
    split: Split
    description: Json


def read_data(recipe: Recipe, data_dir: Path) -> Data:
    """Load and split the data, and say what it is; raises `InputError` before anything is written."""
    check_names(recipe.models)
    interactions = recipe.load(data_dir)
    split = recipe.split.split(interactions)
    description = describe_data(recipe, interactions, split)
    print(
        f"{type(recipe.dataset).__name__}: {interactions.num_users:,} users, {interactions.num_items:,} items, "
        f"{interactions.num_interactions:,} interactions",
        file=sys.stderr,
    )
    if leakage := description["split"].get("leave_one_out"):
        print(
            f"leave-one-out would learn from the future: {leakage['after_a_target']:,} of its "
            f"{leakage['train_interactions']:,} training interactions lie after a test target",
            file=sys.stderr,
        )
    return Data(interactions, split, description)


def prepare(
    run: RunFolder, recipe: Recipe, source: bytes, data: Data, jobs: Sequence[Job], *, is_fresh: bool
) -> list[Job]:
    """Refuse what does not fit the folder, clear away what is to be made again, and write the run's own files.

    Returns the jobs that are not finished.
    """
    settings = describe(recipe) | {"columns": list(recipe.evaluation.columns)}
    redone = jobs if is_fresh else []
    kept = {name for name, seed, folder in run.models() if _is_kept(folder) and (name, seed) not in redone}
    if kept:
        old = _check_unchanged(run, settings, data.description, kept)
        settings["models"] |= {name: was for name, was in old.items() if name in kept}
    pending = [(name, seed) for name, seed in jobs if is_fresh or not _is_finished(run.model(name, seed))]
    names, of_data = [name for name, _ in pending], data.interactions
    sizes = Sizes(of_data.num_users, of_data.num_items, of_data.num_interactions)
    _check_disk(run, recipe, sizes, names)
    _check_memory(recipe, sizes, names)
    # First of all, so that results of old settings never stand beside the new ones.
    for name, seed in redone:
        run.model(name, seed).remove()
    remove_parts(run.path)
    run.write_recipe(source, settings)
    run.write_cases(describe_cases(data.split))
    run.write_items(describe_items(data.split))
    run.write_dataset(data.description)
    run.write_environment(describe_environment())
    return pending


def _is_finished(folder: ModelFolder) -> bool:
    """Whether a model's results are complete; a damaged status is said, and counts as none."""
    try:
        return folder.is_finished()
    except InputError as error:
        print(f"{error}; the model counts as unfinished", file=sys.stderr)
        return False


def _is_kept(folder: ModelFolder) -> bool:
    """Whether a model has results or progress that other settings would make worthless; a failed one may be changed."""
    try:
        state = folder.status()["state"]
    except InputError:
        state = "damaged"
    return state == "finished" or (state != "failed" and has_checkpoint(folder.checkpoint_path))


def _check_disk(run: RunFolder, recipe: Recipe, sizes: Sizes, names: Sequence[str]) -> None:
    """There must be room for what is still to be written."""
    needed, free = predict_disk(recipe, names, sizes), shutil.disk_usage(run.path).free
    if names and needed > free:
        raise StorageError(
            f"{run.path}: this run needs about {needed / 2**30:.2f} GiB on disk, and {free / 2**30:.2f} GiB are free; "
            f"make room, or choose another disk with --results DIR"
        )


def _check_memory(recipe: Recipe, sizes: Sizes, names: Sequence[str]) -> None:
    """A model must fit into memory, TensorFlow beside it; a GPU's own memory is not looked at."""
    available = memory_bytes()
    if available is None or has_gpu():
        return
    for name in dict.fromkeys(names):
        model = recipe.models[name]
        if not isinstance(model, Trained) or (needed := predict_memory(model, sizes)) <= available - TENSORFLOW_BYTES:
            continue
        fitting = batch_size_within(model, sizes, available - TENSORFLOW_BYTES)
        hint = f"batch_size={fitting} would fit" if fitting else f"what helps: {memory_savers(model)}"
        raise InputError(
            f"{name} needs about {needed / 2**30:.1f} GiB of memory beside TensorFlow, and this machine has "
            f"{available / 2**30:.1f} GiB; {hint}; --only runs the other models"
        )


def describe_data(recipe: Recipe, interactions: Interactions, split: Split) -> Json:
    """What dataset.json says: which data this is, beyond doubt."""
    leakage = leave_one_out_leakage(interactions) if isinstance(recipe.split, TemporalSplit) else None
    return {
        "dataset": describe(recipe.dataset),
        "filters": describe(recipe.filters),
        "notes": list(recipe.dataset.notes),
        "users": interactions.num_users,
        "items": interactions.num_items,
        "interactions": interactions.num_interactions,
        "sha256": interactions.digest(),
        "tied_share": interactions.tied_share(),
        "split": {
            "train_interactions": split.train.num_interactions,
            "validation_users": len(split.validation),
            "test_users": len(split.test),
            "digest": split.digest(),
            **({"leave_one_out": asdict(leakage)} if leakage else {}),
        },
    }


def describe_cases(split: Split) -> pd.DataFrame:
    """One row per test user, in the order of per_user.parquet: what the user and the target are like."""
    known, users, targets = split.test.known, split.test.users, split.test.targets
    lengths = known.lengths[users]
    columns = {
        "user": known.user_ids[users],
        "target": known.item_ids[targets],
        "history_length": lengths,
        "target_count": known.item_counts()[targets],
    }
    if known.timestamps is not None:
        spans = known.timestamps[known.offsets[1:][users] - 1] - known.timestamps[known.offsets[:-1][users]]
        columns["activity"] = lengths / np.maximum(1, spans / SECONDS_PER_DAY)
    return pd.DataFrame(columns)


def describe_items(split: Split) -> pd.DataFrame:
    """One row per item of the catalogue."""
    known = split.test.known
    return pd.DataFrame({"item": known.item_ids, "count": known.item_counts(), **known.item_columns})


def _check_unchanged(run: RunFolder, settings: Json, dataset: Json, kept: set[str]) -> Json:
    """Results and progress in the folder must have been made with these settings and this data; returns the models."""
    try:
        old, was = run.read_recipe(), run.read_dataset()
    except InputError as error:
        raise InputError(f"{error}; --fresh trains all models again") from error
    for name in SHARED_SETTINGS:
        _refuse_change(run, name, old.get(name), settings[name])
    models: Json = old.get("models", {})
    for name in sorted(kept & set(settings["models"])):
        _refuse_change(run, f"models[{name!r}]", models.get(name), settings["models"][name])
    if (was.get("sha256"), was.get("split")) != (dataset["sha256"], dataset["split"]):
        raise InputError(
            f"{run.path}: holds results on other data than is read now; --fresh trains again, --results DIR keeps both"
        )
    return models


def _refuse_change(run: RunFolder, name: str, old: object, new: object) -> None:
    if old != new:
        before, after = (json.dumps(value, indent=1).splitlines() for value in (old, new))
        changes = [
            line
            for line in difflib.unified_diff(before, after, lineterm="", n=0)
            if not line.startswith(("---", "+++", "@@"))
        ]
        shown = "; ".join(" ".join(line.split()) for line in changes[:8])
        raise InputError(
            f"{run.path}: holds results or progress of another recipe; {name} has changed: {shown}; "
            f"--fresh trains again, --results DIR keeps both"
        )
