"""The run command of a host that is not the first: one process after another that takes part and writes no results."""

from __future__ import annotations

import os
import sys

from aprec_like.devices import host_number, num_configured_hosts
from evaluation.cli import DONE, FAILED, WRONG_INPUT
from evaluation.running.jobs.job import Job
from evaluation.running.signals import run_process
from evaluation.running.worker import WorkerOptions, worker_environment

GOES_ON = 10
"""Exit code of a process after which the first host starts another."""


def take_part(options: WorkerOptions) -> int:
    """Take part in whatever the first host trains until it has finished; returns the exit code.

    Args:
        options: of the workers; the model and seed are those that the first host tells.
    """
    number = f"host {host_number() + 1} of {num_configured_hosts()}"
    print(f"{number}: trains with the first one, which writes the results", file=sys.stderr)
    code = GOES_ON
    while code == GOES_ON:
        code = _run_worker(options)
    if code in (DONE, WRONG_INPUT):
        return code
    print("the first host has ended before its last model; the same command on all hosts resumes", file=sys.stderr)
    return FAILED


def dismiss_others(options: WorkerOptions) -> None:
    """Tell the other hosts, from the first one, that there is nothing to train; they wait for it."""
    _run_worker(options)


def _run_worker(options: WorkerOptions) -> int:
    command = Job("", "evaluation.running.hosts.worker", options.to_json(), options.run).command()
    return run_process(command, worker_environment(os.environ), ())
