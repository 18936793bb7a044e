"""Measures how fast the models of a recipe train and rank, beside straightforward code that does the same.

python -m evaluation.benchmark recipes/ml1m_gsasrec.py --only gSASRec
"""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

from aprec_like.shipped_recipes import find_recipe
from evaluation.cli import EXIT_CODES, import_tensorflow, program, run_command


def parse_arguments() -> argparse.Namespace:
    """Parse the command line."""
    parser = argparse.ArgumentParser(
        prog=program("benchmark"),
        description="Seconds per training step, targets per second, users ranked per second and memory of every model "
        "of a recipe, with the same of a naive step (all rows gathered for every padded position) and a naive ranking "
        "(all positions, all scores, a sort) in the same run. Each is measured in a process of its own; the naive ones "
        "run as a plain script would, without the settings of the allocator that a run gives its models.",
        epilog=EXIT_CODES,
    )
    parser.add_argument("recipe", type=Path, metavar="RECIPE", help="the recipe, a Python file that defines `recipe`")
    parser.add_argument("--only", nargs="+", metavar="NAME", help="only these models of the recipe")
    parser.add_argument(
        "--data", type=Path, metavar="DIR", help="data folder (default: $APREC_LIKE_DATA, else a cache folder)"
    )
    parser.add_argument(
        "--steps",
        type=int,
        default=8,
        metavar="N",
        help="steps to measure after two steps of warm-up; fewer if they are very slow (default: 8)",
    )
    parser.add_argument(
        "--growth",
        type=Path,
        metavar="DIR",
        help="instead, measure how a step grows with the catalogue (to 1.3 million items), the length of sequences and "
        "the number of negatives, on random data; a table and a figure, growth.md, .pdf and .png in this folder",
    )
    parser.add_argument(
        "--forecast",
        action="store_true",
        help="instead, forecast a training step on an A100, an RTX 4090 and a T4, on any machine: kernels, padding, "
        "work and transfers of the step as a GPU gets it, milliseconds from the devices' data sheets; no measurement",
    )
    parser.add_argument(
        "--plan",
        action="store_true",
        help="instead, compare the memory and time that `run --dry-run --measure` predicts with a training of two "
        "epochs",
    )
    parser.add_argument("--json", action="store_true", help="one JSON object on standard output")
    arguments = parser.parse_args()
    if arguments.steps < 1:
        parser.error("--steps must be at least 1")
    return arguments


def main() -> int:
    """Benchmark the recipe that the command line names; returns the exit code."""
    arguments = parse_arguments()
    import_tensorflow()
    from evaluation.benchmarking.bench import BenchmarkOptions, benchmark

    return benchmark(BenchmarkOptions(**vars(arguments) | {"recipe": find_recipe(arguments.recipe)}))


if __name__ == "__main__":
    sys.exit(run_command(main))
