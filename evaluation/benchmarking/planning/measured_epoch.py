"""Measurements for the plan of a model, each in a process of its own: an epoch from a few steps, a whole epoch."""

from __future__ import annotations

import tempfile
import time
from collections.abc import Callable, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any, cast

import tensorflow as tf
from typing_extensions import override

from aprec_like.batches import make_batches
from aprec_like.models import Network
from aprec_like.ranking import NetworkScorer, rank
from aprec_like.recipe import Recipe, Trained, load_recipe
from aprec_like.recipe.fitting import validated_training
from aprec_like.splits import HeldOut
from aprec_like.training import make_step
from aprec_like.training.epoch_loop import MAX_STEPS_PER_CALL, SECONDS_PER_CALL, save_seconds
from aprec_like.training.objective import make_objective
from aprec_like.training.state import EpochRecord
from aprec_like.training.step import Steps, make_steps
from aprec_like.types import Json
from evaluation.benchmarking.forecast import forecast
from evaluation.benchmarking.ranking import sample_users
from evaluation.benchmarking.setup import WARM_UP_STEPS, build_seeded_network
from evaluation.results.environment import peak_memory_gib
from evaluation.results.store import ModelFolder
from evaluation.running.fit_model import ModelRun
from evaluation.running.progress import Display
from evaluation.running.run_model import run_model
from evaluation.running.smoke import shrink

SECONDS_OF_STEPS, MIN_STEPS = 10.0, 3
"""Steps are timed for this long, and at least so many."""
NUM_RANKED = 512
"""Test users whose ranking is timed."""
NO_SECONDS = (0.0, 0.0)
"""Seconds and processor seconds of what is not done."""
NUM_EPOCHS, NUM_RANKED_AFTER_TRAINING = 2, 2_048
"""Size of the training that a plan is compared with; its first epoch includes the tracing of the step."""


def measure_epoch(recipe_path: Path, name: str, data_dir: Path, is_smoke: bool) -> Json:
    """Time steps, validation, saving and ranking of a model; returns them and the seconds of an epoch made of them.

    Steps are called as in a training, several at a time, on batches of the recipe's data.
    """
    recipe, model = _load_model(recipe_path, name, data_dir, is_smoke)
    split = recipe.split_interactions(recipe.load(data_dir))
    data, training = model.training_data(split), model.training
    network, optimizer = build_seeded_network(model, data), training.optimizer.build()
    batches = make_batches(data, model.model.examples(), model.batch_settings, 1)
    objective = make_objective(model.loss, model.negatives, data)
    step = make_step(network, objective, optimizer, 1, batches.element_spec, model.is_step_compiled(data))
    step_seconds, step_cpu_seconds = time_steps(make_steps(step, batches))
    num_steps = model.num_steps_per_epoch(data)
    validation = _time_ranking(network, split.validation, recipe, depth=0) if training.early_stopping else NO_SECONDS
    with tempfile.TemporaryDirectory() as folder:
        started = time.process_time()
        saving = save_seconds(network.variables, optimizer.variables, Path(folder))
        saving_cpu = time.process_time() - started
    ranked = sample_users(split, NUM_RANKED)
    ranking = _time_ranking(network, ranked, recipe, recipe.evaluation.depth)
    return {
        "steps_per_epoch": num_steps,
        "step_seconds": step_seconds,
        "validation_seconds": validation[0],
        "save_seconds": saving,
        "epoch_seconds": num_steps * step_seconds + validation[0] + saving,
        "epoch_cpu_seconds": num_steps * step_cpu_seconds + validation[1] + saving_cpu,
        "ranking_seconds": ranking[0] * len(split.test) / len(ranked),
        "peak_memory_gib": peak_memory_gib(),
    }


