"""Signals: the run command forwards a stop request to the worker, which saves its state and exits.

SIGTERM requests a stop, however often it is sent. The first SIGINT does too; the second one exits at once. A worker
also exits when the run command ends in any way: its standard input is a pipe that closes with the run command.
"""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import threading
from collections.abc import Collection, Iterator, Mapping, Sequence
from contextlib import contextmanager
from types import FrameType
from typing import NoReturn

from evaluation.cli import Interrupted

SIGNALS = {signal.SIGINT, signal.SIGTERM}
SHOW_CURSOR = "\x1b[?25h"


class StopFlag:
    """Callable flag of a worker: True once a stop was requested; the first signal determines the exit code."""

    def __init__(self) -> None:
        self.signal: int | None = None

    def __call__(self) -> bool:
        """Return whether a stop was requested."""
        return self.signal is not None

    @property
    def exit_code(self) -> int:
        """The exit code of a process that the signal ended, as shells report it."""
        return 128 + (self.signal or 0)

    def listen(self) -> None:
        """Unblock and receive signals, and exit when the run command ends; workers are started with signals blocked."""
        signal.signal(signal.SIGTERM, self.receive)
        if signal.getsignal(signal.SIGINT) is not signal.SIG_IGN:  # ignored in background jobs of scripts
            signal.signal(signal.SIGINT, self.receive)
        unblock_signals()
        threading.Thread(target=exit_with_run_command, daemon=True).start()

    def receive(self, number: int, frame: FrameType | None) -> None:
        """Set the flag; a second Ctrl-C ends the process."""
        if self.signal == number == signal.SIGINT:
            os._exit(128 + number)  # needs no clean-up: files are written atomically
        self.signal = self.signal or number


def unblock_signals() -> None:
    """Receive signals that were blocked when this worker was started."""
    if hasattr(signal, "pthread_sigmask"):
        signal.pthread_sigmask(signal.SIG_UNBLOCK, SIGNALS)


@contextmanager
def signals_blocked(signals: Collection[signal.Signals] = frozenset(SIGNALS)) -> Iterator[None]:
    """Block SIGINT and SIGTERM within the block, also in processes that it starts; a pending one raises at its end.

    Windows cannot block signals: there a stop request may come too early for a new worker, which then saves nothing.
    """
    if not hasattr(signal, "pthread_sigmask"):
        yield
        return
    mask = signal.pthread_sigmask(signal.SIG_BLOCK, signals)
    try:
        yield
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, mask)


@contextmanager
def stop_on_interrupt() -> Iterator[StopFlag]:
    """Let the first Ctrl-C set the flag instead of raising `KeyboardInterrupt`, within the block, for training here.

    Only the main thread can receive signals; elsewhere the flag stays unset.
    """
    stop = StopFlag()
    if threading.current_thread() is not threading.main_thread():
        yield stop
        return
    previous = signal.signal(signal.SIGINT, stop.receive)
    try:
        yield stop
    finally:
        signal.signal(signal.SIGINT, previous)


def exit_with_run_command() -> None:
    """Wait for the end of the run command, at which the standard input of its workers closes, and exit."""
    while os.read(0, 1024):  # ends at the end of standard input
        pass
    os._exit(128 + signal.SIGTERM)


def raise_when_terminated() -> None:
    """Make SIGTERM raise `Interrupted`, so that this process cleans up as after Ctrl-C."""

    def interrupt(number: int, frame: FrameType | None) -> NoReturn:
        raise Interrupted(128 + number)

    signal.signal(signal.SIGTERM, interrupt)


def run_process(command: Sequence[str], environment: Mapping[str, str], descriptors: Sequence[int]) -> int:
    """Run a worker to its end and return its exit code.

    A stop request (`KeyboardInterrupt` or `Interrupted`) is forwarded, and raised again when the worker has saved its
    state and exited; a further Ctrl-C kills the worker.

    Args:
        command: command line of the worker.
        environment: environment variables of the worker.
        descriptors: file descriptors that the worker inherits.
    """
    process: subprocess.Popen[bytes] | None = None
    try:
        with signals_blocked():
            process = subprocess.Popen(command, env=environment, stdin=subprocess.PIPE, pass_fds=descriptors)
        return process.wait()
    except (KeyboardInterrupt, Interrupted):
        if process is None:
            raise
        signal.signal(signal.SIGTERM, signal.SIG_IGN)
        process.terminate()
        try:
            process.wait()
        except KeyboardInterrupt:
            process.kill()
            process.wait()
            if sys.stderr.isatty():
                sys.stderr.write(SHOW_CURSOR)
        raise
    finally:
        if process is not None and process.stdin:
            process.stdin.close()
