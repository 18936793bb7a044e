"""How many jobs run at once on this machine."""

from __future__ import annotations

import os
from collections.abc import Sequence
from typing import Literal

from aprec_like.devices import visible_gpus
from evaluation.results.environment import available_memory

INTRA_OP_THREADS = "TF_NUM_INTRAOP_THREADS"
"""Environment variable of TensorFlow: threads of one operation; as many as there are cores without it."""
MAX_AUTOMATIC_JOBS = 4
"""On CPUs, unless the variable above leaves room for more: every job has as many threads as there are cores, because
their number changes the order of sums, and so the last bits of results."""

NumJobs = int | Literal["auto"]


def num_slots(wanted: NumJobs, memories: Sequence[int]) -> int:
    """Return the number of jobs to run at once: as many as wanted, or as GPUs, or as memory and cores allow.

    Args:
        wanted: a number, or `auto`.
        memories: predicted peak memory of every job in bytes.
    """
    if wanted != "auto":
        return min(wanted, max(1, len(memories)))
    if gpus := visible_gpus():
        return min(len(gpus), max(1, len(memories)))
    cores = num_cores()
    by_cores = max(min(cores, MAX_AUTOMATIC_JOBS), cores // num_threads())
    largest, total, fitting = sorted(memories, reverse=True), 0, 0
    for memory in largest[:by_cores]:
        total += memory
        fitting += total <= available_memory()
    return max(1, fitting)


def num_cores() -> int:
    """Return the number of processor cores that this process may use."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


def num_threads() -> int:
    """Return the number of threads of one TensorFlow operation."""
    return chosen_threads() or num_cores()


def chosen_threads() -> int | None:
    """Return the number of threads that the environment variable says; `None` if it says none."""
    wanted = os.environ.get(INTRA_OP_THREADS, "")
    return int(wanted) if wanted.isdecimal() and int(wanted) else None
