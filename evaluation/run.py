"""Command: run a recipe; train its models, rank the catalogue for every user, write tables.

python -m evaluation.run recipes/ml1m_gsasrec.py
"""

from __future__ import annotations

import argparse
import math
import sys
from pathlib import Path
from typing import TYPE_CHECKING

from aprec_like.shipped_recipes import find_recipe
from evaluation.cli import EXIT_CODES, add_memory_option, import_tensorflow, parse_num_jobs, program, run_command

if TYPE_CHECKING:
    from evaluation.running.run_recipe import RunOptions


def parse_arguments() -> argparse.Namespace:
    """Return the parsed command line."""
    parser = argparse.ArgumentParser(
        prog=program("run"),
        description="Train the models of a recipe, rank the whole catalogue for every user, write a results folder "
        "with per-user values and tables. The same command resumes an interrupted run.",
        epilog=EXIT_CODES,
    )
    parser.add_argument(
        "recipe", type=Path, metavar="RECIPE", help="a Python file that defines `recipe`, or the name of a shipped one"
    )
    parser.add_argument("--only", nargs="+", metavar="NAME", help="only these models of the recipe")
    parser.add_argument("--seeds", nargs="+", type=int, metavar="N", help="training seeds instead of the recipe's")
    parser.add_argument(
        "--data",
        type=Path,
        metavar="DIR",
        help="data folder (default: $APREC_LIKE_DATA, else a cache folder)",
    )
    parser.add_argument(
        "--results",
        type=Path,
        default=Path("results"),
        metavar="DIR",
        help="parent of the run's folder (default: results)",
    )
    parser.add_argument(
        "--time-limit",
        type=float,
        default=math.inf,
        metavar="MINUTES",
        help="training time of each model, over all restarts",
    )
    parser.add_argument(
        "--smoke",
        action="store_true",
        help="shrink the recipe to seconds, to test that it runs; writes to <recipe>-smoke",
    )
    parser.add_argument(
        "--dry-run",
        action="store_true",
        help="print sizes, parameters, steps and predicted memory, and what to change where a model won't fit; train "
        "nothing",
    )
    parser.add_argument(
        "--measure",
        action="store_true",
        help="with --dry-run: time a few training steps of every model, a minute or more each, for peak memory and "
        "minutes per epoch on this machine, and forecast those of an A100, an RTX 4090 and a T4; write nothing",
    )
    parser.add_argument("--fresh", action="store_true", help="train again what is finished or started already")
    parser.add_argument(
        "--keep-checkpoints",
        action="store_true",
        help="keep the last state of every training, to go on with more patience; always kept where a limit ended it",
    )
    parser.add_argument(
        "--jobs",
        default="1",
        metavar="N|auto",
        help="models to train at once, with the same results as one after another (auto: one per GPU, or as many as "
        "cores and memory allow)",
    )
    add_memory_option(parser)
    parser.add_argument(
        "--tensorboard",
        action="store_true",
        help="write curves of every training for `tensorboard --logdir` with the results folder; calibration on "
        "validation users among them, which makes validation a little slower",
    )
    parser.add_argument(
        "--devices",
        default="1",
        metavar="N|all",
        help="GPUs that train each model together, each a part of the recipe's batch; the numbers are those of one "
        "device but for the order of sums, and a run may go on with another number",
    )
    parser.add_argument(
        "--ray",
        nargs="?",
        const="auto",
        metavar="ADDRESS",
        help="train the models as tasks of a Ray cluster, by default the one of $RAY_ADDRESS or this machine, on a "
        'results folder that all its nodes see (pip install "aprec_like[cluster]"; docs/cluster.md)',
    )
    parser.add_argument(
        "--slurm",
        nargs="*",
        metavar="NAME=VALUE",
        help="train the models as an array job of a Slurm cluster, one task each, on a results folder that all nodes "
        "see; with options of submitit or sbatch, such as partition=gpu gpus_per_node=1 timeout_min=720 "
        '(pip install "aprec_like[slurm]"; docs/cluster.md)',
    )
    arguments = parser.parse_args()
    if arguments.devices != "all" and not (arguments.devices.isdecimal() and int(arguments.devices) >= 1):
        parser.error("--devices must be a number of at least 1, or all")
    arguments.devices = None if arguments.devices == "all" else int(arguments.devices)
    arguments.jobs = parse_num_jobs(parser, arguments.jobs)
    if sum((arguments.jobs != 1, arguments.devices != 1, arguments.ray is not None, arguments.slurm is not None)) > 1:
        parser.error("use one of --jobs, --ray, --slurm (several models at once) and --devices (several for a model)")
    if arguments.measure and not arguments.dry_run:
        parser.error("--measure is a part of --dry-run")
    if not arguments.time_limit > 0:
        parser.error("--time-limit must be positive")
    seeds = arguments.seeds or []
    if len(set(seeds)) < len(seeds) or not all(0 <= seed < 2**32 for seed in seeds):
        parser.error("--seeds must be distinct numbers from 0 to 2**32 - 1")
    return arguments


def main() -> int:
    """Run the recipe that the command line names; returns the exit code."""
    arguments = parse_arguments()
    import_tensorflow()
    from evaluation.running.run_recipe import RunOptions, run_recipe

    values = {name: value for name, value in vars(arguments).items() if name not in ("memory", "measure")}
    options = RunOptions(**values | {"recipe": find_recipe(arguments.recipe)})
    return _measure_plan(options) if arguments.measure else run_recipe(options)


def _measure_plan(options: RunOptions) -> int:
    """Print the measured plan of a recipe; returns the exit code."""
    from evaluation.benchmarking.planning.measured_plan import PlanSource, print_measured_plan
    from evaluation.running.run_recipe import load_run_recipe, select_models

    recipe = load_run_recipe(options)
    source = PlanSource(recipe, options.recipe, options.data_dir, options.smoke)
    return print_measured_plan(source, select_models(recipe, options.only))


if __name__ == "__main__":
    sys.exit(run_command(main))
