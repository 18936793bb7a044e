import json
import math

import pytest

from evaluation.running.jobs import JobResult, board
from evaluation.running.jobs.board import Board
from evaluation.running.progress import PROGRESS_NAME
from tests.evaluation.running.jobs.small_jobs import small_job


@pytest.fixture
def clock(monkeypatch):
    """A clock that tests set."""
    now = [0.0]
    monkeypatch.setattr(board.time, "monotonic", lambda: now[0])
    return now


def write_progress(job, seconds, text):
    (job.folder / PROGRESS_NAME).write_text(json.dumps([seconds, text]))


def test_a_line_per_running_job_and_one_for_all(tmp_path, clock, capsys):
    """Two slots and four jobs of 60 seconds: after 90 seconds two have ended, two are half done."""
    jobs = [small_job(tmp_path / name, name) for name in "abcd"]
    for job in jobs:
        job.folder.mkdir()
    with Board(num_jobs=4, total_weight=4.0, num_slots=2) as display:
        display.on_start(jobs[0])
        display.on_start(jobs[1])
        assert capsys.readouterr().err == ""
        clock[0] = 11
        display.on_wait()
        assert capsys.readouterr().err == (
            "a: starts\nb: starts\n0 of 4 done, 2 running, 2 waiting; time left not known yet\n"
        )
        clock[0] = 60
        display.last_lines_at = 60
        for job in jobs[:2]:
            display.on_end(JobResult(job, 0))
        display.on_start(jobs[2])
        display.on_start(jobs[3])
        write_progress(jobs[2], math.inf, "epoch 3, loss 0.5")
        clock[0] = 90
        display.on_wait()
        assert capsys.readouterr().err == (
            "c: epoch 3, loss 0.5\nd: starts\n2 of 4 done, 2 running, 0 waiting; about 30 s left\n"
        )
        display.on_line(jobs[2], "c: finished \x1b[31m")
        assert capsys.readouterr().err == "c: finished \\u001b[31m\n"


def test_running_jobs_say_themselves_how_long_they_need(tmp_path, clock, capsys):
    """One job took 10 seconds, two will take 100 each: the last one is expected to take their mean, 70."""
    quick, *slow = [small_job(tmp_path / name, name) for name in "abc"]
    with Board(num_jobs=4, total_weight=4.0, num_slots=2) as display:
        display.on_start(quick)
        clock[0] = 10
        display.on_end(JobResult(quick, 0))
        for job in slow:
            job.folder.mkdir()
            display.on_start(job)
            write_progress(job, 60.0, "epoch 3")
        clock[0] = 50
        display.on_wait()
    assert capsys.readouterr().err.endswith("1 of 4 done, 2 running, 1 waiting; about 1 min 35 s left\n")
