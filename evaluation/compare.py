"""Compare the finished models of a run: means, intervals, significance against the best or a baseline.

python -m evaluation.compare results/ml1m_gsasrec --format latex
"""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

from evaluation.command import DONE, EXIT_CODES, run_command


def parse_arguments() -> argparse.Namespace:
    """The command line."""
    parser = argparse.ArgumentParser(
        prog="python -m evaluation.compare",
        description="Print the table of a run: means over users, and the paired t-test of every model against the best "
        "of each metric or against a baseline.",
        epilog=EXIT_CODES,
    )
    parser.add_argument("run", type=Path, metavar="RUN", help="a results folder, such as results/ml1m_gsasrec")
    parser.add_argument("--metric", nargs="+", metavar="NAME", help="only these metrics, such as NDCG@10")
    parser.add_argument("--baseline", metavar="NAME", help="compare every model with this one instead of the best")
    parser.add_argument(
        "--correction", choices=("holm", "bonferroni", "none"), default="holm", help="for several tests (default: holm)"
    )
    parser.add_argument(
        "--alpha", type=float, default=0.05, metavar="LEVEL", help="level of significance (default: 0.05)"
    )
    parser.add_argument("--format", choices=("text", "markdown", "latex", "csv"), default="text", help="default: text")
    arguments = parser.parse_args()
    if not 0 < arguments.alpha < 1:
        parser.error("--alpha must lie between 0 and 1")
    return arguments


def main() -> int:
    """Print the comparison that the command line asks for."""
    arguments = parse_arguments()
    from evaluation import tables
    from evaluation.comparison import compare_models
    from evaluation.store import RunFolder

    comparison = compare_models(
        RunFolder(arguments.run),
        metrics=tuple(arguments.metric or ()) or None,
        baseline=arguments.baseline,
        alpha=arguments.alpha,
        correction=arguments.correction,
    )
    render = {
        "text": tables.as_text,
        "markdown": tables.as_markdown,
        "latex": tables.as_latex,
        "csv": tables.as_csv,
    }[arguments.format]
    print(render(comparison), end="")
    return DONE


if __name__ == "__main__":
    sys.exit(run_command(main))
