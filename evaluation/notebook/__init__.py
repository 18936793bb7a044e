"""The harness from Python, without the command line: run a recipe here, and look at its results.

The functions are those that the commands call, and a results folder is the same whoever wrote it.
"""

from evaluation.cli import import_tensorflow

import_tensorflow()  # before the modules below import it, without messages about the machine

from evaluation.notebook.results_view import Results, load_results  # noqa: E402
from evaluation.notebook.run_here import run  # noqa: E402

__all__ = ["Results", "load_results", "run"]
