"""Entry point of the process of one trial, so that a crash does not affect the study."""

from __future__ import annotations

import os
import sys

from evaluation.cli import import_tensorflow, run_command
from evaluation.running.signals import StopFlag
from evaluation.tuning.options import TrialOptions


def main() -> int:
    """Run the trial that the command line names."""
    stop = StopFlag()
    stop.listen()
    import_tensorflow()
    from evaluation.tuning.trial import run_trial

    return run_trial(TrialOptions.from_json(sys.argv[1]), stop)


if __name__ == "__main__":
    code = run_command(main)
    sys.stdout.flush()
    sys.stderr.flush()
    os._exit(code)  # all files are written; a regular TensorFlow shutdown would hold the trial's lock for seconds
