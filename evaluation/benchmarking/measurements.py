"""The kinds of measurements that a model of a recipe can have, and the process of one of them."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

from aprec_like.errors import InputError
from aprec_like.recipe import Trained, load_recipe
from aprec_like.splits import Split
from aprec_like.types import Json
from evaluation.benchmarking.output_layer import measure_naive_output, measure_output
from evaluation.benchmarking.ranking import measure_naive_ranking, measure_ranking
from evaluation.benchmarking.setup import Measurement
from evaluation.benchmarking.sizes import Size
from evaluation.benchmarking.steps import measure_encoder, measure_naive_step, measure_size, measure_step
from evaluation.results.environment import peak_memory_gib
from evaluation.running.worker import import_environment, worker_environment

TRAINED_KINDS: dict[str, Callable[[Trained, Split, int], Measurement]] = {
    "step": measure_step,
    "encoder": measure_encoder,
    "output": measure_output,
    "naive_output": measure_naive_output,
    "naive_step": measure_naive_step,
    "naive_ranking": measure_naive_ranking,
}
"""Measurements of trained models."""

KINDS = ("step", "encoder", "output", "naive_output", "naive_step", "ranking", "naive_ranking")
"""All measurements, in the order in which they are made."""


def measure_model(kind: str, recipe_path: Path, name: str, data_dir: Path, num_steps: int) -> Measurement:
    """Make one kind of measurement of a model; returns an empty one if the kind does not apply to the model."""
    recipe = load_recipe(recipe_path)
    model = recipe.models[name]
    split = recipe.split_interactions(recipe.load(data_dir))
    values: Measurement = {}
    if kind == "ranking":
        values = measure_ranking(model, split, recipe.evaluation)
    elif isinstance(model, Trained):
        values = TRAINED_KINDS[kind](model, split, num_steps)
    return values | {"peak_memory_gib": peak_memory_gib()} if values else {}


def measure_model_at_size(recipe_path: Path, name: str, size: Size, num_steps: int) -> Measurement:
    """Measure the seconds per step and the peak memory of a trained model at one size."""
    model = load_recipe(recipe_path).models[name]
    if not isinstance(model, Trained):
        raise InputError(f"{recipe_path}: {name}: only trained models have steps to measure")
    return measure_size(model, size, num_steps) | {"peak_memory_gib": peak_memory_gib()}


def run_measurement(inputs: Json, is_naive: bool = False) -> Any:
    """Make the measurement that a JSON object describes in a process of its own; returns `None` if it failed.

    Naive code runs as a plain script would, without the allocator settings of a run.
    """
    done = subprocess.run(
        [sys.executable, "-P", "-m", "evaluation.benchmarking.worker", json.dumps(inputs)],
        stdout=subprocess.PIPE,
        env=(import_environment if is_naive else worker_environment)(os.environ),
        check=False,
    )
    return json.loads(done.stdout) if done.returncode == 0 else None
