"""The plan of every model beside a training of two epochs (`evaluation.benchmark RECIPE --plan`)."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from pathlib import Path

from aprec_like.datasets import Sizes
from aprec_like.errors import InputError
from aprec_like.recipe import Recipe
from aprec_like.types import Json
from evaluation.benchmarking.planning.measured_plan import PlanSource
from evaluation.cli import DONE, FAILED
from evaluation.running.plan import predict_peak_memory
from evaluation.table import Table, as_text

CAPTION = (
    "Peak memory of the process, and seconds and processor seconds of an epoch with its validation and save. "
    "Settings: the prediction of --dry-run. Steps: that of --dry-run --measure. Training: two epochs and the ranking "
    "of 2,048 users, as a run does them; time is that of the second epoch. Where other work changes the speed of the "
    "machine, only processor seconds can be compared."
)


def compare_with_training(
    recipe: Recipe, names: Sequence[str], path: Path, data_dir: Path, is_json: bool = False
) -> int:
    """Predict memory and time of every trained model, train it for two epochs, print both; returns the exit code."""
    source = PlanSource(recipe, path, data_dir)
    models = source.trained_models(names)
    if not models:
        raise InputError(f"{path}: {', '.join(names)}: only trained models have a plan")
    interactions = recipe.load(data_dir)
    sizes = Sizes(interactions.num_users, interactions.num_items, interactions.num_interactions)
    del interactions  # the processes need the memory
    found: dict[str, Json] = {}
    has_failed = False
    for name, model in models.items():
        plan, training = source.measure("epoch", name), source.measure("training", name)
        if plan is None or training is None:
            has_failed = True
            continue
        predicted = predict_peak_memory(model, sizes) / 2**30
        found[name] = {"predicted_memory_gib": predicted, "plan": plan, "training": training}
    print(json.dumps({"models": found}, indent=2) if is_json else as_text(comparison_table(found)).rstrip())
    return FAILED if has_failed else DONE


def comparison_table(found: Mapping[str, Json]) -> Table:
    """Return a table with the predictions and measurements of every model."""
    rows = []
    for name, values in found.items():
        plan, training = values["plan"], values["training"]
        memory = training["peak_memory_gib"]
        rows.append(
            [
                name,
                *_compare(values["predicted_memory_gib"], memory, "{:.2f}"),
                *_compare(plan["peak_memory_gib"], memory, "{:.2f}"),
                f"{memory:.2f}",
                *_compare(plan["epoch_seconds"], training["epoch_seconds"], "{:.1f}"),
                f"{training['epoch_seconds']:.1f}",
                *_compare(plan["epoch_cpu_seconds"], training["epoch_cpu_seconds"], "{:.1f}"),
                f"{training['epoch_cpu_seconds']:.1f}",
            ]
        )
    header = ["Model", "settings", "error", *(["steps", "error", "training"] * 3)]
    spans = (("memory, GiB", 5), ("epoch, s", 3), ("epoch, processor s", 3))
    return Table("plan", header, [rows], CAPTION, spans=spans)


def _compare(predicted: float, measured: float, form: str) -> tuple[str, str]:
    """Return a prediction, and its deviation from the measured value."""
    return form.format(predicted), f"{predicted / measured - 1:+.0%}"
