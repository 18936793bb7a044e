"""What a run was made with: versions and hardware, nothing that names a person or a machine."""

from __future__ import annotations

import os
import platform
import resource
import sys
from importlib import metadata
from pathlib import Path

import aprec_like
from aprec_like.types import Json

PACKAGES = ("tensorflow", "keras", "numpy", "pandas", "pyarrow", "scipy", "statsmodels")


def describe_environment() -> Json:
    """Versions of the packages that numbers depend on, operating system, processor, memory."""
    return {
        "aprec_like": aprec_like.__version__,
        "python": platform.python_version(),
        "packages": {name: metadata.version(name) for name in PACKAGES},
        "system": platform.system(),
        "machine": platform.machine(),
        "processor": _processor(),
        "cores": len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count(),
        "memory_gib": round(memory / 2**30, 1) if (memory := memory_bytes()) else None,
    }


def _processor() -> str:
    info = Path("/proc/cpuinfo")
    lines = info.read_text().splitlines() if info.exists() else []
    return next(
        (line.split(":", 1)[1].strip() for line in lines if line.startswith("model name")),
        platform.processor(),
    )


def memory_bytes() -> int | None:
    """The memory that processes here may use: the machine's, or less where a container has a limit."""
    if not hasattr(os, "sysconf") or "SC_PHYS_PAGES" not in os.sysconf_names:
        return None
    machine = os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")
    limit = Path("/sys/fs/cgroup/memory.max")
    text = limit.read_text().strip() if limit.exists() else "max"
    return min(machine, int(text)) if text.isdecimal() else machine


def peak_memory_gib() -> float:
    """The most memory that this process has had at once."""
    unit = 1 if sys.platform == "darwin" else 1024  # macOS counts bytes, Linux KiB
    return round(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * unit / 2**30, 3)
