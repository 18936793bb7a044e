"""A run's cost: measured by a fake meter, added up over restarts, stored; CodeCarbon is asked for energy alone."""

import math
import sys
import time
from pathlib import Path
from types import SimpleNamespace

import pytest

from aprec_like.datasets import TextFile
from aprec_like.errors import StoppedError
from aprec_like.losses import BPR
from aprec_like.models import MatrixFactorisation, Popularity
from aprec_like.recipe import Recipe, Trained
from aprec_like.splits import LeaveOneOut
from aprec_like.training import Training, epoch_loop
from aprec_like.training.cost import Cost
from evaluation.results.store import RunFolder
from evaluation.running.fit_model import ModelRun
from evaluation.running.run_job import run_and_record
from evaluation.running.run_model import run_model
from evaluation.running.signals import StopFlag
from evaluation.tracking import cost_meter, energy_meter
from evaluation.tracking.cost_meter import CostMeter
from evaluation.tracking.energy_meter import EnergyMeter

MODELS = {
    "Popularity": Popularity(),
    "MF": Trained(MatrixFactorisation(4), BPR(1), Training(batch_size=128, max_epochs=2)),
}


@pytest.fixture
def model_run(circle_file):
    """Return a function that makes the run of a model."""

    def make(name):
        recipe = Recipe(TextFile(circle_file.name), MODELS, split=LeaveOneOut(num_validation_users=50))
        folder = RunFolder(circle_file.parent / "results").model(name, 1)
        return ModelRun(recipe, name, 1, circle_file.parent, folder, math.inf)

    return make


class FakeEnergy:
    """A meter of 0.25 kWh per reading."""

    def __init__(self):
        self.kwh, self.is_closed = 0.0, False

    def read_kwh(self):
        self.kwh += 0.25
        return self.kwh

    def close(self):
        self.is_closed = True


def test_cost_of_a_block(monkeypatch):
    monkeypatch.setattr(cost_meter, "num_held_gpus", lambda: 2)
    energy = FakeEnergy()
    with CostMeter(energy) as meter:
        time.sleep(0.05)
        cost = meter.read()
        assert not energy.is_closed
    assert energy.is_closed and cost.energy_kwh == 0.25
    assert 0 <= cost.cpu_seconds < 0.05  # sleeping costs no processor time
    assert cost.gpu_seconds >= 0.1  # two GPUs are held meanwhile


class CountedReadings:
    """A meter whose readings are `size`, 2 * `size`, 3 * `size` and so on."""

    def __init__(self, size):
        self.size, self.value = size, 0.0

    def read(self):
        self.value += self.size
        return Cost(self.value, 10 * self.value, None if self.size < 0 else self.value / 4)


def run_once(run, meter, is_stopping=lambda: False):
    with run.make_display() as display:
        run_model(run, display, is_stopping, meter.read)


def test_a_resumed_run_adds_the_cost_of_the_processes_before_it(model_run, monkeypatch):
    """The first process reads 1 when training starts and 2 when it is stopped: one unit of training."""
    monkeypatch.setattr(epoch_loop, "MAX_STEPS_PER_CALL", 1)
    run, first, second = model_run("MF"), CountedReadings(1.0), CountedReadings(100.0)
    with pytest.raises(StoppedError):
        run_once(run, first, is_stopping=lambda: first.value > 0)
    assert first.value == 2 and second.value == 0
    run_once(run, second)
    total = second.value + 1
    assert run.folder.status()["cost"] == {
        "cpu_seconds": total, "gpu_seconds": 10 * total, "energy_kwh": total / 4,
    }  # fmt: skip


def test_a_counting_model_has_a_cost_and_what_is_not_measured_is_null(model_run):
    run = model_run("Popularity")
    run_once(run, CountedReadings(-1.0))
    assert run.folder.status()["cost"] == {"cpu_seconds": -1.0, "gpu_seconds": -10.0, "energy_kwh": None}


@pytest.fixture
def without_codecarbon(monkeypatch):
    monkeypatch.setattr(energy_meter.importlib.util, "find_spec", lambda name: None)


