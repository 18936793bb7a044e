"""Preflight checks: data, settings against the results folder, disk, memory."""

from __future__ import annotations

import math
import shutil
import sys
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path

from aprec_like.datasets import Sizes
from aprec_like.errors import InputError
from aprec_like.files import StorageError, refuse_links, remove_part_files
from aprec_like.interactions import Interactions
from aprec_like.recipe import Recipe, Trained
from aprec_like.recipe.own_code import describe_code
from aprec_like.settings import describe
from aprec_like.splits import Split
from aprec_like.training.checkpoints import has_checkpoint
from aprec_like.types import Json
from evaluation.caveats.data import data_sentences
from evaluation.results.environment import describe_environment
from evaluation.results.folder_names import title_of_data
from evaluation.results.identity import identify
from evaluation.results.store import ModelFolder, RunFolder, check_names
from evaluation.results.user_columns import read_metric_values
from evaluation.running.changed_recipe import can_go_on, check_unchanged, has_other_depth, stored_models
from evaluation.running.data_description import describe_cases, describe_data, describe_histories, describe_items
from evaluation.running.plan import memory_shortages, predict_disk
from evaluation.running.result_tables import summarise

ModelAndSeed = tuple[str, int]
"""A model's name and a training seed."""


@dataclass(frozen=True, eq=False)
class RunData:
    """The loaded and split data of a run, with the content of dataset.json."""

    interactions: Interactions
    split: Split
    description: Json


def load_data(recipe: Recipe, data_dir: Path) -> RunData:
    """Load and split the data of a recipe, and print its sizes to standard error."""
    check_names(recipe.models)
    interactions = recipe.load(data_dir)
    split = recipe.split_interactions(interactions)
    description = describe_data(recipe, interactions, split)
    print(
        f"{title_of_data(describe(recipe))}: {interactions.num_users:,} users, {interactions.num_items:,} items, "
        f"{interactions.num_interactions:,} interactions",
        file=sys.stderr,
    )
    for sentence in data_sentences(description):
        print(sentence, file=sys.stderr)
    return RunData(interactions, split, description)


def prepare(
    run: RunFolder,
    recipe: Recipe,
    source: bytes,
    data: RunData,
    jobs: Sequence[ModelAndSeed],
    *,
    is_fresh: bool,
    time_limit: float = math.inf,
    num_at_once: int = 1,
) -> list[ModelAndSeed]:
    """Check that a run fits its results folder, the disk and memory; then write the files of the run.

    Args:
        run: the results folder.
        recipe: the recipe.
        source: content of the recipe file.
        data: what `load_data` returned.
        jobs: models and seeds to run.
        is_fresh: whether to remove their results and train again.
        time_limit: seconds of training of each model.
        num_at_once: maximum number of models that train at once.

    Returns:
        The jobs that are not finished, or go on because a limit of their training has grown; and all finished models
        that must be ranked again, because the recipe's `depth` has changed.
    """
    refuse_links(run.path)
    settings = describe(recipe) | {"columns": list(recipe.evaluation.columns), "run": run.path.name}
    if code := describe_code(recipe):
        settings["code"] = code
    removed = jobs if is_fresh else []
    kept = {name for name, seed, folder in run.models() if _is_kept(folder) and (name, seed) not in removed}
    ranked_again: list[ModelAndSeed] = []
    if kept:
        stored = check_unchanged(run, settings, data.description, kept)
        ranked_again = _find_other_depths(run, stored, settings, removed)
        settings["run"] = stored.get("run", run.path.name)  # the folder may have been renamed
        taken_out = {name: model for name, model in stored_models(stored).items() if name in kept - set(recipe.models)}
        if taken_out:
            settings["removed_models"] = taken_out
            _keep_code(settings, stored, taken_out)
            print(f"no longer in the recipe and the table, kept in the folder: {', '.join(taken_out)}", file=sys.stderr)
        _update_identities(run, stored, settings, data.description, removed)
        if stored["columns"] != settings["columns"]:
            _update_metrics(run, recipe, removed)
    _verify_finished(run, settings, data.description, removed)
    pending = [
        (name, seed)
        for name, seed in dict.fromkeys([*jobs, *ranked_again])
        if is_fresh
        or not _is_finished(run.model(name, seed))
        or (name, seed) in ranked_again
        or can_go_on(run.model(name, seed), settings["models"][name], time_limit)
    ]
    names, interactions = [name for name, _ in pending], data.interactions
    sizes = Sizes(interactions.num_users, interactions.num_items, interactions.num_interactions)
    _check_disk(run, recipe, sizes, names, num_at_once)
    _check_memory(recipe, sizes, names)
    _check_times(recipe, interactions, names)
    # Before the new recipe is written, so that no results of old settings remain beside it.
    for name, seed in removed:
        run.model(name, seed).remove()
    remove_part_files(run.path)
    run.write_recipe(source, settings)
    run.write_cases(describe_cases(data.split))
    run.write_items(describe_items(data.split))
    run.write_histories(describe_histories(data.split))
    run.write_dataset(data.description)
    run.write_environment(describe_environment())
    return pending


