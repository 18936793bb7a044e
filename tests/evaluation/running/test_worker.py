import math
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
    assert command == [sys.executable, "-m", "evaluation.running.worker"]
    assert WorkerOptions.from_json(argument) == options


def test_variables_that_the_user_has_set_are_kept():
    environment = worker_environment({"MALLOC_ARENA_MAX": "4", "HOME": "/home/someone"})
    assert environment["MALLOC_ARENA_MAX"] == "4" and environment["HOME"] == "/home/someone"
    assert environment["MALLOC_MMAP_MAX_"] == "0"
