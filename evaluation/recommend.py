"""Command: recommend items after a history, by a finished model of a results folder.

python -m evaluation.recommend results/ml1m_gsasrec --model gSASRec --items "Toy Story (1995)" "Bug's Life, A (1998)"
"""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

from evaluation.cli import EXIT_CODES, import_tensorflow, program, run_command


def parse_arguments() -> argparse.Namespace:
    """Return the parsed command line."""
    parser = argparse.ArgumentParser(
        prog=program("recommend"),
        description="Print the top items after a history, with predicted probabilities if the model's loss defines "
        "them. Works for all finished models of a results folder but matrix factorisation, which knows its users only.",
        epilog=EXIT_CODES,
    )
    parser.add_argument("run", type=Path, metavar="RUN", help="a results folder")
    parser.add_argument("--model", required=True, metavar="NAME", help="a finished model of the run")
    parser.add_argument(
        "--items",
        nargs="+",
        required=True,
        metavar="ID",
        help="the history, oldest first: ids of the data, or titles",
    )
    parser.add_argument("-k", type=int, default=10, metavar="N", help="number of items to recommend (default: 10)")
    parser.add_argument("--seed", type=int, metavar="N", help="training seed (default: the first finished)")
    parser.add_argument(
        "--data", type=Path, metavar="DIR", help="data folder, to fit counting models again (default: as in run)"
    )
    parser.add_argument(
        "--recipe",
        type=Path,
        metavar="FILE",
        help="recipe file that defines the model's own classes; the file is executed (nothing of RUN is, unless named)",
    )
    parser.add_argument("--json", action="store_true", help="print one JSON object")
    arguments = parser.parse_args()
    if arguments.k < 1:
        parser.error("-k must be at least 1")
    return arguments


def main() -> int:
    """Print the recommendations that the command line asks for; returns the exit code."""
    arguments = parse_arguments()
    import_tensorflow()
    from evaluation.inference.recommendations import RecommendOptions, print_recommendations

    return print_recommendations(RecommendOptions(**vars(arguments)))


if __name__ == "__main__":
    sys.exit(run_command(main))
