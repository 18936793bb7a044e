"""Running a recipe: check everything, then one process per model and seed, then tables."""

from __future__ import annotations

import argparse
import contextlib
import os
import sys
from collections.abc import Sequence
from pathlib import Path

from aprec_like.datasets.download import default_data_dir
from aprec_like.errors import InputError
from aprec_like.files import StorageError
from aprec_like.models import CountingModel
from aprec_like.recipe import Recipe, load_recipe
from aprec_like.training.checkpoints import remove_checkpoints
from evaluation.analysis.comparison import compare_models
from evaluation.analysis.main_table import main_table
from evaluation.analysis.unrounded import all_files
from evaluation.cli import DONE, FAILED, INTERRUPTED, TERMINATED, WRONG_INPUT, Interrupted
from evaluation.results.load import load_runs
from evaluation.results.store import ModelFolder, RunFolder, encode_name
from evaluation.running.lock import RunLock
from evaluation.running.plan import describe_plan, memory_savers
from evaluation.running.preflight import Job, load_data, prepare
from evaluation.running.signals import raise_when_terminated, run_process
from evaluation.running.smoke import shrink
from evaluation.running.worker import command_for, environment_for
from evaluation.table import as_text

KEPT = "stopped; finished models and progress are kept, and the same command (without --fresh) goes on from there"
OUT_OF_MEMORY = {-9: "killed by signal 9", -6: "aborted"}
"""How processes end that the system refuses memory, by exit code."""


def run(arguments: argparse.Namespace) -> int:
    """Run the recipe that the arguments of `evaluation.run` name; returns the exit code."""
    raise_when_terminated()
    recipe = load_recipe(arguments.recipe)
    data_dir = arguments.data or default_data_dir()
    recipe = shrink(recipe, data_dir) if arguments.smoke else recipe
    names = _chosen_names(recipe, arguments.only)
    if arguments.dry_run:
        print(describe_plan(recipe, names, data_dir))
        return DONE
    folder = RunFolder(arguments.results / encode_name(arguments.recipe.stem + ("-smoke" if arguments.smoke else "")))
    jobs = _jobs(recipe, names, arguments.seeds or recipe.seeds)
    data = load_data(recipe, data_dir)
    with RunLock(folder.lock_path) as lock:
        pending = prepare(folder, recipe, arguments.recipe.read_bytes(), data, jobs, is_fresh=arguments.fresh)
        del data
        for name, seed in jobs:
            if (name, seed) not in pending:
                _say_finished(name, seed, folder.model(name, seed))
        try:
            code = _run_jobs(folder, recipe, pending, arguments, data_dir, lock)
        except (KeyboardInterrupt, Interrupted) as request:
            raise Interrupted(getattr(request, "code", INTERRUPTED), KEPT) from None
        if code != WRONG_INPUT:
            _write_tables(folder, is_shown=True)
    return code


def _chosen_names(recipe: Recipe, only: list[str] | None) -> list[str]:
    if unknown := [name for name in only or [] if name not in recipe.models]:
        raise InputError(f"the recipe has no model {unknown[0]!r}; it has {', '.join(recipe.models)}")
    return [name for name in recipe.models if only is None or name in only]


def _jobs(recipe: Recipe, names: list[str], seeds: Sequence[int]) -> list[Job]:
    """What to run: every model with every seed, but models that only count, which seeds don't change, once."""
    return [
        (name, seed)
        for name in names
        for seed in (seeds[:1] if isinstance(recipe.models[name], CountingModel) else seeds)
    ]


def _say_finished(name: str, seed: int, folder: ModelFolder) -> None:
    remove_checkpoints(folder.checkpoint_path)  # there if the process was killed at the very end
    print(f"{name}, seed {seed}: finished on {folder.status()['at'][:10]}; --fresh trains again", file=sys.stderr)


def _run_jobs(
    run: RunFolder, recipe: Recipe, jobs: list[Job], arguments: argparse.Namespace, data_dir: Path, lock: RunLock
) -> int:
    """Run every model in a process of its own; returns the exit code."""
    codes = [DONE]
    for name, seed in jobs:
        folder = run.model(name, seed)
        seconds = arguments.time_limit * 60
        command = command_for(arguments.recipe, name, seed, data_dir, run, seconds, arguments.smoke)
        code = run_process(command, environment_for(os.environ), [lock.descriptor])
        if code in (INTERRUPTED, TERMINATED):
            raise Interrupted(code)
        if code == WRONG_INPUT:  # what can't be read or written now can't be by the next model; its line was printed
            return WRONG_INPUT
        if code != DONE:
            codes.append(FAILED)
            if code != FAILED or not _has_failed(folder):
                folder.write_status("failed", reason=_reason(code, recipe, name))
        try:
            _write_tables(run)
        except StorageError:
            raise
        except InputError:
            pass  # another model's damaged files; said in the end
    return max(codes)


def _has_failed(folder: ModelFolder) -> bool:
    with contextlib.suppress(InputError):
        return folder.status()["state"] == "failed"
    return False


def _reason(code: int, recipe: Recipe, name: str) -> str:
    """Why a process ended that could not say so itself."""
    if code in OUT_OF_MEMORY:
        helpful = memory_savers(recipe.models[name])
        return f"{OUT_OF_MEMORY[code]}, as when memory runs out; what would help then: {helpful}"
    return f"killed by signal {-code}" if code < 0 else f"its process ended with code {code}"


def _write_tables(run: RunFolder, is_shown: bool = False) -> None:
    comparison = compare_models(load_runs([run]))
    run.write_tables(all_files(comparison))
    if is_shown:
        print(as_text(main_table(comparison)), end="")
        print(f"tables and per-user values: {run.path}", file=sys.stderr)
