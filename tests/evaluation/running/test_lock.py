import errno
import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from aprec_like.errors import InputError
from aprec_like.files import StorageError
from evaluation.running import lock
from evaluation.running.lock import RunLock

ROOT = Path(__file__).parents[3]

HOLDER = """
import subprocess, sys
from pathlib import Path
from evaluation.running.lock import RunLock
with RunLock(Path(sys.argv[1])) as lock:
    child = subprocess.Popen(["sleep", sys.argv[2]], pass_fds=lock.descriptors, stdout=subprocess.DEVNULL)
    print(child.pid, flush=True)
    sys.stdin.read()
"""


@pytest.fixture
def hold(tmp_path):
    """Start a process that holds the lock, with a child that inherits it."""
    started = []

    def start(child_seconds):
        command = [sys.executable, "-c", HOLDER, str(tmp_path / ".lock"), str(child_seconds)]
        process = subprocess.Popen(command, cwd=ROOT, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
        started.append(process)
        return process, int(process.stdout.readline())

    yield start
    for process in started:
        process.kill()
        process.communicate()


@pytest.fixture
def path(tmp_path, monkeypatch):
    monkeypatch.setattr(lock, "SECONDS_TO_WAIT", 0.3)
    return tmp_path / ".lock"


def test_a_second_run_is_refused_with_the_name_of_the_holder(path, hold):
    process, child = hold(60)
    with (
        pytest.raises(InputError, match=f"in use by another run .process {process.pid} on .*, since "),
        RunLock(path),
    ):
        pass
    os.kill(child, signal.SIGKILL)


def test_the_lock_is_held_until_the_last_process_that_inherited_it_ends(path, hold):
    process, child = hold(60)
    process.kill()
    process.wait()
    with pytest.raises(InputError, match="in use by another run"), RunLock(path):
        pass
    os.kill(child, signal.SIGKILL)
    time.sleep(0.05)
    with RunLock(path):
        assert json.loads(path.read_text())["pid"] == os.getpid()


def test_a_run_waits_for_workers_that_are_exiting(path, hold, monkeypatch):
    monkeypatch.setattr(lock, "SECONDS_TO_WAIT", 10)
    process, _ = hold(1)
    process.kill()
    with RunLock(path):
        pass


def test_the_lock_file_of_a_killed_run_does_not_block_and_a_finished_run_empties_it(path):
    path.write_text('{"pid": 1, "host": "elsewhere"}')
    with RunLock(path):
        pass
    assert path.read_bytes() == b""


def test_a_deleted_lock_file_does_not_let_a_second_run_in(path, hold):
    _, child = hold(60)
    path.unlink()
    with pytest.raises(InputError, match="in use by another run"), RunLock(path):
        pass
    os.kill(child, signal.SIGKILL)


@pytest.fixture
def no_locks(monkeypatch):
    def unsupported(*_):
        raise OSError(errno.ENOLCK, "No locks available")

    monkeypatch.setattr("fcntl.flock", unsupported)


def test_without_locks_a_file_keeps_a_second_run_out(path, no_locks, capsys):
    with RunLock(path):
        assert "no locks; .lock-holder keeps other runs out" in capsys.readouterr().err
        line = f"in use by another run .process {os.getpid()} on .*if that process is gone, remove .*lock-holder"
        with pytest.raises(InputError, match=line), RunLock(path):
            pass
    assert path.read_bytes() == b"" and [found.name for found in path.parent.iterdir()] == [".lock"]


@pytest.mark.parametrize("holder", [{"host": "elsewhere", "pid": 1, "since": "today"}, {}, "no JSON"])
def test_without_locks_a_run_of_another_host_or_an_unknown_one_is_never_taken_for_gone(path, no_locks, holder):
    path.with_name(".lock-holder").write_text(json.dumps(holder))
    with pytest.raises(InputError, match="in use by another run"), RunLock(path):
        pass
    assert path.with_name(".lock-holder").exists()


@pytest.mark.parametrize("change", [{"pid": 2**22 + 1}, {"boot": "an earlier one"}])
def test_without_locks_the_file_of_a_run_of_this_host_that_is_gone_does_not_block(path, no_locks, change):
    path.with_name(".lock-holder").write_text(json.dumps(lock._this_process() | change))
    with RunLock(path):
        assert json.loads(path.with_name(".lock-holder").read_text())["pid"] == os.getpid()


def test_a_lock_file_that_is_a_link_is_refused_and_its_target_is_left_alone(path, tmp_path):
    target = tmp_path / "precious"
    target.write_text("text")
    for make_link in (path.symlink_to, path.hardlink_to):
        make_link(target)
        with pytest.raises(StorageError, match=r"\.lock: cannot be written: it is a link"), RunLock(path):
            pass
        path.unlink()
    assert target.read_text() == "text"


def test_a_folder_that_cannot_be_created_is_a_storage_error(tmp_path):
    (tmp_path / "file").write_text("")
    with pytest.raises(StorageError, match="cannot be written"), RunLock(tmp_path / "file" / ".lock"):
        pass
