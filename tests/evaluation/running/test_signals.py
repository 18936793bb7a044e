"""Signals between the run command and a worker that only waits."""

import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[3]

RUN_COMMAND = """
import os, sys
from evaluation.cli import run_command
from evaluation.running.signals import raise_when_terminated, run_process
raise_when_terminated()
sys.exit(run_command(lambda: run_process([sys.executable, "-c", sys.argv[1]], os.environ, [])))
"""
WORKER = """
import sys, time
from evaluation.running.signals import StopFlag
{before}
stop = StopFlag()
stop.listen()
print("ready", flush=True)
while not ({obeys} and stop()):
    time.sleep(0.005)
print("saved", flush=True)
sys.exit(stop.exit_code)
"""


def start(before="", obeys=True, sigint=signal.SIG_DFL):
    command = [sys.executable, "-c", RUN_COMMAND, WORKER.format(before=before, obeys=obeys)]
    return subprocess.Popen(
        command,
        cwd=ROOT,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        start_new_session=True,
        preexec_fn=lambda: signal.signal(signal.SIGINT, sigint),
    )


def ended(process):
    """Return exit code and output once all processes that hold the pipes have ended."""
    out, err = process.communicate(timeout=30)
    assert "Traceback" not in err
    return process.returncode, out.split()


@pytest.mark.parametrize(("number", "code"), [(signal.SIGINT, 130), (signal.SIGTERM, 143)])
@pytest.mark.parametrize("send", [os.kill, os.killpg], ids=["to the run command alone", "to all processes"])
def test_a_worker_saves_and_exits_when_the_run_is_asked_to_stop(number, code, send):
    process = start()
    assert process.stdout.readline() == "ready\n"
    send(process.pid, number)
    assert ended(process) == (code, ["saved"])


def test_a_second_ctrl_c_exits_at_once():
    process = start(obeys=False)
    assert process.stdout.readline() == "ready\n"
    for _ in range(2):
        with pytest.raises(subprocess.TimeoutExpired):
            process.wait(0.3)
        os.killpg(process.pid, signal.SIGINT)
    assert ended(process) == (130, [])


def test_sigterm_requests_a_stop_however_often():
    process = start()
    assert process.stdout.readline() == "ready\n"
    for _ in range(3):
        os.killpg(process.pid, signal.SIGTERM)
    assert ended(process) == (143, ["saved"])


def test_a_background_job_of_a_script_ignores_ctrl_c_and_stops_on_sigterm():
    process = start(sigint=signal.SIG_IGN)
    assert process.stdout.readline() == "ready\n"
    os.killpg(process.pid, signal.SIGINT)
    with pytest.raises(subprocess.TimeoutExpired):
        process.wait(0.3)
    process.terminate()
    assert ended(process) == (143, ["saved"])


def test_a_worker_exits_when_the_run_command_is_killed():
    process = start()
    assert process.stdout.readline() == "ready\n"
    process.kill()
    assert ended(process) == (-9, [])


def test_a_signal_before_a_worker_listens_is_not_lost_and_prints_no_traceback():
    process = start(before='print("starting", flush=True); time.sleep(0.5)')
    assert process.stdout.readline() == "starting\n"
    os.killpg(process.pid, signal.SIGINT)
    assert ended(process) == (130, ["ready", "saved"])
