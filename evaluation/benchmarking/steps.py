"""Measures training steps: the whole step, the network alone, the naive step, a step at one size of a sweep."""

from __future__ import annotations

import tempfile
import time
from dataclasses import replace
from pathlib import Path

import keras
import numpy as np
import tensorflow as tf

from aprec_like.batches import make_batches
from aprec_like.batches.layouts import STATIC, Batch
from aprec_like.interactions import Interactions
from aprec_like.models import Network
from aprec_like.recipe import Trained
from aprec_like.splits import Split
from aprec_like.training import make_step
from aprec_like.training.epoch_loop import save_seconds
from aprec_like.training.objective import Objective, make_objective
from aprec_like.types import Tensor
from evaluation.benchmarking.naive import make_naive_step, pad_batch
from evaluation.benchmarking.setup import (
    WARM_UP_STEPS,
    Measurement,
    build_seeded_network,
    exceeds_memory,
    is_measured,
    sequence_length,
)
from evaluation.benchmarking.sizes import Size


def measure_step(model: Trained, split: Split, num_steps: int) -> Measurement:
    """Time training steps, waiting for batches, and saving a checkpoint; count the steps and users of an epoch."""
    data = model.training_data(split)
    network, optimizer = build_seeded_network(model, data), model.training.optimizer.build()
    values = _time_steps(model, data, network, num_steps, optimizer)
    with tempfile.TemporaryDirectory() as folder:
        saving = save_seconds(network.variables, optimizer.variables, Path(folder))
    return values | {
        "save_seconds": saving,
        "steps_per_epoch": model.num_steps_per_epoch(data),
        "validation_users": len(split.validation) if model.training.early_stopping else 0,
    }


def measure_encoder(model: Trained, split: Split, num_steps: int) -> Measurement:
    """Time steps with a loss that does not use the item table: the cost of the network alone."""
    data = model.training_data(split)
    if sequence_length(model) is None:
        return {}

    def objective(network: Network, batch: Batch, seed: Tensor) -> Tensor:
        return tf.reduce_mean(tf.square(network.target_states(batch, seed)))

    values = _time_steps(model, data, build_seeded_network(model, data), num_steps, objective=objective)
    return {"encoder_seconds": values["step_seconds"]}


def measure_size(model: Trained, size: Size, num_steps: int) -> Measurement:
    """Time steps of a model at one size of a sweep, on random sequences."""
    model, data = size.apply(model)
    return {"step_seconds": _time_steps(model, data, build_seeded_network(model, data), num_steps)["step_seconds"]}


def _time_steps(
    model: Trained,
    data: Interactions,
    network: Network,
    num_steps: int,
    optimizer: keras.optimizers.Optimizer | None = None,
    objective: Objective | None = None,
) -> Measurement:
    """Return the median seconds of a step and of waiting for its batch, the first ones, and targets per second."""
    started = time.monotonic()
    batches = make_batches(data, model.model.examples(), model.batch_settings, 1)
    stream = iter(batches)
    batch = next(stream)
    first_batch = time.monotonic() - started
    objective = objective or make_objective(model.loss, model.negatives, data)
    optimizer = optimizer or model.training.optimizer.build()
    step = make_step(network, objective, optimizer, 1, batches.element_spec, model.is_step_compiled(data))
    waits: list[float] = []
    steps: list[float] = []
    num_targets: list[int] = []
    while not is_measured(steps, num_steps):
        started = time.monotonic()
        batch = next(stream)
        waits.append(time.monotonic() - started)
        float(step(batch, tf.constant(len(steps), tf.int64)))
        steps.append(time.monotonic() - started - waits[-1])
        num_targets.append(int(tf.reduce_sum(tf.cast(batch.targets >= 0, tf.int32))))
    seconds = float(np.median(steps[WARM_UP_STEPS:]))
    return {
        "step_seconds": seconds,
        "input_seconds": float(np.median(waits[WARM_UP_STEPS:])),
        "first_batch_seconds": first_batch,
        "first_step_seconds": steps[0],
        "tokens_per_second": float(np.mean(num_targets[WARM_UP_STEPS:])) / seconds,
    }


def measure_naive_step(model: Trained, split: Split, num_steps: int) -> Measurement:
    """Time naive training steps, half as many; empty for user-item pairs and if they need too much memory."""
    data, length = model.training_data(split), sequence_length(model)
    if length is None or exceeds_memory(model, data):
        return {}
    network, optimizer = build_seeded_network(model, data), model.training.optimizer.build()
    settings = replace(model.training.batch_settings, layout=STATIC)
    batches = make_batches(data, model.model.examples(), settings, 1)
    step = make_naive_step(network, model.loss, data.num_items, optimizer)
    seconds = []
    for number, batch in zip(range(max(3, num_steps // 2) + 1), batches, strict=False):
        inputs, targets = pad_batch(batch, length)
        started = time.monotonic()
        float(step(inputs, targets, tf.constant(number, tf.int64)))
        seconds.append(time.monotonic() - started)
    return {"naive_step_seconds": float(np.median(seconds[1:]))}
