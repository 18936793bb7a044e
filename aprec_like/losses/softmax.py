"""Softmax cross entropy over the whole catalogue, however large, without ever holding all logits."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import tensorflow as tf

from aprec_like.losses.base import FullLoss
from aprec_like.losses.chunks import after, chunk_numbers
from aprec_like.types import Tensor

MIN_CHUNK_ITEMS = 64
"""Items of a chunk at the least: thinner matrices multiply slowly."""


@dataclass(frozen=True)
class Softmax(FullLoss):
    """-log of the softmax probability of the target among all items: no sampling, no overconfidence, all logits.

    Items go in chunks: a first pass sums up the exponentials, and the gradient computes the logits again. So it needs
    one matrix product more than holding the logits would, and memory for one chunk of them, at any size of catalogue.
    """

    def __call__(self, states: Tensor, item_table: Tensor, targets: Tensor) -> Tensor:
        """The loss of every position."""
        flat_states = tf.reshape(states, [-1, states.shape[-1]])
        losses = _cross_entropy(flat_states, tf.convert_to_tensor(item_table), tf.reshape(targets, [-1]))
        return tf.reshape(losses, tf.shape(targets))


def _cross_entropy(states: Tensor, table: Tensor, targets: Tensor) -> Tensor:
    """(n,) losses of (n, dim) states and (n,) targets."""

    @tf.custom_gradient
    def losses(states: Tensor, table: Tensor) -> tuple[Tensor, Callable[[Tensor], Any]]:
        normalisers = _log_sum_exp(states, table)
        of_targets = tf.reduce_sum(states * tf.gather(table, targets), axis=1)

        def backward(upstream: Tensor) -> tuple[Tensor, Tensor]:
            of_states, of_table = _softmax_gradients(states, table, normalisers, upstream)
            of_states -= upstream[:, None] * tf.gather(table, targets)
            of_table = tf.tensor_scatter_nd_sub(of_table, targets[:, None], upstream[:, None] * states)
            return of_states, after(of_states, of_table)

        return normalisers - of_targets, backward

    return losses(states, table)


def _log_sum_exp(states: Tensor, table: Tensor) -> Tensor:
    """(n,) log of the sum of exp(logit) over all items."""
    chunk, num_whole, rest = _in_chunks(table, states)

    def add(total: Tensor, rows: Tensor) -> Tensor:
        of_chunk = tf.reduce_logsumexp(tf.matmul(states, rows, transpose_b=True), axis=1)
        larger, smaller = tf.maximum(total, of_chunk), tf.minimum(total, of_chunk)
        return larger + tf.math.log1p(tf.exp(smaller - larger))

    start = (tf.constant(0), tf.fill(tf.shape(states)[:1], states.dtype.min))
    _, total = tf.while_loop(
        lambda number, _: number < num_whole,
        lambda number, total: (number + 1, add(total, chunk(number))),
        start,
        parallel_iterations=1,
    )
    return add(total, rest)


def _softmax_gradients(states: Tensor, table: Tensor, normalisers: Tensor, upstream: Tensor) -> tuple[Tensor, Tensor]:
    """The gradients of upstream * log-sum-exp by states and table."""
    chunk, num_whole, rest = _in_chunks(table, states)

    def gradients(rows: Tensor) -> tuple[Tensor, Tensor]:
        logits = tf.matmul(states, rows, transpose_b=True)
        shares = tf.exp(logits - normalisers[:, None]) * upstream[:, None]
        return tf.matmul(shares, rows), tf.matmul(shares, states, transpose_a=True)

    def body(number: Tensor, of_states: Tensor, parts: Any) -> tuple[Any, ...]:
        more_of_states, of_rows = gradients(chunk(number))
        return number + 1, of_states + more_of_states, parts.write(number, of_rows)

    parts = tf.TensorArray(table.dtype, num_whole)
    start = (tf.constant(0), tf.zeros_like(states), parts)
    _, of_states, parts = tf.while_loop(lambda number, *_: number < num_whole, body, start, parallel_iterations=1)
    of_whole, (more_of_states, of_rest) = tf.reshape(parts.stack(), [-1, table.shape[1]]), gradients(rest)
    return of_states + more_of_states, tf.ensure_shape(tf.concat([of_whole, of_rest], axis=0), table.shape)


def _in_chunks(table: Tensor, states: Tensor) -> tuple[Callable[[Tensor], Tensor], Any, Tensor]:
    """A function that gives the rows of a whole chunk, the number of whole chunks, and the rows that are left.

    As many items go together as keep their logits small; known before the graph runs if the number of states is.
    """
    num_items, dim = table.shape
    if states.shape[0] is not None:
        size = min(num_items, max(MIN_CHUNK_ITEMS, chunk_numbers() // max(1, states.shape[0])))
    else:
        size = tf.minimum(num_items, tf.maximum(MIN_CHUNK_ITEMS, chunk_numbers() // tf.maximum(1, tf.shape(states)[0])))
    num_whole = num_items // size
    return lambda number: tf.slice(table, [number * size, 0], [size, dim]), num_whole, table[num_whole * size :]
