"""Modules and functions that Windows or macOS lack: everything is imported without them, and a run is locked."""

import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).parent.parent

HIDE = """
import importlib, os, pkgutil, signal, sys
import asyncio, matplotlib, multiprocessing, pandas, psutil, rich.console, subprocess, tempfile, tensorflow
for name in ("fcntl", "resource", "termios", "pwd", "grp"):
    sys.modules[name] = None
for owner, names in {signal: ("pthread_sigmask", "SIGKILL"), os: ("pread", "pwrite", "sched_getaffinity")}.items():
    for name in names:
        delattr(owner, name)
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


def run_without_linux(code):
    done = subprocess.run([sys.executable, "-c", HIDE + code], cwd=ROOT, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr[-3000:]


def test_everything_is_imported_without_what_only_linux_has():
    run_without_linux(IMPORT_ALL)


def test_a_results_folder_is_locked_without_locks_of_the_system():
    run_without_linux(LOCK)
