"""The software and hardware of a run, without names of people or machines; readers of memory sizes."""

from __future__ import annotations

import os
import platform
import subprocess
import sys
from datetime import UTC, datetime
from importlib import metadata
from pathlib import Path

import psutil

import aprec_like
from aprec_like.devices import describe_devices, peak_gpu_memory
from aprec_like.types import Json

CONTAINER_LIMIT = Path("/sys/fs/cgroup/memory.max")
"""The memory limit of a container (cgroup v2): a number of bytes, or `max` for none."""

PACKAGES = ("tensorflow", "keras", "numpy", "pandas", "pyarrow", "scipy", "statsmodels")


def describe_environment() -> Json:
    """Return commit, date, the versions of packages that affect results, operating system, processor and memory."""
    return {
        "aprec_like": aprec_like.__version__,
        "commit": _commit(),
        "date": datetime.now(UTC).isoformat(timespec="seconds"),
        "python": platform.python_version(),
        "packages": {name: metadata.version(name) for name in PACKAGES},
        "system": platform.system(),
        "machine": platform.machine(),
        "processor": _processor(),
        "cores": len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count(),
        "memory_gib": round(total_memory() / 2**30, 1),
        "devices": describe_devices(),
    }


def _commit() -> str | None:
    """Return the commit of the code, with "+changes" if files differ from it; `None` outside of a git checkout."""
    folder = Path(aprec_like.__file__).parent
    git = ["git", "-C", str(folder)]
    try:
        tracked = subprocess.run([*git, "ls-files", "--error-unmatch", "__init__.py"], capture_output=True, timeout=10)
        found = subprocess.run([*git, "rev-parse", "HEAD"], capture_output=True, text=True, timeout=10)
        changed = subprocess.run(
            [*git, "status", "--porcelain", "--untracked-files=no", "."], capture_output=True, text=True, timeout=60
        )
    except (OSError, subprocess.TimeoutExpired):
        return None
    if tracked.returncode or found.returncode:
        return None
    return found.stdout.strip() + ("+changes" if changed.stdout.strip() else "")


def _processor() -> str:
    info = Path("/proc/cpuinfo")
    lines = info.read_text().splitlines() if info.exists() else []
    return next(
        (line.split(":", 1)[1].strip() for line in lines if line.startswith("model name")),
        platform.processor(),
    )


def total_memory() -> int:
    """Return the bytes of memory that processes may use: the machine's, or the container's limit."""
    return _within_container(psutil.virtual_memory().total)


def available_memory() -> int:
    """Return the bytes of memory that a new process can use without swapping."""
    return _within_container(psutil.virtual_memory().available)


def _within_container(num_bytes: int) -> int:
    """Cap a number of bytes at the container's limit, which psutil does not know."""
    limit = CONTAINER_LIMIT.read_text().strip() if CONTAINER_LIMIT.exists() else "max"
    return min(num_bytes, int(limit)) if limit.isdecimal() else num_bytes


def peak_gpu_memory_gib() -> float | None:
    """Return the most memory that this process had on a GPU at once, in GiB; `None` without a GPU."""
    peak = peak_gpu_memory()
    return None if peak is None else peak / 2**30


def peak_memory_gib() -> float:
    """Return the peak resident memory of this process in GiB: of psutil on Windows, which has no module `resource`."""
    try:
        import resource
    except ImportError:
        used = psutil.Process().memory_info()
        return round(getattr(used, "peak_wset", used.rss) / 2**30, 3)
    unit = 1 if sys.platform == "darwin" else 1024  # ru_maxrss is in bytes on macOS, in KiB on Linux
    return round(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * unit / 2**30, 3)
