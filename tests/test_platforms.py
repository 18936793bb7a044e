"""What Windows or macOS lack is hidden: everything is imported without it, a run is locked, models and workers run."""

import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).parent.parent

HIDE = """
import errno, fcntl, importlib, os, pkgutil, signal, sys
import asyncio, matplotlib, multiprocessing, pandas, psutil, rich.console, subprocess, tempfile, tensorflow
for name in ("fcntl", "resource", "termios", "pwd", "grp"):
    sys.modules[name] = None
hidden = {
    signal: "pthread_sigmask SIG_BLOCK SIG_UNBLOCK SIG_SETMASK SIGKILL SIGHUP SIGUSR1 SIGALRM alarm",
    os: "pread pwrite sched_getaffinity sched_setaffinity killpg getpgid setsid fork forkpty getuid geteuid fchmod "
    "nice O_NOFOLLOW O_NONBLOCK O_CLOEXEC O_DIRECTORY",
}
for owner, names in hidden.items():
    for name in names.split():
        delattr(owner, name)
open_posix, fsync_posix, start_posix = os.open, os.fsync, subprocess.Popen.__init__

def open_as_windows(path, *arguments, **options):
    if os.path.isdir(path):
        raise PermissionError(errno.EACCES, "a folder can't be opened", path)
    return open_posix(path, *arguments, **options)

def fsync_as_windows(descriptor):
    if fcntl.fcntl(descriptor, fcntl.F_GETFL) & os.O_ACCMODE == os.O_RDONLY:
        raise OSError(errno.EBADF, "a file that is open for reading can't be flushed")
    fsync_posix(descriptor)

def start_as_windows(self, *arguments, pass_fds=(), preexec_fn=None, start_new_session=False, **options):
    assert not pass_fds and preexec_fn is None and not start_new_session
    start_posix(self, *arguments, **options)

os.open, os.fsync, subprocess.Popen.__init__ = open_as_windows, fsync_as_windows, start_as_windows
"""
IMPORT_ALL = """
import aprec_like, evaluation
for package in (aprec_like, evaluation):
    for module in pkgutil.walk_packages(package.__path__, package.__name__ + "."):
        if module.name.startswith("aprec_like.recipes"):
            continue
        importlib.import_module(module.name)
"""
LOCK = """
import sys, tempfile
from pathlib import Path
from aprec_like.errors import InputError
from evaluation.running.lock import RunLock
from evaluation.running.signals import StopFlag
folder = Path(tempfile.mkdtemp())
with RunLock(folder / ".lock"):
    try:
        with RunLock(folder / ".lock"):
            sys.exit("locked twice")
    except InputError as error:
        assert "in use" in str(error), error
with RunLock(folder / ".lock"):
    pass
"""

PROCESSES = """
from evaluation.running.jobs.local_processes import LocalProcesses
from evaluation.running.signals import run_process
from tests.evaluation.running.jobs.small_jobs import Recorder, small_job
without_masks = "import signal; del signal.pthread_sigmask; from evaluation.running.signals import StopFlag; "
worker = [sys.executable, "-c", without_masks + "StopFlag().listen(); raise SystemExit(3)"]
with RunLock(folder / ".lock") as lock:
    assert run_process(worker, dict(os.environ), lock.inherited_descriptors) == 3
    jobs = [small_job(folder, "a", waits_for=["b"]), small_job(folder, "b", code=1)]
    executor = LocalProcesses(2, Recorder(), descriptors=lock.inherited_descriptors)
    assert {result.job.title: result.code for result in executor.run(jobs)} == {"a": 0, "b": 1}
"""
RUN = """
from aprec_like.datasets import TextFile
from aprec_like.models import Popularity
from aprec_like.recipe import Recipe
from aprec_like.splits import LeaveOneOut
from evaluation.notebook import run
(folder / "pairs.txt").write_text("".join(f"{user} {user % 5 + item}\\n" for user in range(30) for item in range(5)))
recipe = Recipe(TextFile("pairs.txt"), {"Popularity": Popularity()}, split=LeaveOneOut(num_validation_users=5))
results = run(recipe, folder / "results", data=folder)
assert (folder / "results" / "table.md").exists() and results.models == ["Popularity"]
"""


def run_without_linux(code):
    done = subprocess.run([sys.executable, "-c", HIDE + code], cwd=ROOT, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr[-3000:]


def test_everything_is_imported_without_what_only_linux_has():
    run_without_linux(IMPORT_ALL)


def test_a_results_folder_is_locked_and_models_and_workers_run_without_what_only_linux_has():
    run_without_linux(LOCK + PROCESSES + RUN)
