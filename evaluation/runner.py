"""Running a recipe: check everything, then one process per model and seed, then tables."""

from __future__ import annotations

import argparse
import difflib
import json
import os
import shutil
import subprocess
import sys
from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path

import numpy as np
import pandas as pd

from aprec_like.datasets.download import default_data_dir
from aprec_like.errors import InputError
from aprec_like.interactions import Interactions
from aprec_like.models import CountingModel
from aprec_like.recipe import Recipe, describe, load_recipe
from aprec_like.splits import Split, TemporalSplit, leakage_of_leave_one_out
from evaluation.command import DONE, FAILED, INTERRUPTED
from evaluation.comparison import compare_models
from evaluation.contestants import read_contest
from evaluation.environment import describe_environment
from evaluation.layout import as_text
from evaluation.plan import describe_plan
from evaluation.records import all_files
from evaluation.smoke import shrink
from evaluation.store import Json, RunFolder, encode_name
from evaluation.tables import main_table
from evaluation.worker import command_for, environment_for

SHARED_SETTINGS = ("dataset", "filters", "split", "evaluation")
"""What all models of a run have in common; results made with other ones can't stand in the same table."""


SECONDS_PER_DAY = 86_400
SECONDS_TO_END = 60
"""How long a model's process may take to end after Ctrl-C."""


def run(arguments: argparse.Namespace) -> int:
    """Run the recipe that the arguments of `evaluation.run` name; returns the exit code."""
    recipe = load_recipe(arguments.recipe)
    data_dir = arguments.data or default_data_dir()
    recipe = shrink(recipe, data_dir) if arguments.smoke else recipe
    names = _chosen_names(recipe, arguments.only)
    if arguments.dry_run:
        print(describe_plan(recipe, names, data_dir))
        return DONE
    folder = RunFolder(arguments.results / (arguments.recipe.stem + ("-smoke" if arguments.smoke else "")))
    jobs = _jobs(recipe, names, arguments.seeds or recipe.seeds)
    _prepare(folder, recipe, arguments.recipe, data_dir, jobs if arguments.fresh else [])
    has_failed = _run_jobs(folder, jobs, arguments, data_dir)
    _write_tables(folder, is_shown=True)
    return FAILED if has_failed else DONE


def _chosen_names(recipe: Recipe, only: list[str] | None) -> list[str]:
    if unknown := [name for name in only or [] if name not in recipe.models]:
        raise InputError(f"the recipe has no model {unknown[0]!r}; it has {', '.join(recipe.models)}")
    return [name for name in recipe.models if only is None or name in only]


def _jobs(recipe: Recipe, names: list[str], seeds: Sequence[int]) -> list[tuple[str, int]]:
    """What to run: every model with every seed, but models that only count, which seeds don't change, once."""
    return [
        (name, seed)
        for name in names
        for seed in (seeds[:1] if isinstance(recipe.models[name], CountingModel) else seeds)
    ]


def _prepare(run: RunFolder, recipe: Recipe, recipe_path: Path, data_dir: Path, redone: list[tuple[str, int]]) -> None:
    """Load the data, refuse what does not fit the folder, and only then write the run's own files."""
    for name in recipe.models:
        encode_name(name)
    interactions = recipe.load(data_dir)
    split = recipe.split.split(interactions)
    dataset = describe_data(recipe, interactions, split)
    print(
        f"{type(recipe.dataset).__name__}: {interactions.num_users:,} users, {interactions.num_items:,} items, "
        f"{interactions.num_interactions:,} interactions",
        file=sys.stderr,
    )
    if leakage := dataset["split"].get("leave_one_out"):
        print(
            f"leave-one-out would learn from the future: {leakage['after_a_target']:,} of its "
            f"{leakage['train_interactions']:,} training interactions lie after a test target",
            file=sys.stderr,
        )
    settings = describe(recipe) | {"columns": list(recipe.evaluation.columns)}
    kept = {name for name, seed, folder in run.models() if folder.is_finished() and (name, seed) not in redone}
    if kept:
        _check_unchanged(run, settings, dataset, kept)
        settings["models"] = {name: was for name, was in _old_models(run).items() if name in kept} | settings["models"]
    run.write_recipe(recipe_path.read_bytes(), settings)
    run.write_dataset(dataset)
    run.write_cases(describe_cases(split))
    run.write_items(describe_items(split))
    run.write_environment(describe_environment())


def describe_data(recipe: Recipe, interactions: Interactions, split: Split) -> Json:
    """What dataset.json says: which data this is, beyond doubt."""
    leakage = leakage_of_leave_one_out(interactions) if isinstance(recipe.split, TemporalSplit) else None
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


def _old_models(run: RunFolder) -> Json:
    return (run.read_recipe() or {}).get("models", {})


def _check_unchanged(run: RunFolder, settings: Json, dataset: Json, kept: set[str]) -> None:
    """Results in the folder must have been made with these settings and this data."""
    old = run.read_recipe() or {}
    for name in SHARED_SETTINGS:
        _refuse_change(run, name, old.get(name), settings[name])
    for name in sorted(kept & set(settings["models"])):
        _refuse_change(run, f"models[{name!r}]", old.get("models", {}).get(name), settings["models"][name])
    was = run.read_dataset()
    if (was.get("sha256"), was.get("split")) != (dataset["sha256"], dataset["split"]):
        raise InputError(
            f"{run.path}: holds results on other data than is read now; --fresh trains again, --results DIR keeps both"
        )


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
            f"{run.path}: holds results of another recipe; {name} has changed: {shown}; "
            f"--fresh trains again, --results DIR keeps both"
        )


def _run_jobs(run: RunFolder, jobs: list[tuple[str, int]], arguments: argparse.Namespace, data_dir: Path) -> bool:
    """Run every model in a process of its own; says whether any failed."""
    has_failed = False
    for name, seed in jobs:
        folder = run.model(name, seed)
        status = folder.status()
        if status["state"] == "finished" and not arguments.fresh:
            print(f"{name}, seed {seed}: finished on {status['at'][:10]}; --fresh trains again", file=sys.stderr)
            continue
        shutil.rmtree(folder.path, ignore_errors=True)
        seconds = arguments.time_limit * 60
        command = command_for(arguments.recipe, name, seed, data_dir, run, seconds, arguments.smoke)
        if (code := _wait(subprocess.Popen(command, env=environment_for(os.environ)))) == INTERRUPTED:
            print("stopped; finished models are kept, and the same command goes on with the rest", file=sys.stderr)
            raise KeyboardInterrupt
        if code != DONE:
            has_failed = True
            if folder.status()["state"] != "failed":
                reason = f"killed by signal {-code}" if code < 0 else f"its process ended with code {code}"
                hint = " (9 is often the system running out of memory)" if code == -9 else ""
                folder.write_status("failed", reason=reason + hint)
        _write_tables(run)
    return has_failed


def _wait(process: subprocess.Popen[bytes]) -> int:
    """The exit code of a model's process; Ctrl-C reaches that too, and it gets the time to end in order."""
    try:
        return process.wait()
    except KeyboardInterrupt:
        try:
            process.wait(SECONDS_TO_END)
        except (KeyboardInterrupt, subprocess.TimeoutExpired):
            process.kill()
        return INTERRUPTED


def _write_tables(run: RunFolder, is_shown: bool = False) -> None:
    comparison = compare_models(read_contest([run]))
    run.write_tables(all_files(comparison))
    if is_shown:
        print(as_text(main_table(comparison)), end="")
        print(f"tables and per-user values: {run.path}", file=sys.stderr)
