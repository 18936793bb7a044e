"""Display of a study's progress: the trials that run, the best so far, and the expected end."""

from __future__ import annotations

import math
import time
from datetime import datetime, timedelta

from optuna.trial import TrialState

from evaluation.running.jobs import Job, JobResult
from evaluation.running.jobs.live_lines import LiveLines
from evaluation.running.progress import SECONDS_BETWEEN_LINES, format_duration
from evaluation.tuning.study import Limits, Study

SECONDS_BETWEEN_READS = 2.0
"""How often the journal is read for the live lines."""


class StudyBoard(LiveLines):
    """Observer of jobs that shows a study: live in a terminal, elsewhere as lines every few seconds.

    Args:
        study: the study.
        limits: its budget.
    """

    def __init__(self, study: Study, limits: Limits) -> None:
        super().__init__()
        self.study, self.limits = study, limits
        self.num_jobs = 1
        """Number of trials that this command runs at once."""
        self.titles: dict[str, float] = {}
        self.shown_at = time.monotonic()

    def on_start(self, job: Job) -> None:
        """See `JobObserver`."""
        self.titles[job.title] = time.monotonic()

    def on_line(self, job: Job, line: str) -> None:
        """Print a line of a trial's process."""
        self.print_line(line)

    def on_wait(self) -> None:
        """Refresh the live lines; without a terminal, print one unless the last one is recent."""
        pause = SECONDS_BETWEEN_READS if self.live else SECONDS_BETWEEN_LINES
        if time.monotonic() - self.shown_at < pause:
            return
        self.shown_at = time.monotonic()
        running = self._running_lines()
        lines = [*running, self.summary()] if running else list(self.titles)
        self.show(lines if self.live else ["; ".join(lines)])

    def on_end(self, result: JobResult) -> None:
        """See `JobObserver`."""
        self.titles.pop(result.job.title, None)

    def on_trial(self, number: int) -> None:
        """Print the result of a trial."""
        result = self.study.folder.trial(number).result()
        value = result.get("value")
        texts = {
            "complete": f"{self.study.metric} {value:.4f} (epoch {result.get('best_epoch')})"
            if value is not None
            else "",
            "pruned": f"ended early after {result['epochs']} epochs" + ("" if value is None else f" at {value:.4f}"),
            "failed": f"failed: {result.get('reason', '')}",
        }
        copied = f", as trial {result['copy_of']}" if "copy_of" in result else ""
        self.print_line(f"{self.study.model}, trial {number}: {texts[result['state']]}{copied}; {self.summary()}")
        self.shown_at = time.monotonic()

    def _running_lines(self) -> list[str]:
        running = [trial for trial in self.study.trials() if trial.state == TrialState.RUNNING]
        lines = []
        for trial in running:
            epoch = trial.last_step
            state = "starts" if epoch is None else f"epoch {epoch}, {trial.intermediate_values[epoch]:.4f}"
            lines.append(f"{self.study.model}, trial {trial.number}: {state}")
        return lines

    def summary(self) -> str:
        """Return how many trials are done, the best one, and the expected end."""
        results, best = self.study.results(), self.study.best()
        limit = "" if self.limits.trials is None else f" of {self.limits.trials}"
        found = f", best {best.value:.4f} (trial {best.number})" if best else ""
        return f"{len(results)}{limit} trials{found}, {self._expected_end(len(results))}"

    def _expected_end(self, num_done: int) -> str:
        """Return when the budget will be spent if trials take as long as those that have ended."""
        seconds = [float(result["seconds"]) for result in self.study.results().values()]
        mean = sum(seconds) / len(seconds) if seconds else 0.0
        by_trials = mean * (self.limits.trials - num_done) if self.limits.trials is not None and mean else math.inf
        left = min(by_trials, self.study.seconds_left(self.limits)) / self.num_jobs
        if math.isinf(left):
            return "expected end not known yet"
        if left <= 0:
            return "done"
        end = datetime.now() + timedelta(seconds=left)
        return f"about {format_duration(left)} left, until {end:%H:%M}"
