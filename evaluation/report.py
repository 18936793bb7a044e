"""Writes the report of a run: every figure as PDF and PNG, and one HTML page that needs no other file.

python -m evaluation.report results/ml1m_gsasrec
"""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

from evaluation.cli import EXIT_CODES, run_command


def parse_arguments() -> argparse.Namespace:
    """Parse the command line."""
    parser = argparse.ArgumentParser(
        prog="python -m evaluation.report",
        description="Draw the figures of a run into RUN/figures and write RUN/report.html: one page with results, "
        "tests, the paper's numbers, learning curves, calibration, data, settings, budgets and citations. Also while "
        "the run goes on: what is finished is shown.",
        epilog=EXIT_CODES,
    )
    parser.add_argument("run", type=Path, metavar="RUN", help="a results folder")
    parser.add_argument(
        "--user", metavar="ID", help="user whose predicted probabilities are shown (default: as in the paper)"
    )
    parser.add_argument(
        "--truth",
        action="store_true",
        help="for simulated data: compare the predicted probabilities of all items with the true ones; the models "
        "score again (needs their weights and TensorFlow)",
    )
    return parser.parse_args()


def main() -> int:
    """Write the report of the run that the command line names; returns the exit code."""
    arguments = parse_arguments()
    from evaluation.page.build import ReportOptions, write_report

    return write_report(ReportOptions(**vars(arguments)))


if __name__ == "__main__":
    sys.exit(run_command(main))
