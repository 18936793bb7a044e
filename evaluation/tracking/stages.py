"""Seconds, processor seconds and peak memory of the stages of a process, as Linux tells them."""

from __future__ import annotations

import math
import re
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Self

from typing_extensions import override

PROCESS = Path("/proc/self")
SECONDS_BETWEEN_SAMPLES = 0.05


@contextmanager
def stage(name: str) -> Iterator[None]:
    """Print the name, seconds, processor seconds and peak memory of a block."""
    with (PROCESS / "clear_refs").open("w") as file:
        file.write("5")  # sets the peak to the present
    started, processor = time.monotonic(), time.process_time()
    with _SampledMemory() as own:
        yield
    seconds, used = time.monotonic() - started, time.process_time() - processor
    memory = f"peak {_gib('VmHWM'):.2f} GiB, without mapped files {own.peak:.2f} GiB"
    print(f"{name:<24} {seconds:8.1f} s {used:8.1f} s of processors, {memory}", flush=True)


class _SampledMemory(threading.Thread):
    """Peak of the memory that the system cannot take back from the process, sampled within a block, in GiB."""

    def __init__(self) -> None:
        super().__init__(daemon=True)
        self.peak = _gib("RssAnon")
        self._is_over = threading.Event()

    def __enter__(self) -> Self:
        self.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._is_over.set()
        self.join()

    @override
    def run(self) -> None:
        while not self._is_over.wait(SECONDS_BETWEEN_SAMPLES):
            self.peak = max(self.peak, _gib("RssAnon"))


def _gib(name: str) -> float:
    """Return a size of this process, as Linux reports it."""
    found = re.search(rf"{name}:\s+(\d+) kB", (PROCESS / "status").read_text())
    return int(found[1]) / 2**20 if found else math.nan
