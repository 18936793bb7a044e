"""Command: search the settings of a recipe's models on validation, with a budget that the table shows.

python -m evaluation.tune recipes/ml1m_tuning.py --hours 0.75 --fair
"""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

from aprec_like.shipped_recipes import find_recipe
from evaluation.cli import EXIT_CODES, import_extra, import_tensorflow, parse_num_jobs, program, run_command

EXAMPLES = """the search space is a part of the recipe, by name of the model and of the setting:
  recipe = Recipe(..., spaces={"gSASRec": {"learning_rate": LogUniform(1e-4, 1e-2), "max_length": Choice((50, 100))}})

examples:
  tune recipes/films.py --trials 50                     50 settings of every model that has a search space
  tune recipes/films.py --trials 50 --only gSASRec      of one model
  tune recipes/films.py --hours 2 --fair                two hours of training for every network of the recipe
  tune recipes/films.py --trials 50 --jobs 2            two at once; the same command on another host helps too
"""


def parse_arguments() -> argparse.Namespace:
    """Return the parsed command line."""
    parser = argparse.ArgumentParser(
        prog=program("tune"),
        description="Search the settings of a recipe's models: trials chosen by a tree-structured Parzen estimator, "
        "trained on the training part and compared on validation; the test is never ranked. Writes a recipe with the "
        "best settings and their budget, which its results table shows. The same command resumes an interrupted "
        "search, also while others work on it.",
        epilog=EXAMPLES + "\n" + EXIT_CODES,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument(
        "recipe", type=Path, metavar="RECIPE", help="a recipe with search spaces, or the name of a shipped one"
    )
    parser.add_argument("--only", nargs="+", metavar="NAME", help="only these models of the recipe")
    parser.add_argument("--trials", type=int, metavar="N", help="trials of each model, over all restarts")
    parser.add_argument("--hours", type=float, metavar="H", help="hours of training of each model, over all restarts")
    parser.add_argument(
        "--fair", action="store_true", help="the same budget for every network: an error if one has no search space"
    )
    parser.add_argument(
        "--seeds", nargs="+", type=int, default=[1], metavar="N", help="training seeds of every trial (default: 1)"
    )
    parser.add_argument("--seed", type=int, default=1, metavar="N", help="seed of the search (default: 1)")
    parser.add_argument(
        "--no-pruning", action="store_true", help="train every trial to its end, also those below the median"
    )
    parser.add_argument(
        "--retrain",
        type=int,
        default=3,
        metavar="N",
        help="other seeds to train the winner with, less those of the tuned recipe's run (default: 3)",
    )
    parser.add_argument(
        "--jobs",
        default="1",
        metavar="N|auto",
        help="trials at once (auto: one per GPU, or as many as cores and memory allow); which trials follow then "
        "depends on which end first",
    )
    parser.add_argument(
        "--ray",
        nargs="?",
        const="auto",
        metavar="ADDRESS",
        help="run the trials as tasks of a Ray cluster, by default the one of $RAY_ADDRESS or this machine, on a "
        'results folder that all its nodes see (pip install "aprec_like[cluster]"; docs/cluster.md)',
    )
    parser.add_argument("--data", type=Path, metavar="DIR", help="data folder, as in evaluation.run")
    parser.add_argument(
        "--results",
        type=Path,
        default=Path("results"),
        metavar="DIR",
        help="parent of the folder <recipe>-tuning (default: results)",
    )
    parser.add_argument(
        "--output", type=Path, metavar="FILE", help="the tuned recipe (default: <recipe>_tuned.py beside the recipe)"
    )
    parser.add_argument("--dry-run", action="store_true", help="print the plan with its search spaces; train nothing")
    parser.add_argument("--fresh", action="store_true", help="begin again")
    arguments = parser.parse_args()
    if arguments.trials is None and arguments.hours is None:
        parser.error("a search needs --trials or --hours")
    if arguments.trials is not None and arguments.trials < 1:
        parser.error("--trials must be at least 1")
    if arguments.hours is not None and not 0 < arguments.hours < float("inf"):
        parser.error("--hours must be positive")
    if arguments.fair and arguments.only:
        parser.error("--fair tunes every network of the recipe; leave out --only")
    seeds = [*arguments.seeds, arguments.seed]
    if len(set(arguments.seeds)) < len(arguments.seeds) or not all(0 <= seed < 2**31 for seed in seeds):
        parser.error("--seeds must be distinct numbers from 0 to 2**31 - 1")
    if arguments.retrain < 0:
        parser.error("--retrain must not be negative")
    arguments.jobs = parse_num_jobs(parser, arguments.jobs)
    if arguments.ray is not None and arguments.jobs != 1:
        parser.error("use one of --jobs and --ray, which runs as many trials at once as the cluster has room for")
    return arguments


def main() -> int:
    """Tune the recipe that the command line names; returns the exit code."""
    arguments = parse_arguments()
    import_extra("optuna", "tune")
    import_tensorflow()
    from evaluation.tuning.study import Limits
    from evaluation.tuning.tune_recipe import TuneOptions, tune_recipe

    recipe = find_recipe(arguments.recipe)
    here = None if recipe == arguments.recipe else Path(f"{recipe.stem}_tuned.py")
    options = TuneOptions(
        recipe=recipe,
        only=arguments.only,
        limits=Limits(arguments.trials, arguments.hours),
        fair=arguments.fair,
        seeds=tuple(arguments.seeds),
        seed=arguments.seed,
        is_pruned=not arguments.no_pruning,
        num_retrainings=arguments.retrain,
        data=arguments.data,
        results=arguments.results,
        output=arguments.output or here,
        jobs=arguments.jobs,
        ray=arguments.ray,
        dry_run=arguments.dry_run,
        fresh=arguments.fresh,
    )
    return tune_recipe(options)


if __name__ == "__main__":
    sys.exit(run_command(main))
