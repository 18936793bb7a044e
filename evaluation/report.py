"""Writes the report of a run: every figure as PDF and PNG, and one HTML page that needs no other file.

python -m evaluation.report results/ml1m_gsasrec
python -m evaluation.report results --index
"""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

from evaluation.cli import EXIT_CODES, program, run_command


def parse_arguments() -> argparse.Namespace:
    """Parse the command line."""
    parser = argparse.ArgumentParser(
        prog=program("report"),
        description="Draw the figures of a run into RUN/figures and write RUN/report.html: one page with results, "
        "tests, the paper's numbers, learning curves, calibration, data, settings, budgets and citations. Also while "
        "the run goes on: what is finished is shown.",
        epilog=EXIT_CODES,
    )
    parser.add_argument("run", type=Path, metavar="RUN", help="a results folder; with --index, a folder of them")
    parser.add_argument(
        "--user", metavar="ID", help="user whose predicted probabilities are shown (default: as in the paper)"
    )
    parser.add_argument(
        "--truth",
        action="store_true",
        help="for simulated data: compare the predicted probabilities of all items with the true ones; the models "
        "score again (needs their weights and TensorFlow)",
    )
    parser.add_argument(
        "--index",
        action="store_true",
        help="list all runs of the folder RUN in its README.md: size, seeds, result, the paper's numbers, time, commit",
    )
    parser.add_argument(
        "--recipe",
        type=Path,
        metavar="FILE",
        help="recipe file of the run, to show the calibration of losses that it defines; the file is executed",
    )
    arguments = parser.parse_args()
    if arguments.index and (arguments.user or arguments.truth or arguments.recipe):
        parser.error("--index goes with no other option")
    return arguments


def main() -> int:
    """Write the report of the run that the command line names; returns the exit code."""
    arguments = parse_arguments()
    if arguments.index:
        from evaluation.page.results_index import write_index

        return write_index(arguments.run)
    from evaluation.page.build import ReportOptions, write_report

    return write_report(ReportOptions(arguments.run, arguments.user, arguments.truth, arguments.recipe))


if __name__ == "__main__":
    sys.exit(run_command(main))