def test_a_run_without_codecarbon_measures_processor_time_and_no_energy(model_run, without_codecarbon):
    run = model_run("Popularity")
    assert run_and_record(run, run.make_display(), StopFlag()) == 0
    cost = run.folder.status()["cost"]
    assert cost["cpu_seconds"] > 0 and cost["gpu_seconds"] == 0 and cost["energy_kwh"] is None


class FakeTracker:
    """Stands for CodeCarbon's tracker: 2 kWh at every measurement."""

    def __init__(self, **settings):
        self.settings, self.kwh, self.calls = settings, 0.0, []
        FakeTracker.last = self

    def start(self):
        self.calls.append("start")

    def flush(self):
        self.kwh += 2
        self.calls.append("flush")
        self.settings["output_handlers"][0].out(SimpleNamespace(energy_consumed=self.kwh), None)

    def stop(self):
        self.calls.append("stop")


@pytest.fixture
def fake_codecarbon(monkeypatch):
    monkeypatch.setitem(sys.modules, "codecarbon", SimpleNamespace(OfflineEmissionsTracker=FakeTracker))
    monkeypatch.setattr(energy_meter.importlib.util, "find_spec", lambda name: name)


def test_energy_is_read_from_an_offline_tracker_that_sends_and_writes_nothing(fake_codecarbon, monkeypatch):
    meter = EnergyMeter()
    assert meter.read_kwh() == 2
    assert meter.read_kwh() == 2  # within a second: the last reading
    monkeypatch.setattr(energy_meter, "SECONDS_BETWEEN_READINGS", 0.0)
    assert meter.read_kwh() == 4
    meter.close()
    tracker = FakeTracker.last
    assert tracker.calls == ["start", "flush", "flush", "stop"]
    settings = tracker.settings
    assert settings["output_methods"] == [] and settings["output_handlers"] == [meter]
    assert settings["emissions_endpoint"] is False and settings["electricitymaps_api_token"] is False


@pytest.mark.parametrize("broken", ["__init__", "start"])
def test_a_tracker_that_fails_leaves_energy_unmeasured(fake_codecarbon, monkeypatch, broken):
    def fail(self, **settings):
        raise OSError("no counters")

    monkeypatch.setattr(FakeTracker, broken, fail)
    meter = EnergyMeter()
    assert meter.read_kwh() is None
    meter.close()


def test_a_tracker_that_stops_measuring_leaves_energy_unmeasured(fake_codecarbon, monkeypatch):
    """CodeCarbon logs its errors and goes on: a reading that did not arrive must not be taken for the last one."""
    monkeypatch.setattr(energy_meter, "SECONDS_BETWEEN_READINGS", 0.0)
    meter = EnergyMeter()
    assert meter.read_kwh() == 2
    monkeypatch.setattr(FakeTracker, "flush", lambda self: None)
    assert meter.read_kwh() is None


def test_codecarbon_measures_the_energy_of_this_process_without_a_word_or_a_connection(tmp_path, capfd, monkeypatch):
    pytest.importorskip("codecarbon", reason="needs the extra energy")
    monkeypatch.chdir(tmp_path)
    settings = {"save_to_api": True, "emissions_endpoint": "http://127.0.0.1:9/", "electricitymaps_api_token": "secret"}
    lines = [f"{name} = {value}" for name, value in settings.items()]
    Path(".codecarbon.config").write_text("\n".join(["[codecarbon]", *lines]))
    connections = []
    monkeypatch.setattr("socket.socket.connect", lambda self, address: connections.append(address))
    monkeypatch.setattr(energy_meter, "SECONDS_BETWEEN_READINGS", 0.0)
    meter = EnergyMeter()
    first, until = meter.read_kwh(), time.process_time() + 0.5
    while time.process_time() < until:
        pass
    second = meter.read_kwh()
    meter.close()
    assert 0 <= first < second < 0.01
    assert not connections and not any(capfd.readouterr())
    assert [path.name for path in tmp_path.iterdir()] == [".codecarbon.config"]
