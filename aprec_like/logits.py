"""The loss of states against candidates of their own, without ever holding all logits.

Every target has its own candidates, and there are many: gathering their rows moves dim numbers for each. For a small
catalogue it is cheaper to compute the logits of all items by a matrix product and to pick; for a large one rows are
gathered. Either way targets go in chunks that stay in the processor's cache, and the gradient is made in the same pass,
so that neither logits nor rows are kept or made twice.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import tensorflow as tf

from aprec_like.batches import Tensor
from aprec_like.losses import SampledLoss

MAX_GEMM_ITEMS_PER_CANDIDATE = 100
"""Up to this many items per candidate all logits are computed. A guess: only a ratio of 16 was timed, 3x faster."""

CHUNK_LOGITS = 1 << 23
"""How many logits of all items are held at once."""

CHUNK_GATHERED = 1 << 23
"""How many numbers of gathered rows are held at once."""


def own_losses(
    loss: SampledLoss,
    states: Tensor,
    item_table: Tensor,
    candidates: Tensor,
    weights: Tensor,
    offset: Tensor | None = None,
) -> Tensor:
    """The sum of the losses of (n, dim) states against (n, 1 + k) candidates, the positive first, by (n,) weights."""
    num_items = item_table.shape[0]
    num_candidates, dim = candidates.shape[1], item_table.shape[1]
    if uses_all_logits(num_items, num_candidates):
        chunk, pick = max(1, CHUNK_LOGITS // num_items), _pick_products
    else:
        chunk, pick = max(1, CHUNK_GATHERED // (num_candidates * dim)), _pick_gathered

    def formula(logits: Tensor, shift: Tensor, of_chunk: Tensor) -> Tensor:
        shifted = logits + shift
        return tf.reduce_sum(of_chunk * loss(shifted[:, 0], shifted[:, 1:], num_items))

    @tf.custom_gradient
    def total(states: Tensor, table: Tensor, shift: Tensor) -> tuple[Tensor, Callable[[Tensor], Any]]:
        value, of_states, of_table, of_shift = _accumulate(
            formula, pick, chunk, states, table, shift, candidates, weights
        )
        return value, lambda upstream: (upstream * of_states, upstream * of_table, upstream * of_shift)

    return total(states, item_table, tf.zeros([]) if offset is None else tf.convert_to_tensor(offset))


def uses_all_logits(num_items: int, num_candidates: int) -> bool:
    """Whether the logits of all items are cheaper than gathering the rows of this many candidates per target."""
    return num_items <= MAX_GEMM_ITEMS_PER_CANDIDATE * num_candidates


def _accumulate(
    formula: Callable[..., Tensor],
    pick: Callable[..., Any],
    most: int,
    states: Tensor,
    table: Tensor,
    shift: Tensor,
    candidates: Tensor,
    weights: Tensor,
) -> tuple[Tensor, Tensor, Tensor, Tensor]:
    """The weighted loss and its gradients, in equal chunks of at most `most` targets, filled up with weightless ones.

    The size of a chunk is static where the number of targets is.
    """
    count, dim = states.shape[0] or tf.shape(states)[0], states.shape[1]
    num_chunks = (count + most - 1) // most
    size = (count + num_chunks - 1) // num_chunks
    missing = num_chunks * size - count
    inputs = [tf.pad(values, [[0, missing], *[[0, 0]] * (len(values.shape) - 1)]) for values in (states, candidates)]
    weights = tf.pad(weights, [[0, missing]])
    parts = tf.TensorArray(states.dtype, num_chunks, element_shape=[states.shape[0] and size, dim])

    def body(number: Tensor, value: Tensor, of_table: Tensor, of_shift: Tensor, parts: Any) -> tuple[Any, ...]:
        some_states, some = (tf.slice(values, [number * size, 0], [size, values.shape[1]]) for values in inputs)
        logits, backward = pick(some_states, table, some)
        with tf.GradientTape() as tape:
            tape.watch(logits)
            of_chunk = formula(logits, shift, tf.slice(weights, [number * size], [size]))
        gradient = tape.gradient(of_chunk, logits)
        states_gradient, table_gradient = backward(gradient)
        return (
            number + 1,
            value + of_chunk,
            of_table + table_gradient,
            of_shift + tf.reduce_sum(gradient),
            parts.write(number, states_gradient),
        )

    zero = tf.zeros([], states.dtype)
    start = (tf.constant(0), zero, tf.zeros_like(table), zero, parts)
    _, value, of_table, of_shift, parts = tf.while_loop(
        lambda number, *_: number < num_chunks, body, start, parallel_iterations=1
    )
    return value, tf.reshape(parts.stack(), [-1, dim])[:count], of_table, of_shift


def _pick_products(states: Tensor, table: Tensor, candidates: Tensor) -> tuple[Tensor, Callable[[Tensor], Any]]:
    """(n, c) logits picked from those of all items, and the gradients of states and table."""
    logits = tf.matmul(states, table, transpose_b=True)
    count, num_items = tf.shape(states)[0], table.shape[0]
    places = tf.range(count)[:, None] * num_items + candidates

    def backward(gradient: Tensor) -> tuple[Tensor, Tensor]:
        flat = tf.math.unsorted_segment_sum(tf.reshape(gradient, [-1]), tf.reshape(places, [-1]), count * num_items)
        of_logits = tf.reshape(flat, [count, num_items])
        return tf.matmul(of_logits, table), tf.matmul(of_logits, states, transpose_a=True)

    return tf.gather(tf.reshape(logits, [-1]), places), backward


def _pick_gathered(states: Tensor, table: Tensor, candidates: Tensor) -> tuple[Tensor, Callable[[Tensor], Any]]:
    """The same from gathered rows."""
    rows = tf.gather(table, candidates)

    def backward(gradient: Tensor) -> tuple[Tensor, Tensor]:
        of_rows = tf.reshape(gradient[:, :, None] * states[:, None, :], [-1, states.shape[1]])
        of_table = tf.math.unsorted_segment_sum(of_rows, tf.reshape(candidates, [-1]), table.shape[0])
        return tf.linalg.matvec(rows, gradient, transpose_a=True), of_table

    return tf.linalg.matvec(rows, states), backward
