"""Benchmarks the models of a recipe, each measurement in a process of its own, and prints the results."""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from aprec_like.datasets.download import default_data_dir
from aprec_like.errors import InputError
from aprec_like.recipe import Recipe, Trained, load_recipe
from aprec_like.types import Json
from evaluation.benchmarking.measurements import KINDS, run_measurement
from evaluation.benchmarking.setup import Measurement
from evaluation.benchmarking.sizes import applicable_sizes
from evaluation.benchmarking.tables import add_ratios, benchmark_table, forecast_table, growth_table
from evaluation.cli import DONE, FAILED
from evaluation.figures.growth import Growth, draw_growth
from evaluation.figures.style import save_figure
from evaluation.results.files import write_text
from evaluation.running.run_recipe import select_models
from evaluation.table import Table, as_text
from evaluation.table_formats import as_markdown

MEMORY_NAMES = {"step": "peak_memory_gib", "ranking": "ranking_memory_gib"}
"""Names of the peak memory in the results, by kind of measurement; that of other kinds is left out."""


@dataclass(frozen=True)
class BenchmarkOptions:
    """The command line of `evaluation.benchmark`.

    Args:
        recipe: path of the recipe file.
        only: names of the models to measure; `None` for all.
        data: folder of data files; `None` for the default.
        steps: training steps to measure.
        growth: folder for the table and figure of growing sizes, which are measured instead; `None` for neither.
        forecast: whether to forecast a step on GPUs instead of measuring.
        plan: whether to compare the plan of `run --dry-run --measure` with a training of two epochs instead.
        json: whether to print one JSON object instead of a table.
    """

    recipe: Path
    only: list[str] | None
    data: Path | None
    steps: int
    growth: Path | None
    forecast: bool
    json: bool
    plan: bool = False


def benchmark(options: BenchmarkOptions) -> int:
    """Make and print the measurements that the options ask for; returns the exit code."""
    recipe = load_recipe(options.recipe)
    names = select_models(recipe, options.only)
    if options.forecast:
        return _print_forecasts(recipe, names, options)
    if options.plan:
        from evaluation.benchmarking.planning.against_training import compare_with_training

        return compare_with_training(recipe, names, options.recipe, options.data or default_data_dir(), options.json)
    load_average = [round(value, 2) for value in os.getloadavg()]
    if options.growth:
        return _benchmark_growth(recipe, names, options, options.growth, load_average)
    return _benchmark_models(names, options, load_average)


def _print_forecasts(recipe: Recipe, names: Sequence[str], options: BenchmarkOptions) -> int:
    """Forecast a step of every trained model, and print the forecasts."""
    from evaluation.benchmarking.forecast import forecast

    models = {name: model for name, model in recipe.models.items() if name in names and isinstance(model, Trained)}
    if not models:
        raise InputError(f"{options.recipe}: {', '.join(names)}: only trained models have steps to forecast")
    split = recipe.split_interactions(recipe.load(options.data or default_data_dir()))
    forecasts: dict[str, Json] = {}
    for name, model in models.items():
        print(f"{name}: forecast", file=sys.stderr, flush=True)
        forecasts[name] = forecast(model, split)
    print(json.dumps({"models": forecasts}, indent=2) if options.json else as_text(forecast_table(forecasts)))
    return DONE


def _benchmark_models(names: Sequence[str], options: BenchmarkOptions, load_average: list[float]) -> int:
    """Make all measurements of the models and print them, after an interrupt those that are finished."""
    data_dir = options.data or default_data_dir()
    models: dict[str, Measurement] = {}
    has_failed = False
    try:
        for name in names:
            models[name] = {}
            for kind in KINDS:
                print(f"{name}: {kind.replace('_', ' ')}", file=sys.stderr, flush=True)
                inputs = {"data": str(data_dir), "kind": kind}
                values = _measure(options, name, inputs, is_naive=kind.startswith("naive"))
                if values is None:
                    has_failed = True
                    continue
                memory = values.pop("peak_memory_gib", None)
                models[name] |= values
                if memory is not None and kind in MEMORY_NAMES:
                    models[name][MEMORY_NAMES[kind]] = memory
            add_ratios(models[name])
    finally:
        if models:
            _show(models, benchmark_table(models), load_average, is_json=options.json)
    return FAILED if has_failed else DONE


def _benchmark_growth(
    recipe: Recipe, names: Sequence[str], options: BenchmarkOptions, folder: Path, load_average: list[float]
) -> int:
    """Measure a step of every trained model at all sizes and print, draw and tabulate the results.

    After an interrupt the finished measurements are printed, but no files are written.
    """
    models = {name: model for name, model in recipe.models.items() if name in names and isinstance(model, Trained)}
    if not models:
        raise InputError(f"{options.recipe}: {', '.join(names)}: only trained models have steps to measure")
    growth: Growth = {}
    has_failed = False
    try:
        for name, model in models.items():
            growth[name] = {}
            for size in applicable_sizes(model):
                print(f"{name}: {size.value:,} {size.varied}", file=sys.stderr, flush=True)
                values = _measure(options, name, {"size": [size.varied, size.value]})
                if values is None:
                    has_failed = True
                    continue
                growth[name].setdefault(size.varied, {})[size.value] = values
        if any(growth.values()):
            _write_growth(growth, folder)
    finally:
        _show(growth, growth_table(growth), load_average, is_json=options.json)
    return FAILED if has_failed else DONE


def _measure(options: BenchmarkOptions, name: str, inputs: Json, is_naive: bool = False) -> Measurement | None:
    """Make one measurement of a model; returns `None` if it failed."""
    return run_measurement({"recipe": str(options.recipe), "model": name, "steps": options.steps} | inputs, is_naive)


def _write_growth(growth: Growth, folder: Path) -> None:
    figure = draw_growth(growth)
    for suffix in ("pdf", "png"):
        save_figure(figure, folder / f"growth.{suffix}")
    write_text(folder / "growth.md", as_markdown(growth_table(growth)))


def _show(models: Mapping[str, object], table: Table, load_average: list[float], is_json: bool) -> None:
    if is_json:
        print(json.dumps({"models": models, "load_average": load_average}, indent=2))
    else:
        print(as_text(table), end="")
        print(f"\nload average before: {', '.join(map(str, load_average))}")
