"""Measures the output layer of a training step: negatives, logits, loss and their gradients, without the network."""

from __future__ import annotations

import time
from dataclasses import replace
from typing import Any, cast

import numpy as np
import tensorflow as tf

from aprec_like.batches import make_batches
from aprec_like.batches.layouts import STATIC, Batch
from aprec_like.devices import has_gpu
from aprec_like.models import Network
from aprec_like.recipe import Trained
from aprec_like.splits import Split
from aprec_like.training.objective import make_objective
from aprec_like.types import Tensor
from evaluation.benchmarking.naive import naive_batch_loss
from evaluation.benchmarking.setup import (
    WARM_UP_STEPS,
    Measurement,
    build_seeded_network,
    exceeds_memory,
    is_measured,
    sequence_length,
)


class FixedStates:
    """Stands in for a network: fixed states with a trainable scale, and the item tables of a real network."""

    def __init__(self, network: Network, num_states: int) -> None:
        dim = network.score_table.shape[1]
        self._network = network
        self._states = tf.random.stateless_normal([num_states, dim], [1, 2])
        self._scale = tf.Variable(tf.ones([dim]))
        self.variables = [self._scale, *(variable.value for variable in network.trainable_variables)]

    def __getattr__(self, name: str) -> Any:
        return getattr(self._network, name)

    def __call__(self, inputs: Tensor, dropout_seed: Tensor | None = None) -> Tensor:
        """Return states of all positions, (batch, length, dim)."""
        return tf.reshape(self._states[: inputs.shape[0] * inputs.shape[1]], [*inputs.shape, -1]) * self._scale

    def target_states(self, batch: Batch, dropout_seed: Tensor | None = None) -> Tensor:
        """Return states of the targets, (targets, dim)."""
        return self._states[: tf.shape(batch.targets)[0]] * self._scale

    def project(self, states: Tensor) -> Tensor:
        """Return the states unchanged."""
        return states


def measure_output(model: Trained, split: Split, num_steps: int, is_naive: bool = False) -> Measurement:
    """Time the output layer; the naive code computes it at all positions, padding included.

    Empty for user-item pairs, for negatives shared by a sequence, and if the naive code needs too much memory.
    """
    data, length = model.training_data(split), sequence_length(model)
    if length is None or model.negatives.shared_by == "sequence" or (is_naive and exceeds_memory(model, data)):
        return {}
    fixed = FixedStates(build_seeded_network(model, data), model.training.batch_size * length)
    network = cast("Network", fixed)
    objective = make_objective(model.loss, model.negatives, data)
    settings = replace(model.training.batch_settings, layout=STATIC if is_naive or has_gpu() else None)
    batches = make_batches(data, model.model.examples(), settings, 1)

    @tf.function(input_signature=[batches.element_spec, tf.TensorSpec([], tf.int64)])
    def gradients(batch: Batch, number: Tensor) -> list[Tensor]:
        seed = tf.stack([tf.constant(1, tf.int64), number])
        with tf.GradientTape() as tape:
            if is_naive:
                loss = naive_batch_loss(network, model.loss, batch, length, seed)
            else:
                loss = objective(network, batch, seed)
        grads = tape.gradient(loss, fixed.variables, unconnected_gradients=tf.UnconnectedGradients.ZERO)
        return [tf.convert_to_tensor(grad) for grad in grads]

    seconds: list[float] = []
    stream = iter(batches)
    while not is_measured(seconds, num_steps):
        batch = next(stream)
        started = time.monotonic()
        float(tf.reduce_sum(gradients(batch, tf.constant(len(seconds), tf.int64))[0]))
        seconds.append(time.monotonic() - started)
    return {"naive_output_seconds" if is_naive else "output_seconds": float(np.median(seconds[WARM_UP_STEPS:]))}


def measure_naive_output(model: Trained, split: Split, num_steps: int) -> Measurement:
    """Time the output layer of the naive code, in half as many steps."""
    return measure_output(model, split, max(3, num_steps // 2), is_naive=True)
