"""Executor that runs several worker processes at once on this machine."""

from __future__ import annotations

import contextlib
import math
import os
import queue
import signal
import subprocess
import sys
import threading
from collections.abc import Generator, Iterable, Sequence

from evaluation.cli import Interrupted
from evaluation.running.jobs.job import Job, JobObserver, JobResult
from evaluation.running.signals import SHOW_CURSOR, signals_blocked
from evaluation.running.worker import worker_environment

SECONDS_BETWEEN_CALLS = 0.5
"""Between two calls of `JobObserver.on_wait`."""


class LocalProcesses:
    """Executor of several jobs at once on this machine.

    Args:
        num_slots: maximum number of jobs at once.
        observer: is told what happens, and gets the lines that the processes print.
        memory: bytes that the jobs that run at once may use together; a job that needs more runs alone.
        gpus: values of CUDA_VISIBLE_DEVICES, given to the slots in turn; none to leave the variable as it is.
        descriptors: file descriptors that the processes inherit, such as those of a lock.
    """

    def __init__(
        self,
        num_slots: int,
        observer: JobObserver,
        *,
        memory: float = math.inf,
        gpus: Sequence[str] = (),
        descriptors: Sequence[int] = (),
    ) -> None:
        self.num_slots, self.observer, self.memory = num_slots, observer, memory
        self.gpus, self.descriptors = gpus, descriptors
        self._running: dict[int, _RunningJob] = {}
        self._events: _Events = queue.SimpleQueue()

    def run(self, jobs: Iterable[Job]) -> Generator[JobResult, None, None]:
        """Run jobs; see `Executor.run`."""
        waiting, upcoming = iter(jobs), None
        try:
            while True:
                while len(self._running) < self.num_slots:
                    upcoming = upcoming or next(waiting, None)
                    if upcoming is None or not self._has_room(upcoming):
                        break
                    self._start(upcoming)
                    upcoming = None
                if not self._running:
                    return
                yield self._wait_for_result()
        finally:
            if self._running:
                self._stop()

    def _has_room(self, job: Job) -> bool:
        used = sum(running.job.memory for running in self._running.values())
        return not self._running or used + job.memory <= self.memory

    def _start(self, job: Job) -> None:
        slot = next(slot for slot in range(self.num_slots) if slot not in self._running)
        environment = worker_environment(os.environ)
        if self.gpus:
            environment["CUDA_VISIBLE_DEVICES"] = self.gpus[slot % len(self.gpus)]
        with signals_blocked():  # and in the process until it listens
            self._running[slot] = _RunningJob(slot, job, environment, self.descriptors, self._events)
        self.observer.on_start(job)

    def _wait_for_result(self) -> JobResult:
        while True:
            try:
                running, line = self._events.get(timeout=SECONDS_BETWEEN_CALLS)
            except queue.Empty:
                self.observer.on_wait()
                continue
            if line is None:
                return self._end(running)
            self.observer.on_line(running.job, line)

    def _end(self, running: _RunningJob) -> JobResult:
        del self._running[running.slot]
        result = JobResult(running.job, running.wait())
        self.observer.on_end(result)
        return result

    def _stop(self) -> None:
        """Ask the processes to save and exit, and wait for them; a further Ctrl-C kills them."""
        previous = signal.signal(signal.SIGTERM, signal.SIG_IGN)
        try:
            for running in self._running.values():
                running.process.terminate()
            self._wait_for_all()
        except (KeyboardInterrupt, Interrupted):
            for running in self._running.values():
                running.process.kill()
            self._wait_for_all()
            if sys.stderr.isatty():
                sys.stderr.write(SHOW_CURSOR)
        finally:
            signal.signal(signal.SIGTERM, previous)

    def _wait_for_all(self) -> None:
        """Wait for the threads and not for events, one of which may have been lost to the interruption."""
        while any(running.thread.is_alive() for running in self._running.values()) or not self._events.empty():
            with contextlib.suppress(queue.Empty):
                running, line = self._events.get(timeout=SECONDS_BETWEEN_CALLS)
                if line is not None:
                    self.observer.on_line(running.job, line)
        for running in list(self._running.values()):
            self._end(running)


class _RunningJob:
    """The process of a job, and a thread that turns its lines and its end into events."""

    def __init__(
        self, slot: int, job: Job, environment: dict[str, str], descriptors: Sequence[int], events: _Events
    ) -> None:
        self.slot, self.job, self.events = slot, job, events
        self.process = subprocess.Popen(
            job.command(),
            env=environment,
            stdin=subprocess.PIPE,
            stderr=subprocess.PIPE,
            pass_fds=descriptors,
            text=True,
            errors="replace",
        )
        self.thread = threading.Thread(target=self._listen, daemon=True)
        self.thread.start()

    def _listen(self) -> None:
        if self.process.stderr:
            with self.process.stderr as lines:
                for line in lines:
                    self.events.put((self, line.rstrip("\n")))
        self.process.wait()
        self.events.put((self, None))

    def wait(self) -> int:
        """Wait for the end of the process; returns its exit code."""
        self.thread.join()
        if self.process.stdin:
            self.process.stdin.close()
        return self.process.returncode


_Events = queue.SimpleQueue[tuple[_RunningJob, str | None]]
"""A job with a line that it has printed, or `None` at its end."""
