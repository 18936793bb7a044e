"""Measures what the training of a model costs: processor time, GPU time and energy of this process."""

from __future__ import annotations

import time
from types import TracebackType
from typing import Protocol

import tensorflow as tf

from aprec_like.training.cost import Cost
from evaluation.tracking.energy_meter import EnergyMeter


class ReadsEnergy(Protocol):
    """A meter of energy."""

    def read_kwh(self) -> float | None:
        """Return the energy so far; `None` if it can't be measured."""

    def close(self) -> None:
        """Stop measuring."""


class CostMeter:
    """Measures the cost of what happens in a `with` block, in this process.

    Args:
        energy: a meter of energy; by default CodeCarbon, where it is installed.
    """

    def __init__(self, energy: ReadsEnergy | None = None) -> None:
        self._energy = energy or EnergyMeter()
        self._started, self._cpu_started = time.monotonic(), time.process_time()

    def __enter__(self) -> CostMeter:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        self._energy.close()

    def read(self) -> Cost:
        """Return the cost since the meter was made."""
        return Cost(
            cpu_seconds=time.process_time() - self._cpu_started,
            gpu_seconds=(time.monotonic() - self._started) * num_held_gpus(),
            energy_kwh=self._energy.read_kwh(),
        )


def num_held_gpus() -> int:
    """Return the number of GPUs that train a model in the current scope, on all hosts."""
    return tf.distribute.get_strategy().num_replicas_in_sync if tf.config.list_logical_devices("GPU") else 0
