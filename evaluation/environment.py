"""What a run was made with: versions and hardware, nothing that names a person or a machine."""

from __future__ import annotations

import os
import platform
from importlib import metadata
from pathlib import Path

import aprec_like
from evaluation.documents import Json

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
        "memory_gib": _memory_gib(),
    }


def _processor() -> str:
    info = Path("/proc/cpuinfo")
    lines = info.read_text().splitlines() if info.exists() else []
    return next(
        (line.split(":", 1)[1].strip() for line in lines if line.startswith("model name")),
        platform.processor(),
    )


def _memory_gib() -> float | None:
    if not hasattr(os, "sysconf") or "SC_PHYS_PAGES" not in os.sysconf_names:
        return None
    return round(os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE") / 2**30, 1)
