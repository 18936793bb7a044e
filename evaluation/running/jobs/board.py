"""One display for several jobs at once: a line for each that runs, and one for all of them."""

from __future__ import annotations

import time

from evaluation.running.jobs.job import Job, JobResult
from evaluation.running.jobs.live_lines import LiveLines
from evaluation.running.progress import SECONDS_BETWEEN_LINES, format_duration, read_progress


class Board(LiveLines):
    """Observer of jobs that shows their progress: live in a terminal, elsewhere as lines every few seconds.

    Args:
        num_jobs: number of all jobs.
        total_weight: sum of their weights.
        num_slots: maximum number of jobs at once; `None` for as many as run now.
    """

    def __init__(self, num_jobs: int, total_weight: float, num_slots: int | None = None) -> None:
        super().__init__()
        self.num_jobs, self.total_weight, self.num_slots = num_jobs, total_weight, num_slots
        self.num_ended, self.ended_weight, self.ended_seconds = 0, 0.0, 0.0
        self.started_at: dict[Job, float] = {}
        self.last_lines_at = time.monotonic()

    def on_start(self, job: Job) -> None:
        """See `JobObserver`."""
        self.started_at[job] = time.monotonic()
        self.on_wait()

    def on_line(self, job: Job, line: str) -> None:
        """Print a line of a job above the live lines."""
        self.print_line(line)

    def on_wait(self) -> None:
        """Refresh the live lines; without a terminal, print them unless the last ones are recent."""
        if self.live or time.monotonic() - self.last_lines_at >= SECONDS_BETWEEN_LINES:
            self.last_lines_at = time.monotonic()
            self.show(self._lines())

    def on_end(self, result: JobResult) -> None:
        """See `JobObserver`."""
        seconds = time.monotonic() - self.started_at.pop(result.job, time.monotonic())
        self.num_ended += 1
        if result.job.weight:
            self.ended_weight += result.job.weight
            self.ended_seconds += seconds
        self.on_wait()

    def _lines(self) -> list[str]:
        lines = [f"{job.title}: {read_progress(job.folder) or 'starts'}" for job in self.started_at]
        num_waiting = self.num_jobs - self.num_ended - len(self.started_at)
        counts = f"{self.num_ended} of {self.num_jobs} done, {len(self.started_at)} running, {num_waiting} waiting"
        return [*lines, f"{counts}; {self._time_left()}"]

    def _time_left(self) -> str:
        """Return the time that all jobs still need if they take as long as those that have ended."""
        if not self.ended_weight:
            return "time left not known yet"
        per_weight = self.ended_seconds / self.ended_weight
        now = time.monotonic()
        done = sum(min(job.weight, (now - since) / per_weight) for job, since in self.started_at.items())
        left = (
            (self.total_weight - self.ended_weight - done)
            * per_weight
            / (self.num_slots or max(1, len(self.started_at)))
        )
        return f"about {format_duration(max(0.0, left))} left"
