"""What is run (`Job`), by whom (`Executor`), how it ended (`JobResult`), and who is told of it (`JobObserver`)."""

from __future__ import annotations

import sys
from collections.abc import Generator, Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol


@dataclass(frozen=True)
class Job:
    """A worker process to run: `python -m module argument`.

    The process must follow `evaluation.running.signals`: it listens for a stop request (`StopFlag`), saves, and exits.

    Args:
        title: name for messages.
        module: Python module that the process runs.
        argument: its one command line argument.
        folder: folder that only this process writes to.
        memory: predicted peak memory in bytes, TensorFlow included.
        weight: expected duration in relation to other jobs, for the time left; 0 for a negligible one.
    """

    title: str
    module: str
    argument: str
    folder: Path
    memory: int = 0
    weight: float = 1.0

    def command(self) -> list[str]:
        """Return the command line. With -P no `evaluation.py` of the current folder takes the package's place.

        The package is found by the environment variables of `worker_environment`, unless it is installed.
        """
        return [sys.executable, "-P", "-m", self.module, self.argument]


@dataclass(frozen=True)
class JobResult:
    """How a job ended.

    Args:
        job: the job.
        code: exit code of its process; negative for the signal that killed it.
        reason: why it ended without an exit code of its own, if an executor knows more than the code.
    """

    job: Job
    code: int
    reason: str | None = None


class Executor(Protocol):
    """Runs jobs and reports their results one by one, in the order in which they end."""

    def run(self, jobs: Iterable[Job]) -> Generator[JobResult, None, None]:
        """Run jobs; yields a result whenever one has ended.

        A job is taken from `jobs` only when there is room for it and the caller has consumed all earlier results, so a
        generator may decide about the next job by the results so far.

        A stop request (`KeyboardInterrupt` or `Interrupted`) is forwarded to all processes, and raised again when they
        have saved and exited. Use `contextlib.closing`: closing the iterator stops the running jobs likewise.
        """
        ...


class JobObserver(Protocol):
    """Is told what happens to jobs, for a display."""

    def on_start(self, job: Job) -> None:
        """A job is started."""
        ...

    def on_line(self, job: Job, line: str) -> None:
        """The process of a job has printed a line for the user."""
        ...

    def on_wait(self) -> None:
        """Called about twice a second while jobs run."""
        ...

    def on_end(self, result: JobResult) -> None:
        """A job has ended."""
        ...
