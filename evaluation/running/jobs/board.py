"""One display for several jobs at once: a line for each that runs, and one for all of them."""

from __future__ import annotations

import math
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
        progress = {job: read_progress(job.folder) for job in self.started_at}
        lines = [f"{job.title}: {known.text if known else 'starts'}" for job, known in progress.items()]
        num_waiting = self.num_jobs - self.num_ended - len(self.started_at)
        counts = f"{self.num_ended} of {self.num_jobs} done, {len(self.started_at)} running, {num_waiting} waiting"
        seconds_left = {job: known.seconds for job, known in progress.items() if known and math.isfinite(known.seconds)}
        return [*lines, f"{counts}; {self._time_left(seconds_left)}"]

    def _time_left(self, seconds_left: dict[Job, float]) -> str:
        """Return the time that all jobs still need.

        Running jobs need what they say of themselves; others as long, by their weights, as those that ended or run.

        Args:
            seconds_left: of the running jobs that know it.
        """
        elapsed = {job: time.monotonic() - since for job, since in self.started_at.items()}
        known = [job for job in seconds_left if job.weight]
        known_weight = self.ended_weight + sum(job.weight for job in known)
        if not known_weight:
            return "time left not known yet"
        known_seconds = self.ended_seconds + sum(elapsed[job] + seconds_left[job] for job in known)
        per_weight = known_seconds / known_weight
        running = [seconds_left.get(job, max(0.0, job.weight * per_weight - elapsed[job])) for job in self.started_at]
        weight_waiting = self.total_weight - self.ended_weight - sum(job.weight for job in self.started_at)
        num_slots = self.num_slots or max(1, len(self.started_at))
        left = max([(sum(running) + weight_waiting * per_weight) / num_slots, *running])
        return f"about {format_duration(max(0.0, left))} left"
