"""Runs a recipe: preflight checks, one worker process per model and seed, tables."""

from __future__ import annotations

import math
import sys
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from aprec_like.datasets import Sizes
from aprec_like.datasets.download import default_data_dir
from aprec_like.devices import check_num_devices, device_line, host_number, num_configured_hosts
from aprec_like.errors import InputError
from aprec_like.models import CountingModel
from aprec_like.recipe import Recipe, load_recipe
from evaluation.cli import DONE, INTERRUPTED, WRONG_INPUT, Interrupted
from evaluation.results.store import ModelFolder, RunFolder, encode_name
from evaluation.running.fit_model import remove_states
from evaluation.running.hosts.take_part import dismiss_others, take_part
from evaluation.running.jobs.local_slots import MAX_AUTOMATIC_JOBS, NumJobs
from evaluation.running.lock import RunLock
from evaluation.running.plan import describe_plan
from evaluation.running.preflight import ModelAndSeed, load_data, prepare
from evaluation.running.run_models import ClusterOptions, run_models, write_tables
from evaluation.running.signals import raise_when_terminated
from evaluation.running.smoke import shrink
from evaluation.running.worker import WorkerOptions

KEPT = "stopped; finished models and progress are kept; the same command (without --fresh) resumes"


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
        jobs: number of models to train at once, or `auto`.
        tensorboard: whether to write curves for TensorBoard.
        devices: number of devices that train each model together; `None` for all GPUs.
        ray: address of the Ray cluster that trains the models; `None` for this machine.
        slurm: options of the Slurm array job that trains the models; `None` for this machine.
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
    jobs: NumJobs = 1
    tensorboard: bool = False
    devices: int | None = 1
    ray: str | None = None
    slurm: list[str] | None = None

    @property
    def data_dir(self) -> Path:
        """Folder of data files."""
        return self.data or default_data_dir()

    def max_jobs_at_once(self, num_jobs: int) -> int:
        """Maximum number of models that train at once, of all that are to be run."""
        if self.ray is not None or self.slurm is not None:
            return num_jobs
        return MAX_AUTOMATIC_JOBS if self.jobs == "auto" else self.jobs

    @property
    def run_folder(self) -> RunFolder:
        """Results folder of the run, named after the recipe file."""
        return RunFolder(self.results / encode_name(self.recipe.stem + ("-smoke" if self.smoke else "")))


def run_recipe(options: RunOptions) -> int:
    """Run the models of a recipe that are not finished, and write tables; returns the exit code."""
    raise_when_terminated()
    recipe = load_run_recipe(options)
    names = select_models(recipe, options.only)
    if options.dry_run:
        print(describe_plan(recipe, names, options.data_dir))
        return DONE
    if num_configured_hosts() > 1:
        _check_for_hosts(options)
        if host_number() > 0:
            return take_part(_worker(options, "", 0))
    run, jobs = options.run_folder, list_jobs(recipe, names, options.seeds or recipe.seeds)
    cluster = ClusterOptions(options.ray, options.slurm)
    cluster.check()
    device_remark = check_num_devices(options.devices)
    data = load_data(recipe, options.data_dir)
    print(device_remark or device_line(), file=sys.stderr)
    with RunLock(run.lock_path) as lock:
        pending = prepare(
            run,
            recipe,
            options.recipe.read_bytes(),
            data,
            jobs,
            is_fresh=options.fresh,
            time_limit=options.time_limit * 60,
            num_at_once=options.max_jobs_at_once(len(jobs)),
        )
        sizes = Sizes(data.interactions.num_users, data.interactions.num_items, data.interactions.num_interactions)
        del data  # the workers need the memory
        for name, seed in jobs:
            if (name, seed) not in pending:
                _report_finished(name, seed, run.model(name, seed))
        try:
            if not pending and num_configured_hosts() > 1:
                dismiss_others(_worker(options, "", 0))
            workers = _workers(options, pending)
            code = run_models(run, recipe, workers, sizes, lock, wanted=options.jobs, cluster=cluster)
        except (KeyboardInterrupt, Interrupted) as request:
            raise Interrupted(getattr(request, "code", INTERRUPTED), KEPT) from None
        if code != WRONG_INPUT:
            write_tables(run, is_printed=True)
    return code


def load_run_recipe(options: RunOptions) -> Recipe:
    """Return the recipe of a run, shrunk for a smoke run."""
    recipe = load_recipe(options.recipe)
    return shrink(recipe, options.data_dir) if options.smoke else recipe


def select_models(recipe: Recipe, only: Sequence[str] | None) -> list[str]:
    """Return the names of the chosen models in the recipe's order; raises `InputError` for unknown names."""
    if unknown := [name for name in only or [] if name not in recipe.models]:
        raise InputError(f"the recipe has no model {unknown[0]!r}; it has {', '.join(recipe.models)}")
    return [name for name in recipe.models if only is None or name in only]


def list_jobs(recipe: Recipe, names: list[str], seeds: Sequence[int]) -> list[ModelAndSeed]:
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


def _check_for_hosts(options: RunOptions) -> None:
    """Check that options can be used by several hosts that train together."""
    if options.jobs != 1 or options.ray is not None or options.slurm is not None:
        raise InputError(
            "TF_CONFIG names several hosts, which train one model at a time: without --jobs, --ray and --slurm"
        )
    if options.devices not in (1, None):
        raise InputError("TF_CONFIG names several hosts, each of which trains with all its GPUs: without --devices")
    if not math.isinf(options.time_limit):
        raise InputError("TF_CONFIG names several hosts, which would reach --time-limit at different steps")


def _workers(options: RunOptions, pending: Sequence[ModelAndSeed]) -> list[WorkerOptions]:
    """Return the options of one worker per model and seed; seeds are in the titles where there are several."""
    has_one_seed = len({seed for _, seed in pending}) == 1
    return [
        replace(
            _worker(options, name, seed),
            title=name if has_one_seed else f"{name}, seed {seed}",
            is_last=(name, seed) == pending[-1],
        )
        for name, seed in pending
    ]


def _worker(options: RunOptions, name: str, seed: int) -> WorkerOptions:
    return WorkerOptions(
        options.recipe,
        name,
        seed,
        options.data_dir,
        options.run_folder.path,
        options.time_limit * 60,
        options.smoke,
        options.keep_checkpoints,
        devices=options.devices,
        tensorboard=options.tensorboard,
    )