def time_steps(steps: Steps) -> tuple[float, float]:
    """Return the mean seconds and processor seconds of a step, after steps of warm-up."""
    first, number, seconds, processor_started = 0, 1, 0.0, time.process_time()
    while first < WARM_UP_STEPS + MIN_STEPS or seconds < SECONDS_OF_STEPS:
        started = time.monotonic()
        float(steps(tf.constant(first, tf.int64), tf.constant(number, tf.int64), tf.constant(0.0)))
        elapsed = time.monotonic() - started
        first += number
        if first <= WARM_UP_STEPS:
            processor_started = time.process_time()
        else:
            seconds += elapsed
            number = max(1, min(MAX_STEPS_PER_CALL, int(number * SECONDS_PER_CALL / elapsed)))
    num_steps = first - WARM_UP_STEPS
    return seconds / num_steps, (time.process_time() - processor_started) / num_steps


def _time_ranking(network: Network, cases: HeldOut, recipe: Recipe, depth: int) -> tuple[float, float]:
    """Return the seconds and processor seconds to rank these users, after one ranking as warm-up."""
    scorer, found = NetworkScorer(network), NO_SECONDS
    for _ in range(2):
        started, processor_started = time.monotonic(), time.process_time()
        rank(scorer, cases, exclude_seen=recipe.evaluation.exclude_seen, depth=depth)
        found = time.monotonic() - started, time.process_time() - processor_started
    return found


def forecast_step(recipe_path: Path, name: str, data_dir: Path, is_smoke: bool) -> Json:
    """Forecast a step of a model on GPUs."""
    recipe, model = _load_model(recipe_path, name, data_dir, is_smoke)
    return forecast(model, recipe.split_interactions(recipe.load(data_dir)))


class EpochClock(Display):
    """Display that notes the seconds and processor seconds at the end of every epoch."""

    def __init__(self, *arguments: Any, **options: Any) -> None:
        super().__init__(*arguments, **options)
        self.ends: list[tuple[float, float]] = []

    @override
    def on_epoch(self, record: EpochRecord) -> None:
        self.ends.append((record.seconds, time.process_time()))
        super().on_epoch(record)


def measure_training(recipe_path: Path, name: str, data_dir: Path, is_smoke: bool) -> Json:
    """Train a model for two epochs as a run does, and rank some users; returns the last epoch's seconds, and memory."""
    recipe, model = _load_model(recipe_path, name, data_dir, is_smoke)
    short = replace(model, training=replace(model.training, max_epochs=NUM_EPOCHS))
    evaluation = replace(recipe.evaluation, users=recipe.evaluation.users or NUM_RANKED_AFTER_TRAINING)
    recipe = replace(recipe, models=dict(recipe.models) | {name: short}, evaluation=evaluation)
    with tempfile.TemporaryDirectory() as path:
        run = ModelRun(recipe, name, recipe.seeds[0], data_dir, ModelFolder(Path(path)))
        display = cast(EpochClock, run.make_display(EpochClock))
        with display:
            run_model(run, display)
        (before, cpu_before), (after, cpu_after) = display.ends[-2:]
        return {
            "epoch_seconds": after - before,
            "epoch_cpu_seconds": cpu_after - cpu_before,
            "peak_memory_gib": run.folder.status()["peak_memory_gib"],
        }


def _load_model(recipe_path: Path, name: str, data_dir: Path, is_smoke: bool) -> tuple[Recipe, Trained]:
    """Return a recipe and one of its trained models, as it is trained with validation."""
    recipe = load_recipe(recipe_path)
    recipe = shrink(recipe, data_dir) if is_smoke else recipe
    model = recipe.models[name]
    assert isinstance(model, Trained)
    return recipe, validated_training(model, recipe.fit_on)


PLAN_KINDS: Mapping[str, Callable[[Path, str, Path, bool], Json]] = {
    "epoch": measure_epoch,
    "step_forecast": forecast_step,
    "training": measure_training,
}
"""Measurements of a trained model by name: functions of recipe, model, data folder and whether to shrink the recipe."""