def _update_identities(
    run: RunFolder, stored: Json, settings: Json, dataset: Json, removed: Sequence[ModelAndSeed]
) -> None:
    """Write the new settings' digest to finished models whose training had smaller limits."""
    for name, seed, folder in run.models():
        has_grown = name in settings["models"] and stored_models(stored).get(name) != settings["models"][name]
        if has_grown and (name, seed) not in removed and _is_readable_and_finished(folder):
            folder.replace_identity(identify(settings, dataset, name, seed))


def _update_metrics(run: RunFolder, recipe: Recipe, removed: Sequence[ModelAndSeed]) -> None:
    """Compute the recipe's metrics of finished models from their stored ranks."""
    for name, seed, folder in run.models():
        if name in recipe.models and (name, seed) not in removed and _is_readable_and_finished(folder):
            with folder.open_per_user() as columns:
                values = read_metric_values(columns, recipe.evaluation.columns)
            folder.replace_metrics(summarise(values, recipe.evaluation))


def _keep_code(settings: Json, stored: Json, names: Iterable[str]) -> None:
    """Keep the digests of the code of models that were taken out of the recipe, for when they are put back."""
    kept = {name: code for name, code in stored.get("code", {}).get("models", {}).items() if name in names}
    if kept:
        code = settings.setdefault("code", {})
        code["models"] = code.get("models", {}) | kept


def _find_other_depths(
    run: RunFolder, stored: Json, settings: Json, removed: Sequence[ModelAndSeed]
) -> list[ModelAndSeed]:
    """Return the finished models whose stored rankings have another depth than the recipe, which each folder keeps."""
    depth, stored_depth = (each["evaluation"]["depth"] for each in (settings, stored))
    finished = [
        (name, seed, folder)
        for name, seed, folder in run.models()
        if (name, seed) not in removed and _is_readable_and_finished(folder)
    ]
    found = [
        (name, seed)
        for name, seed, folder in finished
        if name in settings["models"] and has_other_depth(folder, settings["models"][name], depth, stored_depth)
    ]
    for _, _, folder in finished:
        if depth != stored_depth and "depth" not in folder.status():
            folder.write_depth(stored_depth)
    return found


def _verify_finished(run: RunFolder, settings: Json, dataset: Json, removed: Sequence[ModelAndSeed]) -> None:
    """Check that the finished models that stay are those that their folders say, with all their files."""
    for name, seed, folder in run.models():
        if (name, seed) not in removed and name in settings["models"] and _is_readable_and_finished(folder):
            folder.check_identity(identify(settings, dataset, name, seed))
            if missing := folder.verify():
                print(f"{name}, seed {seed}: has no {', '.join(missing)}, as in a published folder", file=sys.stderr)


def _is_readable_and_finished(folder: ModelFolder) -> bool:
    try:
        return folder.is_finished()
    except InputError:
        return False


def _is_finished(folder: ModelFolder) -> bool:
    """Return whether a model's results are complete; a damaged status is printed and counts as unfinished."""
    try:
        return folder.is_finished()
    except InputError as error:
        print(f"{error}; the model counts as unfinished", file=sys.stderr)
        return False


def _is_kept(folder: ModelFolder) -> bool:
    """Return whether a model has results or checkpoints that its settings must still match; failed ones may change."""
    try:
        state = folder.status()["state"]
    except InputError:
        state = "damaged"
    is_resumed = state != "failed" and has_checkpoint(folder.checkpoint_path)
    return state == "finished" or is_resumed or (state != "damaged" and folder.as_finished() is not None)


def _check_disk(run: RunFolder, recipe: Recipe, sizes: Sizes, names: Sequence[str], num_at_once: int) -> None:
    """Check that the disk has room for the files still to be written."""
    needed, free = predict_disk(recipe, names, sizes, num_at_once), shutil.disk_usage(run.path).free
    if names and needed > free:
        raise StorageError(
            f"{run.path}: this run needs about {format_bytes(needed)} on disk, and {format_bytes(free)} are free; "
            f"make room, or choose another disk with --results DIR"
        )


def format_bytes(num_bytes: int) -> str:
    """Return a number of bytes in the largest unit that it has at least one of, such as 1.5 GiB or 96.0 KiB."""
    for exponent, unit in ((30, "GiB"), (20, "MiB"), (10, "KiB")):
        if num_bytes >= 2**exponent:
            return f"{num_bytes / 2**exponent:.1f} {unit}"
    return f"{num_bytes} bytes"


def _check_memory(recipe: Recipe, sizes: Sizes, names: Sequence[str]) -> None:
    """Check that every model fits into the memory of the device that it is trained on."""
    for shortage in memory_shortages(recipe, names, sizes):
        raise InputError(f"{shortage}; --only runs the other models")


def _check_times(recipe: Recipe, interactions: Interactions, names: Sequence[str]) -> None:
    """Check that the data has timestamps if a model needs them."""
    for name in dict.fromkeys(names):
        model = recipe.models[name]
        if isinstance(model, Trained) and model.model.time_gaps is not None and interactions.timestamps is None:
            raise InputError(
                f"{name} has time_gaps, and {type(recipe.dataset).__name__} has no timestamps; "
                f"--only runs the other models"
            )
