"""A job as a task of a cluster: its process, on whichever node the task runs."""

from __future__ import annotations

import os
import signal
import subprocess
import threading
import time
from collections.abc import Callable, Mapping
from contextlib import ExitStack
from pathlib import Path

from aprec_like.errors import InputError
from evaluation.running.jobs.job import Job
from evaluation.running.lock import RunLock
from evaluation.running.signals import signals_blocked
from evaluation.running.worker import worker_environment

SECONDS_BETWEEN_CALLS = 0.5
SECONDS_TO_WAIT_FOR_LOCK = 120.0
"""How long a task waits for the end of an earlier one on the same model, whose driver or node was lost."""
FORWARDED = ("APREC_LIKE_", "TF_", "XLA_", "ONEDNN_", "CUBLAS_", "NVIDIA_TF32")
"""Prefixes of the environment variables that tasks take from the driver."""
USER_SIGNALS = {each for each in signal.Signals if each.name in ("SIGUSR1", "SIGUSR2")}
"""Sent by Slurm to all processes of a task, to announce its end; the task handles them, its process must not die."""


def forwarded_variables() -> dict[str, str]:
    """Return the environment variables of this process, the driver, that tasks need."""
    return {name: value for name, value in os.environ.items() if name.startswith(FORWARDED)}


def run_task(
    module: str,
    argument: str,
    folder: str,
    variables: Mapping[str, str],
    on_start: Callable[[subprocess.Popen[str]], None] = lambda process: None,
) -> tuple[int, list[str]]:
    """Run the process of a job on the node of this task; returns its exit code and the lines that it printed.

    A lock keeps out a second process on the same folder, such as one of a driver that was killed a moment ago. The
    process exits by itself when this one ends in any way. An interrupt lets it save and exit.

    Args:
        module: Python module that the process runs.
        argument: its command line argument.
        folder: folder that only this process writes to.
        variables: environment variables of the driver.
        on_start: called with the process.
    """
    environment = {name: value for name, value in os.environ.items() if name != "OMP_NUM_THREADS"}  # set by Ray
    with ExitStack() as stack:
        lock = _enter_lock(stack, Path(folder) / ".task-lock")
        with signals_blocked(USER_SIGNALS):
            process = subprocess.Popen(
                Job("", module, argument, Path(folder)).command(),
                env=worker_environment(environment | dict(variables)),
                stdin=subprocess.PIPE,
                stderr=subprocess.PIPE,
                pass_fds=lock.inherited_descriptors,
                text=True,
                errors="replace",
            )
            on_start(process)
        lines: list[str] = []
        thread = threading.Thread(target=lambda: lines.extend(process.stderr or ()), daemon=True)
        thread.start()
        try:
            while process.poll() is None:
                time.sleep(SECONDS_BETWEEN_CALLS)
        except KeyboardInterrupt:  # how Ray and submitit cancel a task
            process.terminate()
            process.wait()
        thread.join()
        return process.returncode, [line.rstrip("\n") for line in lines]


def _enter_lock(stack: ExitStack, path: Path) -> RunLock:
    """Enter a lock, as soon as it is free; raises `InputError` if it stays taken."""
    deadline = time.monotonic() + SECONDS_TO_WAIT_FOR_LOCK
    while True:
        try:
            return stack.enter_context(RunLock(path))
        except InputError:
            if time.monotonic() >= deadline:
                raise
