"""Executor that runs worker processes as tasks of a Ray cluster, on all nodes that see the results folder."""

from __future__ import annotations

import secrets
import socket
from collections.abc import Generator, Iterable
from pathlib import Path
from typing import Any

import aprec_like
from aprec_like.errors import InputError
from aprec_like.files import storage_errors
from evaluation.cli import import_extra
from evaluation.running.jobs.job import Job, JobObserver, JobResult
from evaluation.running.jobs.local_slots import chosen_threads
from evaluation.running.jobs.remote_task import forwarded_variables, run_task
from evaluation.running.signals import raise_when_terminated

MAX_RETRIES = 5
"""How often Ray starts a task again whose node or process has died; the worker resumes from its checkpoint."""
SECONDS_BETWEEN_CALLS = 0.5
SECONDS_TO_CONNECT = 10.0
SECONDS_TO_CHECK_NODES = 60.0
KILLED = -9


class RayTasks:
    """Executor of jobs as Ray tasks, each with the predicted memory, and one GPU and one CPU.

    Where the cluster has no GPU, a task has as many CPUs as TF_NUM_INTRAOP_THREADS says, or one without it.

    Args:
        address: of the cluster, or `auto` for the one that RAY_ADDRESS or this machine names.
        folder: results folder, which all nodes must see under the same path.
        observer: is told what happens, and gets the lines that the processes print when they have ended.
    """

    def __init__(self, address: str, folder: Path, observer: JobObserver) -> None:
        self.ray, self.address, self.observer = connect(address), address, observer
        check_nodes(self.ray, folder)
        self._running: dict[Any, Job] = {}

    def run(self, jobs: Iterable[Job]) -> Generator[JobResult, None, None]:
        """Run jobs; see `Executor.run`."""
        if not self.ray.is_initialized():  # an earlier call has ended
            connect(self.address)
        waiting = iter(jobs)
        is_exhausted = False
        try:
            while True:
                while not is_exhausted and len(self._running) < self.num_slots():
                    job = next(waiting, None)
                    if job is None:
                        is_exhausted = True
                    else:
                        self._start(job)
                if not self._running:
                    return
                yield self._wait_for_result()
        finally:
            self._stop()

    def num_slots(self) -> int:
        """Return the number of tasks that the cluster, as it is now, can run at once."""
        resources = self.ray.cluster_resources()
        return max(1, int(resources.get("GPU", 0) or resources.get("CPU", 0) // self.cpus_per_task()))

    def cpus_per_task(self) -> int:
        """Return the number of CPUs of a task, at most those of the largest node."""
        if self.ray.cluster_resources().get("GPU"):
            return 1
        return max(1, min(chosen_threads() or 1, int(self._largest("CPU"))))

    def _largest(self, resource: str) -> float:
        """Return how much of a resource the node with most of it has."""
        return max((node["Resources"].get(resource, 0) for node in self.ray.nodes() if node["Alive"]), default=0)

    def _start(self, job: Job) -> None:
        largest = self._largest("memory")
        if job.memory > largest:
            raise InputError(
                f"{job.title} needs about {job.memory / 2**30:.1f} GiB of memory, and the largest Ray node offers "
                f"{largest / 2**30:.1f} GiB"
            )
        task = self.ray.remote(run_task).options(
            num_cpus=self.cpus_per_task(),
            num_gpus=1 if self.ray.cluster_resources().get("GPU") else 0,
            memory=job.memory,
            max_retries=MAX_RETRIES,
            name=job.title,
        )
        self._running[task.remote(job.module, job.argument, str(job.folder), forwarded_variables())] = job
        self.observer.on_start(job)

    def _wait_for_result(self) -> JobResult:
        while True:
            done, _ = self.ray.wait(list(self._running), num_returns=1, timeout=SECONDS_BETWEEN_CALLS)
            if done:
                return self._end(done[0])
            self.observer.on_wait()

    def _end(self, reference: Any) -> JobResult:
        job = self._running.pop(reference)
        try:
            code, lines = self.ray.get(reference)
            result = JobResult(job, code)
        except self.ray.exceptions.RayError as error:
            lines, result = [], JobResult(job, KILLED, f"its Ray task was lost: {str(error).splitlines()[0]}")
        for line in lines:
            self.observer.on_line(job, line)
        self.observer.on_end(result)
        return result

    def _stop(self) -> None:
        """Cancel the tasks, which ask their workers to save and exit, and wait for them."""
        for reference in self._running:
            self.ray.cancel(reference)
        while self._running:
            self._wait_for_result()
        self.ray.shutdown()


def connect(address: str) -> Any:
    """Connect to a Ray cluster; returns the module `ray`. Raises `InputError` if there is none, or Ray is missing."""
    ray = import_ray(address)
    try:
        ray.init(address=address, log_to_driver=False, logging_level="ERROR")
    except (ConnectionError, ValueError, RuntimeError) as error:
        reason = str(error).splitlines()[0]
        raise InputError(
            f"no Ray cluster at {address!r} ({reason}); `ray start --head` starts one on this machine"
        ) from None
    raise_when_terminated()  # Ray has its own handler of SIGTERM
    return ray


def import_ray(address: str) -> Any:
    """Return the module `ray`; raises `InputError` if it is missing, or nothing listens at the address of a cluster."""
    ray = import_extra("ray", "cluster")
    _check_reachable(address)
    return ray


def _check_reachable(address: str) -> None:
    """Raise `InputError` if nothing listens at HOST:PORT, for which Ray would wait for many minutes."""
    host, _, port = address.rpartition(":")
    if not host or not port.isdecimal() or "/" in host:
        return  # "auto", or an address that Ray itself has to understand
    try:
        socket.create_connection((host, int(port)), timeout=SECONDS_TO_CONNECT).close()
    except (OSError, OverflowError) as error:
        raise InputError(
            f"no Ray cluster at {address!r} ({error}); `ray start --head` starts one on this machine"
        ) from None


def check_nodes(ray: Any, folder: Path) -> None:
    """Check that all nodes see the results folder and have this version of the package; raises `InputError`."""
    from ray.util.scheduling_strategies import NodeAffinitySchedulingStrategy

    token, path = secrets.token_hex(8), folder / f".ray-{secrets.token_hex(4)}"
    with storage_errors(path):
        path.write_text(token)
    try:
        for node in ray.nodes():
            if not node["Alive"]:
                continue
            affinity = NodeAffinitySchedulingStrategy(node["NodeID"], soft=False)
            task = ray.remote(read_token).options(num_cpus=0, scheduling_strategy=affinity)
            try:
                seen, version = ray.get(task.remote(str(path)), timeout=SECONDS_TO_CHECK_NODES)
            except ray.exceptions.RayError as error:
                name, reason = node["NodeManagerHostname"], str(error).strip().splitlines()[-1]
                raise InputError(f"the Ray node {name} can't run this package ({reason}); install it there") from None
            if seen != token:
                raise InputError(
                    f"the Ray node {node['NodeManagerHostname']} does not see {folder}; choose a results folder that "
                    f"all nodes share under one path, with --results DIR"
                )
            if version != aprec_like.__version__:
                raise InputError(
                    f"the Ray node {node['NodeManagerHostname']} has aprec_like {version}, this one "
                    f"{aprec_like.__version__}; install the same version"
                )
    finally:
        path.unlink(missing_ok=True)


def read_token(path: str) -> tuple[str, str]:
    """Return the content of a file as a node sees it, empty if it does not, and the version of the package there."""
    try:
        return Path(path).read_text(), aprec_like.__version__
    except OSError:
        return "", aprec_like.__version__
