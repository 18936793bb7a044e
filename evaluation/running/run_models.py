"""Runs the pending models of a recipe as jobs, records those that fail, and writes the tables after each."""

from __future__ import annotations

import contextlib
import math
import sys
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from aprec_like.datasets import Sizes
from aprec_like.devices import has_gpu, num_configured_hosts, visible_gpus
from aprec_like.errors import InputError
from aprec_like.files import StorageError
from aprec_like.models import CountingModel
from aprec_like.recipe import Recipe, Trained
from evaluation.analysis.comparison import compare_models
from evaluation.analysis.main_table import main_table
from evaluation.analysis.unrounded import table_files
from evaluation.cli import DONE, FAILED, INTERRUPTED, TERMINATED, WRONG_INPUT, Interrupted
from evaluation.results.environment import available_memory
from evaluation.results.load import load_runs
from evaluation.results.store import ModelFolder, RunFolder
from evaluation.running.jobs import Executor, Job, JobObserver, JobResult
from evaluation.running.jobs.board import Board
from evaluation.running.jobs.local_processes import LocalProcesses
from evaluation.running.jobs.local_slots import NumJobs, num_slots
from evaluation.running.jobs.one_by_one import OneByOne
from evaluation.running.jobs.ray_tasks import RayTasks, import_ray
from evaluation.running.jobs.slurm_tasks import SlurmTasks, import_submitit, parse_slurm_options
from evaluation.running.lock import RunLock
from evaluation.running.plan import memory_savers, predict_peak_memory
from evaluation.running.worker import WorkerOptions
from evaluation.table import as_text

OUT_OF_MEMORY = {-9: "killed by signal 9", -6: "aborted"}
"""Exit codes of processes that ran out of memory."""
ILLEGAL_INSTRUCTION = -4
"""Exit code of a process whose processor announces instructions that it can't run, as some virtual machines do."""


@dataclass(frozen=True)
class ClusterOptions:
    """The cluster that runs the jobs; none if both are `None`.

    Args:
        ray: address of a Ray cluster.
        slurm: options of a Slurm array job, as NAME=VALUE.
    """

    ray: str | None = None
    slurm: Sequence[str] | None = None

    @property
    def is_used(self) -> bool:
        """Whether jobs run on a cluster."""
        return self.ray is not None or self.slurm is not None

    def check(self) -> None:
        """Check, before data is read, that what the cluster needs is installed and there; raises `InputError`."""
        if self.ray is not None:
            import_ray(self.ray)
        if self.slurm is not None:
            import_submitit()
            parse_slurm_options(self.slurm)

    def make_executor(self, folder: Path, observer: JobObserver) -> Executor:
        """Return the executor of jobs whose results are in a folder."""
        if self.ray is not None:
            return RayTasks(self.ray, folder, observer)
        return SlurmTasks(folder, observer, parse_slurm_options(self.slurm or ()))


def run_models(
    run: RunFolder,
    recipe: Recipe,
    workers: Sequence[WorkerOptions],
    sizes: Sizes,
    lock: RunLock,
    *,
    wanted: NumJobs = 1,
    cluster: ClusterOptions | None = None,
) -> int:
    """Run one job per model and seed; returns the exit code.

    Args:
        run: the results folder.
        recipe: the recipe.
        workers: options of the workers, one per model and seed.
        sizes: of the data.
        lock: of the results folder; the workers inherit it.
        wanted: number of jobs at once, or `auto`.
        cluster: that runs the jobs; `None` for this machine.
    """
    if cluster is not None and cluster.is_used:
        return _run_on_cluster(run, recipe, workers, sizes, cluster)
    jobs = [_make_job(worker, recipe, sizes) for worker in workers]
    slots = num_slots(wanted, [job.memory for job in jobs])
    if slots == 1:
        return _collect(run, recipe, OneByOne(lock.inherited_descriptors), jobs)
    jobs = [_make_job(replace(worker, is_display_shared=True), recipe, sizes) for worker in workers]
    with Board(len(jobs), sum(job.weight for job in jobs), slots) as board:
        memory = math.inf if has_gpu() else available_memory()
        executor = LocalProcesses(
            slots, board, memory=memory, gpus=visible_gpus(), descriptors=lock.inherited_descriptors
        )
        return _collect(run, recipe, executor, jobs)


def _run_on_cluster(
    run: RunFolder, recipe: Recipe, workers: Sequence[WorkerOptions], sizes: Sizes, cluster: ClusterOptions
) -> int:
    """Run the jobs on a cluster, whose processes have another current folder."""
    paths = {name: getattr(worker, name).resolve() for worker in workers[:1] for name in ("recipe", "data_dir", "run")}
    shared = [replace(worker, is_display_shared=True, **paths) for worker in workers]
    jobs = [_make_job(worker, recipe, sizes) for worker in shared]
    with Board(len(jobs), sum(job.weight for job in jobs)) as board:
        return _collect(run, recipe, cluster.make_executor(run.path.resolve(), board), jobs) if jobs else DONE


def _make_job(worker: WorkerOptions, recipe: Recipe, sizes: Sizes) -> Job:
    """Return the job of a worker, with the memory that the plan predicts."""
    model = recipe.models[worker.model]
    memory, weight = predict_peak_memory(model, sizes), float(isinstance(model, Trained))
    folder = RunFolder(worker.run).model(worker.model, worker.seed).path
    title = worker.title or worker.model
    return Job(title, "evaluation.running.worker", worker.to_json(), folder, memory, weight)


def _collect(run: RunFolder, recipe: Recipe, executor: Executor, jobs: Sequence[Job]) -> int:
    """Run jobs, record failures and write the tables after each; returns the exit code."""
    codes = [DONE]
    with contextlib.closing(executor.run(jobs)) as results:
        for result in results:
            if result.code in (INTERRUPTED, TERMINATED):
                raise Interrupted(result.code)
            if result.code == WRONG_INPUT:  # printed by the worker; files that it can't use, others can't either
                return WRONG_INPUT
            if result.code != DONE:
                codes.append(FAILED)
                _record_failure(recipe, result)
                if num_configured_hosts() > 1:
                    print("started again on all hosts, the same command resumes", file=sys.stderr)
                    return FAILED  # the other hosts can't tell what this one does next
            try:
                write_tables(run)
            except StorageError:
                raise
            except InputError:
                pass  # damaged files of another model, reported when the final tables are written
    return max(codes)


def _record_failure(recipe: Recipe, result: JobResult) -> None:
    """Write to the model's status why its process ended, if the process has not done so."""
    worker = WorkerOptions.from_json(result.job.argument)
    folder = ModelFolder(result.job.folder)
    if result.code != FAILED or not _is_marked_failed(folder):
        folder.write_status("failed", reason=result.reason or exit_reason(result.code, recipe.models[worker.model]))


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


def write_tables(run: RunFolder, is_printed: bool = False) -> None:
    """Write the tables of a run, and print the main one if asked to."""
    comparison = compare_models(load_runs([run]))
    run.write_tables(table_files(comparison))
    if is_printed:
        print(as_text(main_table(comparison)), end="")
        print(f"tables and per-user values: {run.path}", file=sys.stderr)
        if not comparison.training_std and any(row.origin == "trained" for row in comparison.rows):
            print("one training of each model; --seeds 1 2 3 adds two, for a table about methods", file=sys.stderr)
