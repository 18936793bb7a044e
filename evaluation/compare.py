"""Command: compare finished models; print means, intervals and significance tests as text or for a paper.

python -m evaluation.compare results/ml1m_gsasrec --format latex
"""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

from evaluation.cli import EXIT_CODES, program, run_command

EXAMPLES = """examples:
  compare results/ml1m_gsasrec                                  the table of a run
  compare results/ml1m_gsasrec --baseline SASRec --format latex a table for a paper, daggers against SASRec
  compare results/ml1m_gsasrec --format latex --fit column --without Minutes   for one of two columns
  compare results/a results/b                                   models of two runs on the same data
  compare results/ml1m results/steam --side-by-side             two datasets in one table
  compare results/a --import theirs.run                         another tool's ranking in the same tested table
  compare results/a --explain gSASRec SASRec                    among which users one beats the other
  compare results/a --cost --format csv                         what each training cost: minutes, CPU, GPU, energy
"""


def parse_arguments() -> argparse.Namespace:
    """Return the parsed command line."""
    parser = argparse.ArgumentParser(
        prog=program("compare"),
        description="Print the table of a run, or of several runs on the same data: means over users, and a paired "
        "test of every model against the best of each metric (corrected for all pairs) or against a baseline.",
        epilog=EXAMPLES + "\n" + EXIT_CODES,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument(
        "runs", type=Path, nargs="+", metavar="RUN", help="results folders, such as results/ml1m_gsasrec"
    )
    parser.add_argument(
        "--metric",
        nargs="+",
        default=[],
        metavar="NAME",
        help="these metrics, such as NDCG@5; others than the recipe's are computed from ranks",
    )
    parser.add_argument("--baseline", metavar="NAME", help="compare every model with this one instead of the best")
    parser.add_argument(
        "--test",
        choices=("paired-t", "randomisation", "bootstrap", "wilcoxon"),
        default="paired-t",
        help="paired-t (default) and bootstrap cover users and, with several seeds, trainings; the others users alone",
    )
    parser.add_argument(
        "--correction", choices=("holm", "bonferroni", "none"), default="holm", help="for several tests (default: holm)"
    )
    parser.add_argument(
        "--alpha", type=float, default=0.05, metavar="LEVEL", help="level of significance (default: 0.05)"
    )
    parser.add_argument(
        "--format", choices=("text", "markdown", "latex", "csv", "json"), default="text", help="default: text"
    )
    parser.add_argument(
        "--fit",
        choices=("natural", "column", "page"),
        default="natural",
        help="width of a LaTeX table: column and page fit papers of two columns (page is table*)",
    )
    parser.add_argument(
        "--without", nargs="+", default=[], metavar="COLUMN", help="leave out columns of the table, such as Minutes"
    )
    parser.add_argument(
        "--check",
        action="store_true",
        help="ours beside the published numbers, marks and times, in one table for several runs; exit code 1 if "
        "something is off that the recipe does not declare as a known difference",
    )
    parser.add_argument(
        "--import",
        dest="imported",
        type=Path,
        nargs="+",
        default=[],
        metavar="FILE",
        help="other tools' results: TREC runs, CSV (user, item, score or rank), or a metric column per user",
    )
    parser.add_argument(
        "--export", type=Path, metavar="DIR", help="write our rankings as TREC runs, the targets as qrels"
    )
    parser.add_argument(
        "--side-by-side", action="store_true", help="runs on different data next to each other, untested"
    )
    parser.add_argument("--pairwise", action="store_true", help="every pair of models")
    parser.add_argument("--ladder", action="store_true", help="what validation says of each change to the model before")
    parser.add_argument(
        "--effects",
        action="store_true",
        help="architectures by losses, and learning rates where crossed: what each step brings",
    )
    parser.add_argument("--beyond-accuracy", action="store_true", help="coverage, and popularity of what is shown")
    parser.add_argument(
        "--cost", action="store_true", help="time, processor and GPU time, energy and memory of each model's training"
    )
    parser.add_argument(
        "--time-to",
        type=float,
        nargs="+",
        default=[],
        metavar="VALUE",
        help="minutes of training until the validation metric reached these values",
    )
    parser.add_argument(
        "--explain",
        nargs=2,
        metavar="NAME",
        help="the difference of two models by history length, popularity, activity",
    )
    parser.add_argument(
        "--figures", type=Path, metavar="DIR", help="write what --pairwise and --explain show as figures"
    )
    arguments = parser.parse_args()
    if not 0 < arguments.alpha < 1:
        parser.error("--alpha must lie between 0 and 1")
    if arguments.figures and not (arguments.pairwise or arguments.explain):
        parser.error("--figures needs --pairwise or --explain")
    if arguments.fit != "natural" and arguments.format != "latex":
        parser.error("--fit needs --format latex")
    return arguments


def main() -> int:
    """Print the comparison that the command line asks for; returns the exit code."""
    arguments = parse_arguments()
    from evaluation.analysis.compare_runs import CompareOptions, load_groups, print_comparisons

    options = CompareOptions(**vars(arguments))
    groups = load_groups(options)
    if options.figures:
        from evaluation.figures.compare_figures import write_compare_figures  # Matplotlib only when it is needed

        for path in write_compare_figures(groups, options, options.figures):
            print(path, file=sys.stderr)
    return print_comparisons(groups, options)


if __name__ == "__main__":
    sys.exit(run_command(main))
