"""Runs a recipe: preflight checks, one worker process per model and seed, tables."""

from __future__ import annotations

import contextlib
import os
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from aprec_like.datasets.download import default_data_dir
from aprec_like.devices import device_line
from aprec_like.errors import InputError
from aprec_like.files import StorageError
from aprec_like.models import CountingModel
from aprec_like.recipe import Recipe, Trained, load_recipe
from evaluation.analysis.comparison import compare_models
from evaluation.analysis.main_table import main_table
from evaluation.analysis.unrounded import table_files
from evaluation.cli import DONE, FAILED, INTERRUPTED, TERMINATED, WRONG_INPUT, Interrupted
from evaluation.results.load import load_runs
from evaluation.results.store import ModelFolder, RunFolder, encode_name
from evaluation.running.fit_model import remove_states
from evaluation.running.lock import RunLock
from evaluation.running.plan import describe_plan, memory_savers
from evaluation.running.preflight import Job, load_data, prepare
from evaluation.running.signals import raise_when_terminated, run_process
from evaluation.running.smoke import shrink
from evaluation.running.worker import WorkerOptions, worker_command, worker_environment
from evaluation.table import as_text

KEPT = "stopped; finished models and progress are kept; the same command (without --fresh) resumes"
OUT_OF_MEMORY = {-9: "killed by signal 9", -6: "aborted"}
"""Exit codes of processes that ran out of memory."""
ILLEGAL_INSTRUCTION = -4
"""Exit code of a process whose processor announces instructions that it can't run, as some virtual machines do."""


@dataclass(frozen=True)
class RunOptions:
    """The command line of `evaluation.run`.

    Args:
        recipe: path of the recipe file.
        only: names of the models to run; `None` for all.
        seeds: training seeds; `None` for the recipe's.
        data: folder of data files; `None` for the default.
        results: parent of the results folder.
        time_limit: minutes of training of each model, over all restarts.
        smoke: whether to shrink the recipe to seconds.
        dry_run: whether to print the plan and train nothing.
        fresh: whether to train again what is finished or started.
        keep_checkpoints: whether to keep the last state of every training.
    """

    recipe: Path
    only: list[str] | None
    seeds: list[int] | None
    data: Path | None
    results: Path
    time_limit: float
    smoke: bool
    dry_run: bool
    fresh: bool
    keep_checkpoints: bool = False

    @property
    def data_dir(self) -> Path:
        """Folder of data files."""
        return self.data or default_data_dir()

    @property
    def run_folder(self) -> RunFolder:
        """Results folder of the run, named after the recipe file."""
        return RunFolder(self.results / encode_name(self.recipe.stem + ("-smoke" if self.smoke else "")))


def run_recipe(options: RunOptions) -> int:
    """Run the models of a recipe that are not finished, and write tables; returns the exit code."""
    raise_when_terminated()
    recipe = load_recipe(options.recipe)
    recipe = shrink(recipe, options.data_dir) if options.smoke else recipe
    names = select_models(recipe, options.only)
    if options.dry_run:
        print(describe_plan(recipe, names, options.data_dir))
        return DONE
    run, jobs = options.run_folder, _list_jobs(recipe, names, options.seeds or recipe.seeds)
    data = load_data(recipe, options.data_dir)
    print(device_line(), file=sys.stderr)
    with RunLock(run.lock_path) as lock:
        pending = prepare(
            run,
            recipe,
            options.recipe.read_bytes(),
            data,
            jobs,
            is_fresh=options.fresh,
            time_limit=options.time_limit * 60,
        )
        del data  # the workers need the memory
        for name, seed in jobs:
            if (name, seed) not in pending:
                _report_finished(name, seed, run.model(name, seed))
        try:
            code = _run_jobs(run, recipe, pending, options, lock)
        except (KeyboardInterrupt, Interrupted) as request:
            raise Interrupted(getattr(request, "code", INTERRUPTED), KEPT) from None
        if code != WRONG_INPUT:
            _write_tables(run, is_printed=True)
    return code


def select_models(recipe: Recipe, only: Sequence[str] | None) -> list[str]:
    """Return the names of the chosen models in the recipe's order; raises `InputError` for unknown names."""
    if unknown := [name for name in only or [] if name not in recipe.models]:
        raise InputError(f"the recipe has no model {unknown[0]!r}; it has {', '.join(recipe.models)}")
    return [name for name in recipe.models if only is None or name in only]


def _list_jobs(recipe: Recipe, names: list[str], seeds: Sequence[int]) -> list[Job]:
    """Return every model with every seed; counting models, which do not depend on the seed, with the first only."""
    return [
        (name, seed)
        for name in names
        for seed in (seeds[:1] if isinstance(recipe.models[name], CountingModel) else seeds)
    ]


def _report_finished(name: str, seed: int, folder: ModelFolder) -> None:
    status = folder.status()
    remove_states(
        folder, is_last_kept=bool(status.get("is_checkpoint_kept"))
    )  # left by a worker killed at the very end
    print(f"{name}, seed {seed}: finished on {status['at'][:10]}; --fresh trains again", file=sys.stderr)


def _run_jobs(run: RunFolder, recipe: Recipe, jobs: list[Job], options: RunOptions, lock: RunLock) -> int:
    """Run one worker after another, one per model and seed; returns the exit code."""
    codes = [DONE]
    for name, seed in jobs:
        seconds = options.time_limit * 60
        worker = WorkerOptions(
            options.recipe, name, seed, options.data_dir, run.path, seconds, options.smoke, options.keep_checkpoints
        )
        code = run_process(worker_command(worker), worker_environment(os.environ), lock.descriptors)
        if code in (INTERRUPTED, TERMINATED):
            raise Interrupted(code)
        if code == WRONG_INPUT:  # printed by the worker; files that it can't read or write, others can't either
            return WRONG_INPUT
        if code != DONE:
            codes.append(FAILED)
            folder = run.model(name, seed)
            if code != FAILED or not _is_marked_failed(folder):
                folder.write_status("failed", reason=exit_reason(code, recipe.models[name]))
        try:
            _write_tables(run)
        except StorageError:
            raise
        except InputError:
            pass  # damaged files of another model, reported when the final tables are written
    return max(codes)


def _is_marked_failed(folder: ModelFolder) -> bool:
    with contextlib.suppress(InputError):
        return folder.status()["state"] == "failed"
    return False


def exit_reason(code: int, model: Trained | CountingModel) -> str:
    """Return why a worker ended without writing the reason itself."""
    if code in OUT_OF_MEMORY:
        return f"{OUT_OF_MEMORY[code]}, as when memory runs out; to save memory: {memory_savers(model)}"
    if code == ILLEGAL_INSTRUCTION:
        return (
            "killed by signal 4: the processor can't run an instruction that it announces; try again with the "
            "environment variable ONEDNN_MAX_CPU_ISA=AVX512_CORE_BF16"
        )
    return f"killed by signal {-code}" if code < 0 else f"its process ended with code {code}"


def _write_tables(run: RunFolder, is_printed: bool = False) -> None:
    comparison = compare_models(load_runs([run]))
    run.write_tables(table_files(comparison))
    if is_printed:
        print(as_text(main_table(comparison)), end="")
        print(f"tables and per-user values: {run.path}", file=sys.stderr)
        if not comparison.training_std and any(row.origin == "trained" for row in comparison.rows):
            print("one training of each model; --seeds 1 2 3 adds two, for a table about methods", file=sys.stderr)
