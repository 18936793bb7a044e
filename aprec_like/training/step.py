"""The training step as a function of a batch, and several steps in one call."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import nullcontext
from typing import Any

import tensorflow as tf

from aprec_like.batches.layouts import AnyBatch, Batch, PackedBatch, cast_batch
from aprec_like.devices import batch_device, has_gpu
from aprec_like.gathers import slices_as_gradients
from aprec_like.models import Network
from aprec_like.optimizers import LazyAdam
from aprec_like.training.objective import Objective
from aprec_like.types import Tensor

Step = Callable[[AnyBatch, Tensor], Tensor]
"""Function of a batch and the number of the step that does one optimisation step and returns the loss."""

Steps = Callable[[Tensor, Tensor, Tensor], Tensor]
"""Function of the number of the first step, the number of steps, and a sum of losses, to which it adds theirs."""


def make_step(
    network: Network, objective: Objective, optimizer: Any, seed: int, batch_spec: AnyBatch, jit_compile: bool = False
) -> Step:
    """Return a compiled function of a batch and the number of the step that updates the weights and returns the loss.

    It is traced once, for all batches of the shapes in `batch_spec` (the `element_spec` of the dataset of batches).
    Everything random in it is a function of `seed` and the number of the step. In the scope of a `tf.distribute`
    strategy every replica computes its part of the batch, the gradients are added up, and the step is that of one
    device but for the order of sums.
    """
    variables = network.trainable_variables
    optimizer.build(variables)
    is_lazy, strategy = isinstance(optimizer, LazyAdam), tf.distribute.get_strategy()

    def gradients_of(batch: Batch, step_number: Tensor) -> tuple[Tensor, list[Any]]:
        if has_gpu() and jit_compile:  # XLA has int32 on the device too
            batch = cast_batch(batch, tf.int32)
        with tf.GradientTape() as tape, slices_as_gradients() if is_lazy else nullcontext():
            loss = objective(network, batch, tf.stack([tf.constant(seed, tf.int64), step_number]))
        weights = [variable.value for variable in variables]
        gradients = tape.gradient(loss, weights, unconnected_gradients=tf.UnconnectedGradients.ZERO)
        if not is_lazy:
            # As in the originals, gradients are dense: rows without a gradient still move by their momentum.
            gradients = [tf.convert_to_tensor(gradient) for gradient in gradients]
        return loss, gradients

    def update(batch: Batch, step_number: Tensor) -> Tensor:
        loss, gradients = gradients_of(batch, step_number)
        optimizer.apply(gradients, variables)
        return loss

    def update_replica(batch: Batch, step_number: Tensor) -> Tensor:
        # XLA can't compile the sum of gradients over replicas, which is a part of `apply`; a function for each replica.
        compute = tf.function(gradients_of, jit_compile=True) if jit_compile else gradients_of
        loss, gradients = compute(batch, step_number)
        optimizer.apply(gradients, variables)
        return loss

    def update_replicas(batch: Batch, step_number: Tensor) -> Tensor:
        losses = strategy.run(update_replica, args=(batch, step_number))
        return strategy.reduce(tf.distribute.ReduceOp.SUM, losses, axis=None)

    def compiled(spec: Batch) -> Step:
        signature = [spec, tf.TensorSpec([], tf.int64)]
        if strategy.num_replicas_in_sync > 1:
            return tf.function(update_replicas, input_signature=signature)
        return tf.function(update, jit_compile=jit_compile, input_signature=signature)

    if not isinstance(batch_spec, PackedBatch):
        return compiled(batch_spec)
    packed_step, unpacked_step = compiled(batch_spec.packed), compiled(batch_spec.unpacked)

    @tf.function(input_signature=[batch_spec, tf.TensorSpec([], tf.int64)])
    def step(batch: PackedBatch, step_number: Tensor) -> Tensor:
        return tf.cond(
            batch.fits > 0,
            lambda: packed_step(batch.packed, step_number),
            lambda: unpacked_step(batch.unpacked, step_number),
        )

    return step


def make_steps(step: Step, batches: tf.data.Dataset) -> Steps:
    """Return a compiled function that does several steps in one call, each with the next batch.

    Between them nothing waits for Python. A batch is taken, and on a GPU copied to it, while the step before computes.
    """
    number, total = tf.TensorSpec([], tf.int64), tf.TensorSpec([], tf.float32)
    iterator_spec = tf.data.IteratorSpec(batches.element_spec)

    @tf.function(input_signature=[iterator_spec, batches.element_spec, number, number, total])
    def steps(
        iterator: Any, batch: AnyBatch, first: Tensor, num_steps: Tensor, total: Tensor
    ) -> tuple[Tensor, AnyBatch]:
        def is_left(step_number: Tensor, total: Tensor, batch: AnyBatch) -> Tensor:
            return step_number < first + num_steps

        def next_step(step_number: Tensor, total: Tensor, batch: AnyBatch) -> tuple[Tensor, Tensor, AnyBatch]:
            return step_number + 1, total + step(batch, step_number), _copy_to_gpu(iterator.get_next())

        # One iteration at a time: a second one would hold its own negatives in memory.
        _, total, batch = tf.while_loop(is_left, next_step, (first, total, batch), parallel_iterations=1)
        return total, batch

    # The iterator is an argument: a captured one is left to the garbage collector, which deadlocks with its threads.
    iterator = iter(batches)
    batch: AnyBatch | None = None

    def run_steps(first: Tensor, num_steps: Tensor, total: Tensor) -> Tensor:
        nonlocal batch
        total, batch = steps(iterator, next(iterator) if batch is None else batch, first, num_steps, total)
        return total

    return run_steps


def _copy_to_gpu(batch: AnyBatch) -> AnyBatch:
    """Copy the arrays of a batch to the GPU, if there is one; the choice of its layout stays on the host, as int32."""
    device = batch_device()
    if device is None:
        return batch
    with tf.device(device):
        return tf.nest.map_structure(lambda part: tf.identity(part) if part.dtype == tf.int64 else part, batch)
