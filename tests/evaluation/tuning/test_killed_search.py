"""Searches in real processes, which are killed at any moment: no trial is lost, none is counted twice."""

import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import psutil
import pytest

from tests.evaluation.tuning.small_studies import write_recipe

ROOT = Path(__file__).parent.parent.parent.parent
NUM_TRIALS = 6
SECONDS = 600


def start(path, *options):
    command = [
        sys.executable, "-m", "evaluation.tune", str(path), "--trials", str(NUM_TRIALS), "--only", "gSASRec",
        "--results", str(path.parent / "results"), "--retrain", "0", *options,
    ]  # fmt: skip
    environment = {**os.environ, "PYTHONPATH": str(ROOT)}
    return subprocess.Popen(command, env=environment, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True)


def wait_until(condition):
    deadline = time.monotonic() + SECONDS
    while not condition():
        assert time.monotonic() < deadline
        time.sleep(0.1)


def read_trials(path):
    """The content of trial.json of every finished trial, by name of the folder."""
    folder = path.parent / "results/circle-tuning/gSASRec"
    return {file.parent.name: json.loads(file.read_text()) for file in sorted(folder.glob("trial_*/trial.json"))}


@pytest.mark.slow
def test_a_study_ends_with_its_trials_whatever_is_killed(tmp_path):
    """Of two commands, one runs two trials at once: a worker of it is killed, then itself; it is started again."""
    path = write_recipe(tmp_path / "recipes")
    first, second = start(path, "--jobs", "2"), start(path)
    wait_until(lambda: len(read_trials(path)) >= 1 and psutil.Process(first.pid).children())
    psutil.Process(first.pid).children()[0].send_signal(signal.SIGKILL)
    wait_until(lambda: len(read_trials(path)) >= 3)
    first.kill()
    first.wait()
    third = start(path)
    for process in (second, third):
        error = process.communicate(timeout=SECONDS)[1]
        assert process.returncode == 0, error
    assert list(read_trials(path)) == [f"trial_{number:04}" for number in range(NUM_TRIALS)]
    assert {trial["state"] for trial in read_trials(path).values()} == {"complete"}
    assert not list(path.parent.glob("results/**/checkpoint"))


@pytest.mark.slow
def test_ctrl_c_and_the_same_command_again_give_the_same_trials(tmp_path):
    whole, parts = (write_recipe(tmp_path / name) for name in ("whole", "parts"))
    assert start(whole).wait(SECONDS) == 0
    interrupted = start(parts)
    wait_until(lambda: len(read_trials(parts)) >= 2)
    interrupted.send_signal(signal.SIGINT)
    assert interrupted.wait(SECONDS) == 130
    assert start(parts).wait(SECONDS) == 0
    same = ("state", "values", "best_epoch", "epochs")
    assert [[trial[name] for name in same] for trial in read_trials(whole).values()] == [
        [trial[name] for name in same] for trial in read_trials(parts).values()
    ]
