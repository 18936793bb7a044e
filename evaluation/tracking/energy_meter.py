"""Measures the energy of this process with CodeCarbon, if it is installed (extra `energy`); never with the network."""

from __future__ import annotations

import importlib.util
import logging
import threading
import time
from typing import Any

START_SECONDS = 30.0
"""Longest time that a reading waits until CodeCarbon has found out what the machine can measure."""
SECONDS_BETWEEN_READINGS = 1.0
"""A reading that is asked for earlier is the last one: states may be saved many times per second."""

OFFLINE = {
    "output_methods": [],
    "emissions_endpoint": False,
    "electricitymaps_api_token": False,
    "force_carbon_intensity_g_co2e_kwh": 0.0,
}
"""Settings of CodeCarbon's tracker: nothing is sent or written, and no carbon intensity is looked up, whatever the
user's CodeCarbon configuration says. Energy is all that is read."""


class EnergyMeter:
    """Energy in kWh that this process has used since the meter was made; `None` if it can't be measured.

    CodeCarbon reads the counters of the hardware (RAPL, NVML) where the system allows it, and otherwise estimates power
    from the load. It takes seconds to find out which, so it starts in a thread while the data are loaded.
    """

    def __init__(self) -> None:
        self._tracker: Any = None
        self._kwh: float | None = None
        self._read_at = -SECONDS_BETWEEN_READINGS
        self._lock, self._is_closed = threading.Lock(), False
        self._starting: threading.Thread | None = None
        if importlib.util.find_spec("codecarbon") is not None:
            self._starting = threading.Thread(target=self._start, name="energy meter", daemon=True)
            self._starting.start()

    def _start(self) -> None:
        try:
            tracker = _start_tracker(self)
            with self._lock:
                self._tracker = None if self._is_closed else tracker
            if self._is_closed:
                tracker.stop()
        except Exception as error:  # a run must not fail because its energy can't be measured
            logging.getLogger(__name__).debug("energy is not measured: %s", error)

    def read_kwh(self) -> float | None:
        """Return the energy so far."""
        if self._starting is not None:
            self._starting.join(START_SECONDS)
        tracker = self._tracker
        if tracker is not None and time.monotonic() - self._read_at >= SECONDS_BETWEEN_READINGS:
            self._kwh, self._read_at = None, time.monotonic()
            tracker.flush()  # calls `out`, or logs why it can't
        return self._kwh

    def close(self) -> None:
        """Stop measuring, now or as soon as CodeCarbon has started."""
        with self._lock:
            self._is_closed, tracker, self._tracker = True, self._tracker, None
        if tracker is not None:
            tracker.stop()

    # The interface of CodeCarbon's outputs.

    def out(self, total: Any, delta: Any) -> None:
        """Keep the energy of CodeCarbon's measurement."""
        self._kwh = float(total.energy_consumed)

    def live_out(self, total: Any, delta: Any) -> None:
        """Ignore a periodic measurement."""

    def task_out(self, data: Any, experiment_name: str) -> None:
        """Ignore measurements of tasks, of which there are none."""

    def exit(self) -> None:
        """Do nothing at the end."""


def _start_tracker(output: EnergyMeter) -> Any:
    """Return a CodeCarbon tracker of this process that was started, and gives its measurements to `output` alone."""
    from codecarbon import OfflineEmissionsTracker

    logging.getLogger("codecarbon").setLevel(logging.CRITICAL)  # the tracker sets it only after its first lines
    tracker = OfflineEmissionsTracker(
        **OFFLINE,
        output_handlers=[output],
        output_dir=".",
        tracking_mode="process",
        allow_multiple_runs=True,  # the lock of a single one would replace the handlers of signals
        log_level="critical",
    )
    tracker.start()
    return tracker
