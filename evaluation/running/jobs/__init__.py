"""Runs worker processes: one after another, several at once, or on the nodes of a Ray cluster."""

from evaluation.running.jobs.job import Executor, Job, JobObserver, JobResult

__all__ = ["Executor", "Job", "JobObserver", "JobResult"]
