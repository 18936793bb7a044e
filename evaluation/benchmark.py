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
from typing import Any

from evaluation.cli import DONE, EXIT_CODES, FAILED, import_tensorflow, run_command

Measured = dict[str, float]

MEMORY_OF = {"step": "peak_memory_gib", "ranking": "ranking_memory_gib"}
"""What the peak memory of a measurement is called."""


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
    parser.add_argument(
        "--steps",
        type=int,
        default=8,
        metavar="N",
        help="steps to measure, after two; fewer of very slow ones (default: 8)",
    )
    parser.add_argument(
        "--growth",
        type=Path,
        metavar="DIR",
        help="instead, measure how a step grows with the catalogue (to 1.3 million items), the length of sequences and "
        "the number of negatives, on random data; a table and a figure, growth.md, .pdf and .png in this folder",
    )
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
    names = arguments.only or list(recipe.models)
    models: dict[str, Any] = {}
    try:
        if arguments.growth:
            has_failed = _grow(models, recipe, names, arguments)
        else:
            has_failed = _measure_models(models, arguments.recipe, names, data_dir, arguments.steps)
    finally:  # whoever interrupts it after an hour sees what there is
        _show(models, load, arguments)
    return FAILED if has_failed else DONE


def _show(models: dict[str, Any], load: list[float], arguments: argparse.Namespace) -> None:
    from evaluation.benchmarking.sizes import growth_table
    from evaluation.table import as_text

    if not models:
        return
    if arguments.json:
        print(json.dumps({"models": models, "load_average": load}, indent=2))
    else:
        print(as_text(growth_table(models) if arguments.growth else _table(models)), end="")
        print(f"\nload average before: {', '.join(map(str, load))}")


def _grow(measured: dict[str, Any], recipe: Any, names: list[str], arguments: argparse.Namespace) -> bool:
    """Measure the cost of a step of every trained model at all sizes; returns whether any measurement failed."""
    from aprec_like.errors import InputError
    from aprec_like.recipe import Trained
    from evaluation.benchmarking.sizes import draw_growth, growth_table, sizes_for
    from evaluation.figures.style import save
    from evaluation.results.files import write_text
    from evaluation.table import as_markdown

    has_failed = False
    trained = [name for name in names if isinstance(recipe.models[name], Trained)]
    if not trained:
        raise InputError(f"{arguments.recipe}: {', '.join(names)}: only models that are trained have steps to measure")
    for name in trained:
        measured[name] = {}
        for size in sizes_for(recipe.models[name]):
            print(f"{name}: {size.value:,} {size.varied}", file=sys.stderr, flush=True)
            options = {"recipe": str(arguments.recipe), "model": name, "steps": arguments.steps}
            values = _measured(options | {"size": [size.varied, size.value]})
            if values is None:
                has_failed = True
                continue
            measured[name].setdefault(size.varied, {})[size.value] = values
    if not any(measured.values()):
        return has_failed
    figure = draw_growth(measured)
    for ending in ("pdf", "png"):
        save(figure, arguments.growth / f"growth.{ending}")
    write_text(arguments.growth / "growth.md", as_markdown(growth_table(measured)))
    return has_failed


def _measured(options: dict[str, Any], is_naive: bool = False) -> Measured | None:
    """What a process of its own measures; `None` if it failed.

    Naive code runs as a plain script would, without the settings of the allocator that are ours.
    """
    from evaluation.running.worker import environment_for

    done = subprocess.run(
        [sys.executable, "-m", "evaluation.benchmarking.worker", json.dumps(options)],
        stdout=subprocess.PIPE,
        env=os.environ.copy() if is_naive else environment_for(os.environ),
        check=False,
    )
    return json.loads(done.stdout) if done.returncode == 0 else None


def _measure_models(models: dict[str, Any], recipe: Path, names: list[str], data_dir: Path, steps: int) -> bool:
    """Make all measurements of the models; returns whether any failed."""
    from evaluation.benchmarking.worker import KINDS

    has_failed = False
    for name in names:
        measured: Measured = models.setdefault(name, {})
        for kind in KINDS:
            print(f"{name}: {kind.replace('_', ' ')}", file=sys.stderr, flush=True)
            options = {"recipe": str(recipe), "model": name, "data": str(data_dir), "steps": steps, "kind": kind}
            values = _measured(options, is_naive=kind.startswith("naive"))
            if values is None:
                has_failed = True
                continue
            memory = values.pop("peak_memory_gib", None)
            measured |= values
            if memory is not None and kind in MEMORY_OF:
                measured[MEMORY_OF[kind]] = memory
        _add_shares(measured)
    return has_failed


def _add_shares(measured: Measured) -> None:
    """Add ratios to the naive code, and what takes which share of an epoch."""
    for fast, naive, ratio in (
        ("step_seconds", "naive_step_seconds", "step_ratio"),
        ("output_seconds", "naive_output_seconds", "output_ratio"),
        ("naive_users_per_second", "users_per_second", "ranking_ratio"),
    ):
        if fast in measured and naive in measured:
            measured[ratio] = measured[naive] / measured[fast]
    if "step_seconds" in measured and "users_per_second" in measured:
        steps = measured.pop("steps_per_epoch")
        validation = measured.pop("validation_users") / measured["users_per_second"]
        waiting, working = steps * measured["input_seconds"], steps * measured["step_seconds"]
        whole = waiting + working + validation + measured["save_seconds"]
        measured |= {
            "epoch_seconds": whole,
            "input_share": waiting / whole,
            "step_share": working / whole,
            "validation_share": validation / whole,
            "save_share": measured["save_seconds"] / whole,
        }


def _table(models: dict[str, Measured]) -> Any:
    from evaluation.table import Table

    columns = {
        "Step, s": ("step_seconds", "{:.3f}"),
        "naive, s": ("naive_step_seconds", "{:.3f}"),
        "ratio": ("step_ratio", "{:.1f}"),
        "Network, s": ("encoder_seconds", "{:.3f}"),
        "Output, s": ("output_seconds", "{:.3f}"),
        "ratio  ": ("output_ratio", "{:.1f}"),
        "Targets/s": ("tokens_per_second", "{:,.0f}"),
        "Memory, GiB": ("peak_memory_gib", "{:.2f}"),
        "Input": ("input_share", "{:.1%}"),
        "Validation": ("validation_share", "{:.1%}"),
        "Saving": ("save_share", "{:.1%}"),
        "Users/s": ("users_per_second", "{:,.0f}"),
        "naive": ("naive_users_per_second", "{:,.0f}"),
        "ratio ": ("ranking_ratio", "{:.1f}"),
        "Ranking, GiB": ("ranking_memory_gib", "{:.2f}"),
    }
    lines = [
        [name, *(form.format(found[key]) if key in found else "" for key, form in columns.values())]
        for name, found in models.items()
    ]
    return Table("benchmark", ["Model", *columns], [lines])


if __name__ == "__main__":
    sys.exit(run_command(main))
