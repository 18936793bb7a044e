import math
import subprocess
import sys
from pathlib import Path

import pytest

from evaluation.running.jobs import Job
from evaluation.running.worker import WorkerOptions, worker_environment


@pytest.mark.parametrize("time_limit", [90.0, math.inf])
def test_a_worker_reads_the_options_that_its_command_has(time_limit):
    options = WorkerOptions(
        recipe=Path("recipes/a b.py"),
        model='50 % "quoted" é',
        seed=3,
        data_dir=Path("/data"),
        run=Path("results/a"),
        time_limit=time_limit,
        smoke=True,
    )
    job = Job("title", "evaluation.running.worker", options.to_json(), Path("results/a"))
    *command, argument = job.command()
    assert command == [sys.executable, "-P", "-m", "evaluation.running.worker"]
    assert WorkerOptions.from_json(argument) == options


def test_variables_that_the_user_has_set_are_kept():
    environment = worker_environment({"MALLOC_ARENA_MAX": "4", "HOME": "/home/someone"})
    assert environment["MALLOC_ARENA_MAX"] == "4" and environment["HOME"] == "/home/someone"
    assert environment["MALLOC_MMAP_MAX_"] == "0"


@pytest.mark.parametrize("is_found", [True, False])
def test_a_worker_finds_the_package_before_a_users_evaluation_and_his_modules_if_the_command_does(
    tmp_path, monkeypatch, is_found
):
    """A file evaluation.py in the current folder does not take the package's place."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / "evaluation.py").write_text("raise SystemExit('the wrong evaluation')")
    (tmp_path / "own_layers.py").write_text("")
    monkeypatch.setattr(sys, "path", [str(tmp_path)] if is_found else ["/usr/bin"])
    environment = worker_environment({"PYTHONPATH": "", "HOME": "/"})
    code = "import importlib.util as u, evaluation.cli; print(u.find_spec('own_layers') is not None)"
    command = [sys.executable, "-P", "-c", code]
    found = subprocess.run(command, env=environment, capture_output=True, text=True, check=True)
    assert found.stdout.split() == [str(is_found)]
