"""Sum of a sampled loss over targets that each have their own candidates, for GPUs and XLA.

A sampled loss depends only on how often each item was sampled. Negatives become a matrix of integer counts, targets by
items, and the loss and its gradients are dense products and elementwise operations: no scatter of floats, which a GPU
would run in any order or, when operations have to be deterministic, one by one.
"""

from __future__ import annotations

from collections.abc import Callable

import tensorflow as tf

from aprec_like.losses.base import SampledLoss
from aprec_like.losses.chunks import chunk_elements
from aprec_like.types import Tensor

Gradients = tuple[Tensor, Tensor, Tensor]
"""Gradients of states, table and logit bias."""


def counted_loss_sum(
    loss: SampledLoss, states: Tensor, table: Tensor, bias: Tensor, candidates: Tensor, weights: Tensor, num_items: int
) -> Tensor:
    """Return the weighted sum of the losses; the arguments are those of `sampled_loss_sum`, with static shapes."""
    num_targets = states.shape[0]
    size = -(-num_targets // num_chunks(num_targets, table.shape[0]))

    @tf.custom_gradient
    def total(states: Tensor, table: Tensor, bias: Tensor) -> tuple[Tensor, Callable[[Tensor], Gradients]]:
        value, grad_table, grad_bias = tf.zeros([]), tf.zeros_like(table), tf.zeros([])
        grad_states = []
        for start in range(0, num_targets, size):
            chunk = slice(start, min(start + size, num_targets))
            inputs = (states[chunk], table, bias)
            with tf.GradientTape() as tape:
                tape.watch(inputs)
                chunk_value = _chunk_loss(loss, *inputs, candidates[chunk], weights[chunk], num_items)
            chunk_grad_states, chunk_grad_table, chunk_grad_bias = tape.gradient(chunk_value, inputs)
            value += chunk_value
            grad_table += chunk_grad_table
            grad_bias += chunk_grad_bias
            grad_states.append(chunk_grad_states)

        def backward(upstream: Tensor) -> Gradients:
            return upstream * tf.concat(grad_states, axis=0), upstream * grad_table, upstream * grad_bias

        return value, backward

    return total(states, table, bias)


def num_chunks(num_targets: int, num_rows: int) -> int:
    """Return the number of chunks of targets whose logits and counts are held one after the other."""
    return -(-num_targets * num_rows // chunk_elements())


def _chunk_loss(
    loss: SampledLoss, states: Tensor, table: Tensor, bias: Tensor, candidates: Tensor, weights: Tensor, num_items: int
) -> Tensor:
    num_targets, num_rows = states.shape[0], table.shape[0]
    logits = tf.matmul(states, table, transpose_b=True) + bias
    is_positive = candidates[:, :1] == tf.range(num_rows, dtype=candidates.dtype)
    positive_logits = tf.reduce_sum(tf.where(is_positive, logits, 0.0), axis=1)
    cells = tf.range(num_targets, dtype=candidates.dtype)[:, None] * num_rows + candidates[:, 1:]
    # TensorFlow sums int32 on a GPU but not int64, and reshapes int32 on the host.
    counts = tf.math.unsorted_segment_sum(tf.ones_like(cells, tf.int32), cells, num_targets * num_rows)
    counts = tf.reshape(tf.cast(counts, logits.dtype), [num_targets, num_rows])
    return tf.reduce_sum(weights * loss(positive_logits, logits, num_items, counts))
