"""The plainest training step and the plainest ranking that give the same numbers: what the fast ones are held against.

Used by tests and by `python -m evaluation.benchmark`, and by nothing else.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import tensorflow as tf

from aprec_like.batches import Batch
from aprec_like.interactions import PADDING
from aprec_like.losses import FullLoss, SampledLoss
from aprec_like.models import Network
from aprec_like.types import Array, Tensor


def padded(batch: Batch, length: int) -> tuple[Tensor, Tensor]:
    """(batch, length) inputs and targets of a batch's pieces, as if it had never been cut."""
    inputs, targets, start = [], [], 0
    flat = tf.zeros([sum(piece.inputs.shape[0] * piece.inputs.shape[1] for piece in batch.pieces)], tf.int32) + PADDING
    flat = tf.tensor_scatter_nd_update(flat, batch.places[:, None], tf.cast(batch.targets, tf.int32))
    for piece in batch.pieces:
        rows, width = piece.inputs.shape
        fill = [[0, 0], [length - width, 0]]
        inputs.append(tf.pad(piece.inputs, fill, constant_values=PADDING))
        own = tf.reshape(flat[start : start + rows * width], [rows, width])
        targets.append(tf.pad(own, fill, constant_values=PADDING))
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
    """The mean loss over real positions: all k + 1 rows gathered for every padded position."""
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


def drawn_negatives(loss: SampledLoss | FullLoss, shape: Sequence[int], num_items: int, seed: Tensor) -> Tensor | None:
    """(*shape, k) uniform items, or `None` where the loss draws none."""
    if not isinstance(loss, SampledLoss):
        return None
    return tf.random.stateless_uniform([*shape, loss.num_negatives], seed, maxval=num_items, dtype=tf.int32)


def naive_loss_of_batch(
    network: Network, loss: SampledLoss | FullLoss, batch: Batch, length: int, seed: Tensor
) -> Tensor:
    """The mean loss of a batch of static shape, with fresh uniform negatives."""
    inputs, targets = padded(batch, length)
    return naive_loss(
        network, loss, inputs, targets, drawn_negatives(loss, inputs.shape, network.num_items, seed), seed
    )


def make_naive_step(
    network: Network, loss: SampledLoss | FullLoss, num_items: int, optimizer: Any
) -> Callable[[Tensor, Tensor, Tensor], Tensor]:
    """A compiled step on (batch, length) inputs and targets, fresh uniform negatives, dense gradients."""
    variables = network.trainable_variables
    optimizer.build(variables)

    @tf.function
    def step(inputs: Tensor, targets: Tensor, number: Tensor) -> Tensor:
        seed = tf.stack([tf.constant(1, tf.int64), number])
        negatives = drawn_negatives(loss, inputs.shape, num_items, seed)
        with tf.GradientTape() as tape:
            value = naive_loss(network, loss, inputs, targets, negatives, seed)
        weights = [variable.value for variable in variables]
        gradients = tape.gradient(value, weights, unconnected_gradients=tf.UnconnectedGradients.ZERO)
        optimizer.apply([tf.convert_to_tensor(gradient) for gradient in gradients], variables)
        return value

    return step


def naive_ranks(network: Network, inputs: Array, seen: Sequence[Array], targets: Array) -> Array:
    """(users,) ranks: all positions through all layers, all scores, a sort; `seen` is a list of items per user."""
    states = network.project(network(tf.constant(inputs)))[:, -1]
    scores = tf.matmul(states, network.item_table, transpose_b=True).numpy()
    for row, items in enumerate(seen):
        scores[row, items] = -np.inf
    order = np.argsort(-scores, axis=1, kind="stable")
    return 1 + np.argmax(order == targets[:, None], axis=1)
