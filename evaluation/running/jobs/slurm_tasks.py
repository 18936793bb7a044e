"""Executor that runs worker processes as the tasks of one Slurm array job, through submitit."""

from __future__ import annotations

import math
import re
import shutil
import subprocess
import time
from collections.abc import Generator, Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

import psutil

from aprec_like.errors import InputError, first_line
from aprec_like.files import remove_folder, storage_errors
from evaluation.cli import DONE, import_extra
from evaluation.running.jobs.job import Job, JobObserver, JobResult
from evaluation.running.jobs.remote_task import forwarded_variables, run_task

SECONDS_BETWEEN_CALLS = 0.5
KILLED = -9
SHARED_OPTIONS = ("timeout_min", "mem_gb", "nodes", "cpus_per_task", "gpus_per_node", "name")
"""Options that submitit has under one name for all kinds of clusters; others are options of sbatch."""
DEFAULTS: dict[str, int | str] = {"timeout_min": 1440, "cpus_per_task": 4, "name": "aprec_like"}
MAX_TIMEOUTS = 1_000
"""How often a task is queued again whose time is over; by default submitit gives up after three times."""
JOB_IDS = "submitted.txt"
JOB_ID = re.compile(r"^\d+(?:_\d+)?$", re.MULTILINE)


class SlurmTask:
    """What submitit runs on a node: the process of a job. If Slurm takes the node away, it saves and is queued again.

    Args:
        job: the job.
        variables: environment variables of the driver.
    """

    def __init__(self, job: Job, variables: Mapping[str, str]) -> None:
        self.arguments = (job.module, job.argument, str(job.folder), dict(variables))
        self.process: subprocess.Popen[str] | None = None

    def __call__(self) -> tuple[int, list[str]]:
        """Run the process; returns its exit code and the lines that it printed."""
        return run_task(*self.arguments, on_start=self._keep)

    def _keep(self, process: subprocess.Popen[str]) -> None:
        self.process = process

    def checkpoint(self) -> Any:
        """Let the process save and exit; returns what is queued again. Called by submitit before the time is over."""
        if self.process is not None:
            self.process.terminate()
            psutil.Process(self.process.pid).wait()  # not that of Popen, which this signal may have interrupted
            self.process = None
        return import_extra("submitit", "slurm").helpers.DelayedSubmission(self)


class SlurmTasks:
    """Executor of jobs as the tasks of an array job, all submitted at once.

    Args:
        folder: results folder, which all nodes must see under the same path.
        observer: is told what happens, and gets the lines that the processes print when they have ended.
        options: by name, of submitit (`timeout_min`, `cpus_per_task`, ...) or of sbatch (`partition`, `account`, ...).
        cluster: `slurm`, or `local` for processes of this machine, in tests.
    """

    def __init__(
        self, folder: Path, observer: JobObserver, options: Mapping[str, int | str], cluster: str = "slurm"
    ) -> None:
        self.submitit, self.folder = import_submitit(cluster), folder / ".slurm"
        self.observer, self.options, self.cluster = observer, DEFAULTS | dict(options), cluster
        self._tasks: dict[Any, Job] = {}
        self._started: set[Any] = set()

    def run(self, jobs: Iterable[Job]) -> Generator[JobResult, None, None]:
        """Run jobs; see `Executor.run`. All are submitted at once, and Slurm decides when each one runs."""
        self._remove_earlier()
        is_clean = False
        try:
            self._submit(list(jobs))
            is_clean = True
            while self._tasks:
                result = self._wait_for_result()
                is_clean = is_clean and result.code == DONE
                yield result
        finally:
            self._stop()
            if is_clean:
                remove_folder(self.folder)  # the logs of failed tasks are kept

    def _submit(self, jobs: Sequence[Job]) -> None:
        executor = self.submitit.AutoExecutor(self.folder, self.cluster, slurm_max_num_timeout=MAX_TIMEOUTS)
        memory = {"mem_gb": math.ceil(max(job.memory for job in jobs) / 2**30)} | dict(self.options)
        options = {name if name in SHARED_OPTIONS else f"slurm_{name}": value for name, value in memory.items()}
        variables = forwarded_variables()
        try:
            executor.update_parameters(**options)
            tasks = executor.submit_array([SlurmTask(job, variables) for job in jobs])
        except (NameError, TypeError, ValueError, self.submitit.core.utils.FailedJobError) as error:
            raise InputError(f"--slurm: {first_line(error)}") from None
        self._tasks = dict(zip(tasks, jobs, strict=True))
        with storage_errors(self.folder):
            (self.folder / JOB_IDS).write_text("".join(f"{task.job_id}\n" for task in tasks))

    def _remove_earlier(self) -> None:
        """Cancel the tasks of a driver that was killed, which save first, and remove their files."""
        path = self.folder / JOB_IDS
        if self.cluster == "slurm" and path.exists():
            for number in JOB_ID.findall(path.read_text()):
                self.submitit.SlurmJob(self.folder, number).cancel(check=False)
        remove_folder(self.folder)  # submitit unpickles results, which must be those of its own tasks

    def _wait_for_result(self) -> JobResult:
        while True:
            for task in list(self._tasks):
                is_done = task.done()
                if task not in self._started and (is_done or task.state == "RUNNING"):
                    self._started.add(task)
                    self.observer.on_start(self._tasks[task])
                if is_done:
                    return self._end(task)
            self.observer.on_wait()
            time.sleep(SECONDS_BETWEEN_CALLS)

    def _end(self, task: Any) -> JobResult:
        job = self._tasks.pop(task)
        try:
            code, lines = task.result()
            result = JobResult(job, code)
        except (self.submitit.core.utils.UncompletedJobError, self.submitit.core.utils.FailedJobError) as error:
            lines, result = [], JobResult(job, KILLED, f"its Slurm task was lost: {first_line(error)}")
        for line in lines:
            self.observer.on_line(job, line)
        if task in self._started:
            self.observer.on_end(result)
        return result

    def _stop(self) -> None:
        """Cancel the tasks that are left, whose processes save and exit, and wait for them."""
        for task in self._tasks:
            task.cancel(check=False)
        while self._tasks:
            self._wait_for_result()


def import_submitit(cluster: str = "slurm") -> Any:
    """Return the module `submitit`; raises `InputError` if it or Slurm's command sbatch is missing."""
    submitit = import_extra("submitit", "slurm")
    if cluster == "slurm" and shutil.which("sbatch") is None:
        raise InputError("--slurm needs the command sbatch; run it on a login node of a Slurm cluster")
    return submitit


def parse_slurm_options(values: Sequence[str]) -> dict[str, int | str]:
    """Return the options of --slurm, given as NAME=VALUE; raises `InputError`."""
    pairs = [value.partition("=") for value in values]
    if wrong := [value for value, (name, _, text) in zip(values, pairs, strict=True) if not name or not text]:
        raise InputError(f"--slurm takes options as NAME=VALUE, such as partition=gpu. Received: {wrong[0]}")
    return {name: int(text) if text.isdecimal() else text for name, _, text in pairs}
