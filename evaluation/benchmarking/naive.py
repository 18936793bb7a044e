"""Straightforward training step and ranking that give the same numbers as the fast code, as a reference.

Tests compare values and gradients with it; `python -m evaluation.benchmark` compares speed and memory.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

import keras
import numpy as np
import tensorflow as tf

from aprec_like.batches.layouts import Batch
from aprec_like.interactions import PADDING
from aprec_like.losses import FullLoss, SampledLoss
from aprec_like.models import Network
from aprec_like.types import Array, Tensor


def pad_batch(batch: Batch, length: int) -> tuple[Tensor, Tensor]:
    """Return the inputs and targets of all buckets of a batch, both padded on the left to (batch, length)."""
    inputs, targets, start = [], [], 0
    flat = tf.fill([sum(bucket.inputs.shape[0] * bucket.inputs.shape[1] for bucket in batch.buckets)], PADDING)
    flat = tf.tensor_scatter_nd_update(flat, batch.flat_positions[:, None], tf.cast(batch.targets, tf.int32))
    for bucket in batch.buckets:
        rows, width = bucket.inputs.shape
        paddings = [[0, 0], [length - width, 0]]
        inputs.append(tf.pad(bucket.inputs, paddings, constant_values=PADDING))
        bucket_targets = tf.reshape(flat[start : start + rows * width], [rows, width])
        targets.append(tf.pad(bucket_targets, paddings, constant_values=PADDING))
        start += rows * width
    return tf.concat(inputs, axis=0), tf.concat(targets, axis=0)


def naive_loss(
    network: Network,
    loss: SampledLoss | FullLoss,
    inputs: Tensor,
    targets: Tensor,
    negatives: Tensor | None,
    dropout_seed: Tensor | None = None,
) -> Tensor:
    """Return the mean loss over real positions; gathers all k + 1 rows for every position, padding included.

    Args:
        network: any network.
        loss: any loss.
        inputs: items, (batch, length).
        targets: items, (batch, length), PADDING where there is none.
        negatives: items, (batch, length, k); `None` for a full loss.
        dropout_seed: (2,) integers; `None` for no dropout.
    """
    states = network.project(network(inputs, dropout_seed))
    is_target = targets != PADDING
    known = tf.where(is_target, targets, 0)
    table = network.item_table
    if isinstance(loss, SampledLoss):
        rows = tf.gather(table, tf.concat([known[..., None], negatives], axis=-1))
        logits = tf.einsum("bld,blcd->blc", states, rows)
        logits = logits if network.logit_bias is None else logits + network.logit_bias
        losses = loss(logits[..., 0], logits[..., 1:], table.shape[0])
    else:
        logits = tf.einsum("bld,id->bli", states, table)
        losses = tf.nn.sparse_softmax_cross_entropy_with_logits(known, logits)
    weights = tf.cast(is_target, losses.dtype)
    return tf.reduce_sum(losses * weights) / tf.reduce_sum(weights)


def sample_negatives(loss: SampledLoss | FullLoss, shape: Sequence[int], num_items: int, seed: Tensor) -> Tensor | None:
    """Sample uniform negatives, (*shape, k); `None` for a full loss."""
    if not isinstance(loss, SampledLoss):
        return None
    return tf.random.stateless_uniform([*shape, loss.num_negatives], seed, maxval=num_items, dtype=tf.int32)


def naive_batch_loss(network: Network, loss: SampledLoss | FullLoss, batch: Batch, length: int, seed: Tensor) -> Tensor:
    """Return the mean loss of a batch of static shape, with uniform negatives sampled from `seed`."""
    inputs, targets = pad_batch(batch, length)
    negatives = sample_negatives(loss, inputs.shape, network.num_items, seed)
    return naive_loss(network, loss, inputs, targets, negatives, seed)


def make_naive_step(
    network: Network, loss: SampledLoss | FullLoss, num_items: int, optimizer: keras.optimizers.Optimizer
) -> Callable[[Tensor, Tensor, Tensor], Tensor]:
    """Compile a training step with uniform negatives and dense gradients.

    The step takes (batch, length) inputs and targets and the step number, and returns the loss.
    """
    variables = network.trainable_variables
    optimizer.build(variables)

    @tf.function
    def step(inputs: Tensor, targets: Tensor, number: Tensor) -> Tensor:
        seed = tf.stack([tf.constant(1, tf.int64), number])
        negatives = sample_negatives(loss, inputs.shape, num_items, seed)
        with tf.GradientTape() as tape:
            value = naive_loss(network, loss, inputs, targets, negatives, seed)
        weights = [variable.value for variable in variables]
        gradients = tape.gradient(value, weights, unconnected_gradients=tf.UnconnectedGradients.ZERO)
        optimizer.apply([tf.convert_to_tensor(gradient) for gradient in gradients], variables)
        return value

    return step


def naive_ranks(network: Network, inputs: Array, seen: Sequence[Array], targets: Array) -> Array:
    """Return the ranks of the targets, (users,): states of all positions, scores of all items, a full sort.

    Args:
        network: any network.
        inputs: histories, (users, length).
        seen: items to exclude, one array per user.
        targets: items, (users,).
    """
    states = network.project(network(tf.constant(inputs)))[:, -1]
    scores = tf.matmul(states, network.item_table, transpose_b=True).numpy()
    for row, items in enumerate(seen):
        scores[row, items] = -np.inf
    order = np.argsort(-scores, axis=1, kind="stable")
    return 1 + np.argmax(order == targets[:, None], axis=1)
