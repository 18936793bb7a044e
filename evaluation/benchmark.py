"""Measure how fast the models of a recipe train and rank, beside the plainest code that does the same.

python -m evaluation.benchmark recipes/ml1m_gsasrec.py --only gSASRec
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
from pathlib import Path

from evaluation.command import DONE, EXIT_CODES, FAILED, import_tensorflow, run_command

Measured = dict[str, float]


def parse_arguments() -> argparse.Namespace:
    """The command line."""
    parser = argparse.ArgumentParser(
        prog="python -m evaluation.benchmark",
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
    parser.add_argument("--steps", type=int, default=8, metavar="N", help="steps to measure, after two (default: 8)")
    parser.add_argument("--json", action="store_true", help="one JSON object on standard output")
    arguments = parser.parse_args()
    if arguments.steps < 1:
        parser.error("--steps must be at least 1")
    return arguments


def main() -> int:
    """Measure what the command line asks for."""
    arguments = parse_arguments()
    import_tensorflow()
    from aprec_like.datasets.download import default_data_dir
    from aprec_like.errors import InputError
    from aprec_like.recipe import load_recipe

    recipe, data_dir = load_recipe(arguments.recipe), arguments.data or default_data_dir()
    if unknown := [name for name in arguments.only or [] if name not in recipe.models]:
        raise InputError(f"the recipe has no model {unknown[0]!r}; it has {', '.join(recipe.models)}")
    load = [round(value, 2) for value in os.getloadavg()]
    models, has_failed = {}, False
    for name in arguments.only or recipe.models:
        models[name], is_whole = _measure_model(arguments.recipe, name, data_dir, arguments.steps)
        has_failed |= not is_whole
    if arguments.json:
        print(json.dumps({"models": models, "load_average": load}, indent=2))
    else:
        print(_as_text(models), end="")
        print(f"\nload average before: {', '.join(map(str, load))}")
    return FAILED if has_failed else DONE


def _measure_model(recipe: Path, name: str, data_dir: Path, steps: int) -> tuple[Measured, bool]:
    """All measurements of a model, and whether none failed."""
    from evaluation.measure import KINDS
    from evaluation.worker import environment_for

    measured: Measured = {}
    is_whole = True
    for kind in KINDS:
        print(f"{name}: {kind.replace('_', ' ')}", file=sys.stderr, flush=True)
        options = {"recipe": str(recipe), "model": name, "data": str(data_dir), "steps": steps, "kind": kind}
        # The naive ones run as a plain script would, without the settings of the allocator that are ours.
        done = subprocess.run(
            [sys.executable, "-m", "evaluation.measure", json.dumps(options)],
            stdout=subprocess.PIPE,
            env=os.environ.copy() if kind.startswith("naive") else environment_for(os.environ),
            check=False,
        )
        if done.returncode != 0:
            is_whole = False
            continue
        values = json.loads(done.stdout)
        memory = values.pop("peak_memory_gib", None)
        measured |= values
        if memory is not None and not kind.startswith("naive"):
            measured["peak_memory_gib" if kind == "step" else "ranking_memory_gib"] = memory
    return _with_shares(measured), is_whole


def _with_shares(measured: Measured) -> Measured:
    """Ratios to the naive code, and what takes which share of an epoch."""
    for fast, naive, ratio in (
        ("step_seconds", "naive_step_seconds", "step_ratio"),
        ("naive_users_per_second", "users_per_second", "ranking_ratio"),
    ):
        if fast in measured and naive in measured:
            measured[ratio] = measured[naive] / measured[fast]
    if "step_seconds" in measured and "users_per_second" in measured:
        steps = measured.pop("steps_per_epoch")
        validation = measured.pop("validation_users") / measured["users_per_second"]
        waiting, working = steps * measured["input_seconds"], steps * measured["step_seconds"]
        whole = waiting + working + validation
        measured |= {
            "epoch_seconds": whole,
            "input_share": waiting / whole,
            "step_share": working / whole,
            "validation_share": validation / whole,
        }
    return measured


def _as_text(models: dict[str, Measured]) -> str:
    from evaluation.layout import Table, as_text

    columns = {
        "Step, s": ("step_seconds", "{:.3f}"),
        "naive, s": ("naive_step_seconds", "{:.3f}"),
        "ratio": ("step_ratio", "{:.1f}"),
        "Targets/s": ("tokens_per_second", "{:,.0f}"),
        "Memory, GiB": ("peak_memory_gib", "{:.2f}"),
        "Input": ("input_share", "{:.1%}"),
        "Validation": ("validation_share", "{:.1%}"),
        "Users/s": ("users_per_second", "{:,.0f}"),
        "naive": ("naive_users_per_second", "{:,.0f}"),
        "ratio ": ("ranking_ratio", "{:.1f}"),
        "Ranking, GiB": ("ranking_memory_gib", "{:.2f}"),
    }
    lines = [
        [name, *(form.format(found[key]) if key in found else "" for key, form in columns.values())]
        for name, found in models.items()
    ]
    return as_text(Table("benchmark", ["Model", *columns], [lines]))


if __name__ == "__main__":
    sys.exit(run_command(main))
