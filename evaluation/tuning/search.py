"""Runs the trials of a study, and further trainings of its best settings, through an executor."""

from __future__ import annotations

import contextlib
import time
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from evaluation.cli import INTERRUPTED, TERMINATED, WRONG_INPUT, Interrupted
from evaluation.running.jobs import Executor, Job, JobResult
from evaluation.running.run_models import exit_reason
from evaluation.tuning.options import TrialOptions
from evaluation.tuning.study import Claim, Limits, Study

WORKER = "evaluation.tuning.worker"
MAX_ATTEMPTS = 2
"""A trial whose process is killed by a signal is resumed once; then it has failed, as when memory runs out."""
SECONDS_BETWEEN_LOOKS = 2.0
"""How often to look whether trials of other commands have ended."""


class WrongInputError(Exception):
    """The process of a trial has printed an error that all others would meet too."""


@dataclass
class Search:
    """The trials of one study that this command runs.

    Args:
        study: the study.
        limits: its budget.
        recipe: path of the recipe file.
        data_dir: folder of data files.
        num_jobs: number of trials at once.
        memory: predicted peak memory of a trial in bytes.
        on_result: called after every trial.
    """

    study: Study
    limits: Limits
    recipe: Path
    data_dir: Path
    num_jobs: int = 1
    memory: int = 0
    on_result: Callable[[int], None] = lambda number: None
    claims: dict[str, Claim] = field(default_factory=dict)
    attempts: Counter[str] = field(default_factory=Counter)

    def run_trials(self, executor: Executor) -> None:
        """Run trials until the budget is spent, and wait for those of other commands."""
        while True:
            self._run(executor, self._trials())
            if not self.study.num_running():
                return
            time.sleep(SECONDS_BETWEEN_LOOKS)

    def run_winner(self, executor: Executor, seeds: Sequence[int]) -> None:
        """Train the best settings again with other seeds, and wait for those that other commands train."""
        while True:
            self._run(executor, self._winners(seeds))
            best = self.study.best()
            if best is None or all(self.study.folder.winner(best.number, seed).is_finished for seed in seeds):
                return
            time.sleep(SECONDS_BETWEEN_LOOKS)

    def _run(self, executor: Executor, jobs: Iterator[Job]) -> None:
        try:
            with contextlib.closing(executor.run(jobs)) as results:
                for result in results:
                    self._end(result)
        finally:
            for claim in self.claims.values():
                claim.release()
            self.claims.clear()

    def _trials(self) -> Iterator[Job]:
        """Claim and yield trials, while the budget lasts."""
        while claim := self.study.claim(self.limits, self.num_jobs):
            self.claims[claim.folder.name] = claim
            if self._is_known(claim):
                self._settle(claim)
            else:
                yield self._job(claim)

    def _winners(self, seeds: Sequence[int]) -> Iterator[Job]:
        while claim := self.study.claim_winner(seeds):
            self.claims[claim.folder.name] = claim
            yield self._job(claim)

    def _is_known(self, claim: Claim) -> bool:
        """Return whether a trial needs no training: its command was killed at its end, or it is another's copy."""
        if claim.folder.is_finished:
            return True
        original = self.study.copy_of(claim.number)
        if original is None:
            return False
        result = self.study.folder.trial(original).result()
        claim.folder.write_curve(self.study.folder.trial(original).read_curve())
        copied = {name: value for name, value in result.items() if name not in ("state", "epochs", "seconds")}
        claim.folder.write_result(result["state"], **copied | {"epochs": 0, "seconds": 0.0, "copy_of": original})
        return True

    def _job(self, claim: Claim) -> Job:
        options = TrialOptions(
            recipe=self.recipe.resolve(),  # processes of other nodes have another current folder
            study=self.study.folder.path.resolve(),
            folder=claim.folder.name,
            number=claim.number,
            seeds=claim.seeds,
            data_dir=self.data_dir.resolve(),
            seconds_left=claim.seconds_left,
            is_trial=claim.is_trial,
        )
        what = f"trial {claim.number}" if claim.is_trial else f"best settings, seed {claim.seeds[0]}"
        title = f"{self.study.model}, {what}"
        return Job(title, WORKER, options.to_json(), claim.folder.path.resolve(), self.memory)

    def _end(self, result: JobResult) -> None:
        claim, code = self.claims[result.job.folder.name], result.code
        if code in (INTERRUPTED, TERMINATED):
            raise Interrupted(code)
        if code == WRONG_INPUT:
            raise WrongInputError
        if claim.folder.is_finished:
            self._settle(claim)
            return
        self.attempts[claim.folder.name] += 1
        if self.attempts[claim.folder.name] < MAX_ATTEMPTS:  # released, so that the next claim resumes it
            self.claims.pop(claim.folder.name).release()
            return
        reason = result.reason or exit_reason(code, self.study.trained)
        claim.folder.write_result("failed", epochs=0, seconds=0.0, value=None, reason=reason)
        self._settle(claim)

    def _settle(self, claim: Claim) -> None:
        if claim.is_trial:
            self.study.settle(claim.number)
        self.claims.pop(claim.folder.name).release()
        if claim.is_trial:
            self.on_result(claim.number)
