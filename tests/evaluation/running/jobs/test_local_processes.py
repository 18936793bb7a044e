"""Several processes at once, with a worker that only waits."""

import contextlib
import os
import signal
import subprocess
import sys

import pytest

from evaluation.running.jobs.local_processes import LocalProcesses
from tests.evaluation.running.jobs.small_jobs import ROOT, Recorder, small_job


@pytest.fixture(autouse=True)
def _in_the_root_folder(monkeypatch):
    monkeypatch.chdir(ROOT)


def run_all(executor, jobs) -> dict[str, int]:
    return {result.job.title: result.code for result in executor.run(jobs)}


def test_jobs_that_wait_for_each_other_end_only_if_they_run_at_once(tmp_path):
    recorder = Recorder()
    jobs = [small_job(tmp_path, "a", waits_for=["b"]), small_job(tmp_path, "b", waits_for=["a"])]
    assert run_all(LocalProcesses(2, recorder), jobs) == {"a": 0, "b": 0}
    assert sorted(recorder.lines) == ["a starts", "b starts"] and recorder.running == set()


def test_a_job_that_fails_or_is_killed_does_not_affect_the_others(tmp_path):
    jobs = [small_job(tmp_path, "a", code=1), small_job(tmp_path, "b", signal=signal.SIGKILL), small_job(tmp_path, "c")]
    assert run_all(LocalProcesses(2, Recorder()), jobs) == {"a": 1, "b": -9, "c": 0}


@pytest.mark.parametrize(("memory", "at_once"), [(20, 2), (19, 1), (5, 1)])
def test_jobs_wait_for_memory_and_one_that_never_fits_runs_alone(tmp_path, memory, at_once):
    recorder = Recorder()
    jobs = [small_job(tmp_path, name, memory=10) for name in "abc"]
    assert run_all(LocalProcesses(3, recorder, memory=memory), jobs) == dict.fromkeys("abc", 0)
    assert recorder.most_at_once == at_once


def test_every_slot_has_its_gpu(tmp_path):
    jobs = [small_job(tmp_path, name, waits_for=["a", "b"]) for name in "ab"]
    run_all(LocalProcesses(2, Recorder(), gpus=("3", "GPU-7f")), jobs)
    assert [(tmp_path / name).read_text() for name in "ab"] == ["3", "GPU-7f"]


def test_a_job_is_taken_only_when_there_is_room_and_earlier_results_are_known(tmp_path):
    """As a search does it, whose next job depends on the results so far."""
    known = []

    def jobs():
        for number in range(4):
            assert len(known) >= number - 1  # of two slots one is free
            yield small_job(tmp_path, str(number))

    known.extend(result.job.title for result in LocalProcesses(2, Recorder()).run(jobs()))
    assert sorted(known) == ["0", "1", "2", "3"]


def test_leaving_early_stops_the_jobs_that_run(tmp_path):
    recorder = Recorder()
    jobs = [small_job(tmp_path, "a", waits_for=["never"]), small_job(tmp_path, "b"), small_job(tmp_path, "c")]
    with contextlib.closing(LocalProcesses(2, recorder).run(jobs)) as results:
        assert next(results).job.title == "b"
    assert "a saved" in recorder.lines and recorder.running == set() and not (tmp_path / "c").exists()


COMMAND = """
import sys
from pathlib import Path
from evaluation.cli import run_command
from evaluation.running.jobs.local_processes import LocalProcesses
from evaluation.running.signals import raise_when_terminated
from tests.evaluation.running.jobs.small_jobs import Recorder, small_job

class Printer(Recorder):
    def on_line(self, job, line):
        print(line, flush=True)

raise_when_terminated()
jobs = [small_job(Path(sys.argv[1]), name, waits_for=["never"]) for name in "abc"]
sys.exit(run_command(lambda: len(list(LocalProcesses(2, Printer()).run(jobs)))))
"""


@pytest.mark.parametrize(("number", "code"), [(signal.SIGINT, 130), (signal.SIGTERM, 143)])
@pytest.mark.parametrize("send", [os.kill, os.killpg], ids=["to the run command alone", "to all processes"])
def test_all_workers_save_and_exit_when_the_run_is_asked_to_stop(tmp_path, number, code, send):
    process = subprocess.Popen(
        [sys.executable, "-c", COMMAND, str(tmp_path)],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        start_new_session=True,
        preexec_fn=lambda: signal.signal(signal.SIGINT, signal.SIG_DFL),
    )
    assert sorted(process.stdout.readline() for _ in range(2)) == ["a starts\n", "b starts\n"]
    send(process.pid, number)
    out, err = process.communicate(timeout=30)
    assert (process.returncode, sorted(out.splitlines())) == (code, ["a saved", "b saved"])
    assert "Traceback" not in err
