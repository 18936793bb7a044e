"""Executor that runs one worker process after another; each shows its own progress."""

from __future__ import annotations

import os
from collections.abc import Generator, Iterable, Sequence

from evaluation.running.jobs.job import Job, JobResult
from evaluation.running.signals import run_process
from evaluation.running.worker import worker_environment


class OneByOne:
    """Executor of one job at a time, whose process writes to this process' terminal.

    Args:
        descriptors: file descriptors that the processes inherit, such as those of a lock.
    """

    def __init__(self, descriptors: Sequence[int] = ()) -> None:
        self.descriptors = descriptors

    def run(self, jobs: Iterable[Job]) -> Generator[JobResult, None, None]:
        """Run jobs; see `Executor.run`."""
        for job in jobs:
            yield JobResult(job, run_process(job.command(), worker_environment(os.environ), self.descriptors))
