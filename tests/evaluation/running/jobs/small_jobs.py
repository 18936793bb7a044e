"""Jobs and an observer for tests of executors."""

import json
from pathlib import Path

from evaluation.running.jobs import Job, JobResult

ROOT = Path(__file__).parents[4]


def small_job(folder: Path, name: str, memory: int = 0, **options) -> Job:
    """A job that writes the file `name` and ends as `small_worker` is told to."""
    argument = json.dumps({"name": name, "folder": str(folder), **options})
    return Job(name, "tests.evaluation.running.jobs.small_worker", argument, folder, memory)


class Recorder:
    """An observer that remembers what it was told."""

    def __init__(self) -> None:
        self.lines: list[str] = []
        self.running: set[str] = set()
        self.most_at_once = 0

    def on_start(self, job: Job) -> None:
        self.running.add(job.title)
        self.most_at_once = max(self.most_at_once, len(self.running))

    def on_line(self, job: Job, line: str) -> None:
        self.lines.append(line)

    def on_wait(self) -> None:
        pass

    def on_end(self, result: JobResult) -> None:
        self.running.remove(result.job.title)
