"""The cost of a training: processor time, GPU time and energy."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Cost:
    """What a computation has used; `None` for what was not measured, in a part or in the whole.

    Args:
        cpu_seconds: processor time, summed over cores.
        gpu_seconds: time that GPUs were held, whether they were busy or not, summed over GPUs.
        energy_kwh: energy in kilowatt-hours.
    """

    cpu_seconds: float | None = None
    gpu_seconds: float | None = None
    energy_kwh: float | None = None

    def __add__(self, other: Cost) -> Cost:
        """Return the sum; what one of the two does not know, the sum does not know either."""
        return Cost(
            _add(self.cpu_seconds, other.cpu_seconds),
            _add(self.gpu_seconds, other.gpu_seconds),
            _add(self.energy_kwh, other.energy_kwh),
        )

    def __neg__(self) -> Cost:
        return Cost(_negative(self.cpu_seconds), _negative(self.gpu_seconds), _negative(self.energy_kwh))

    def __sub__(self, other: Cost) -> Cost:
        return self + -other


NO_COST = Cost(0.0, 0.0, 0.0)
"""The cost of nothing, where a sum starts."""

NOT_MEASURED = Cost()


def _add(first: float | None, second: float | None) -> float | None:
    return None if first is None or second is None else first + second


def _negative(value: float | None) -> float | None:
    return None if value is None else -value
