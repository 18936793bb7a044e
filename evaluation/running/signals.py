"""How a run stops: the runner passes a request to stop on to the process of a model, which saves and leaves.

SIGTERM asks, however often it is sent. The first SIGINT asks too, a second one means at once. A model's process also
leaves when the runner is gone, whatever became of it: its standard input is a pipe that ends with the runner.
"""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import threading
from collections.abc import Mapping, Sequence
from types import FrameType
from typing import NoReturn

from evaluation.cli import Interrupted

SIGNALS = {signal.SIGINT, signal.SIGTERM}
SHOW_CURSOR = "\x1b[?25h"


class StopFlag:
    """Whether the process of a model was asked to stop; the first signal decides the exit code."""

    def __init__(self) -> None:
        self.signal: int | None = None

    def __call__(self) -> bool:
        """Whether there was a request."""
        return self.signal is not None

    @property
    def exit_code(self) -> int:
        """As a shell would give it to a process that the signal ended."""
        return 128 + (self.signal or 0)

    def listen(self) -> None:
        """Heed signals and the end of the runner from now on; the runner starts a process with signals held back."""
        signal.signal(signal.SIGTERM, self._receive)
        if signal.getsignal(signal.SIGINT) is not signal.SIG_IGN:  # as it is for a script's job in the background
            signal.signal(signal.SIGINT, self._receive)
        signal.pthread_sigmask(signal.SIG_UNBLOCK, SIGNALS)
        threading.Thread(target=_leave_with_the_runner, daemon=True).start()

    def _receive(self, number: int, frame: FrameType | None) -> None:
        if self.signal == number == signal.SIGINT:
            os._exit(128 + number)  # all files are written whole or not at all: there is nothing to tidy up
        self.signal = self.signal or number


def _leave_with_the_runner() -> None:
    while os.read(0, 1024):
        pass
    os._exit(128 + signal.SIGTERM)


def raise_when_terminated() -> None:
    """Let SIGTERM end this process as Ctrl-C does, with everything on the way out."""

    def leave(number: int, frame: FrameType | None) -> NoReturn:
        raise Interrupted(128 + number)

    signal.signal(signal.SIGTERM, leave)


def run_process(command: Sequence[str], environment: Mapping[str, str], descriptors: Sequence[int]) -> int:
    """Run the process of a model to its end and return its exit code.

    A request to stop (`KeyboardInterrupt` or `Interrupted`) is passed on, and raised again when the process has saved
    and left; a further Ctrl-C kills it.
    """
    kept = signal.pthread_sigmask(signal.SIG_BLOCK, SIGNALS)
    process = subprocess.Popen(command, env=environment, stdin=subprocess.PIPE, pass_fds=descriptors)
    try:
        signal.pthread_sigmask(signal.SIG_SETMASK, kept)  # a signal that was held back is raised here
        return process.wait()
    except (KeyboardInterrupt, Interrupted):
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
        if process.stdin:
            process.stdin.close()
