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
from aprec_like.chunks import chunk_numbers, has_gpu
from aprec_like.losses import SampledLoss

MAX_GEMM_ITEMS_PER_CANDIDATE = 40
"""Up to this many items per candidate all logits are computed. On two CPU cores both ways took the same time at 50 of
them (256 negatives, 128 dimensions) and at 35 (64 and 64)."""

MAX_CHUNK_TARGETS = 1024
"""Targets of a chunk at the most: chunks have one size, the last is filled up, and that is waste in small batches."""

Gradients = Callable[[Tensor], tuple[Tensor, Tensor]]
"""From (n, c) gradients of logits to those of states, and to what the chunk keeps for the table's gradient."""


def own_losses(
    loss: SampledLoss,
    states: Tensor,
    table: Tensor,
    candidates: Tensor,
    weights: Tensor,
    num_items: int,
    offset: Tensor | None = None,
) -> Tensor:
    """The sum of the losses of states against candidates of their own, each times its weight.

    Args:
        loss: over the positive and the drawn items.
        states: (n, dim).
        table: (rows, dim) the row of each item; more rows may follow.
        candidates: (n, 1 + k) the positive first.
        weights: (n,).
        num_items: size of the catalogue.
        offset: a number that is added to every logit.
    """

    def formula(logits: Tensor, shift: Tensor, of_chunk: Tensor) -> Tensor:
        shifted = logits + shift
        return tf.reduce_sum(of_chunk * loss(shifted[:, 0], shifted[:, 1:], num_items))

    accumulate = _from_products if uses_all_logits(num_items, candidates.shape[1]) else _from_gathered_rows

    @tf.custom_gradient
    def total(states: Tensor, table: Tensor, shift: Tensor) -> tuple[Tensor, Callable[[Tensor], Any]]:
        value, *gradients = accumulate(formula, states, table, shift, candidates, weights)
        return value, lambda upstream: tuple(upstream * gradient for gradient in gradients)

    return total(states, table, tf.zeros([]) if offset is None else tf.convert_to_tensor(offset))


def uses_all_logits(num_items: int, num_candidates: int) -> bool:
    """Whether the logits of all items are cheaper than gathering the rows of this many candidates per target."""
    return num_items <= MAX_GEMM_ITEMS_PER_CANDIDATE * num_candidates


def _from_products(
    formula: Callable[..., Tensor], states: Tensor, table: Tensor, shift: Tensor, candidates: Tensor, weights: Tensor
) -> tuple[Tensor, Tensor, Tensor, Tensor]:
    """The weighted loss and its gradients by states, table and shift: logits of all items, the candidates' picked."""
    size, num_rows = _chunk_size(table.shape[0]), table.shape[0]
    starts = tf.range(size)[:, None] * num_rows

    def forward(some: Tensor, their_candidates: Tensor) -> tuple[Tensor, Gradients]:
        places = starts + their_candidates
        products = tf.matmul(some, table, transpose_b=True)

        def backward(gradient: Tensor) -> tuple[Tensor, Tensor]:
            of_products = _put(gradient, places, [size, num_rows])
            return tf.matmul(of_products, table), tf.matmul(of_products, some, transpose_a=True)

        return _pick(products, places), backward

    value, of_shift, of_states, of_table = _accumulate(
        formula,
        forward,
        size,
        states,
        candidates,
        weights,
        shift,
        tf.zeros_like(table),
        lambda kept, _, new: kept + new,
    )
    return value, of_states, of_table, of_shift


# TensorFlow's own operations move single numbers several times more slowly than a compiled loop.
@tf.function(jit_compile=True)
def _pick(values: Tensor, places: Tensor) -> Tensor:
    return tf.gather(tf.reshape(values, [-1]), places)


@tf.function(jit_compile=True)
def _put(values: Tensor, places: Tensor, shape: list[int]) -> Tensor:
    """A tensor of this shape with the sum of the values of every place, 0 elsewhere."""
    flat = tf.math.unsorted_segment_sum(tf.reshape(values, [-1]), tf.reshape(places, [-1]), shape[0] * shape[1])
    return tf.reshape(flat, shape)


def _from_gathered_rows(
    formula: Callable[..., Tensor], states: Tensor, table: Tensor, shift: Tensor, candidates: Tensor, weights: Tensor
) -> tuple[Tensor, Tensor, Tensor, Tensor]:
    """The same from the candidates' rows; the table's gradient, as large as the table, is made once for all chunks."""
    num_candidates, dim = candidates.shape[1], table.shape[1]
    size = _chunk_size(num_candidates * dim)

    def forward(some: Tensor, their_candidates: Tensor) -> tuple[Tensor, Gradients]:
        rows = tf.gather(table, their_candidates)
        return tf.linalg.matvec(rows, some), lambda gradient: (
            tf.linalg.matvec(rows, gradient, transpose_a=True),
            gradient,
        )

    empty = tf.TensorArray(states.dtype, 0, dynamic_size=True, element_shape=[size, num_candidates])
    value, of_shift, of_states, of_logits = _accumulate(
        formula,
        forward,
        size,
        states,
        candidates,
        weights,
        shift,
        empty,
        lambda kept, number, new: kept.write(number, new),
    )
    of_logits = tf.reshape(of_logits.stack(), [-1, num_candidates])[: tf.shape(states)[0]]
    return value, of_states, _outer_sums(of_logits, states, candidates, table.shape[0]), of_shift


def _outer_sums(factors: Tensor, states: Tensor, rows: Tensor, num_rows: int) -> Tensor:
    """(num_rows, dim) with factors[i, j] * states[i] added to row rows[i, j], for all i and j."""
    if states.shape[0] is not None or has_gpu():
        # XLA has no sparse product, and a GPU none that is deterministic.
        products = tf.reshape(factors[:, :, None] * states[:, None, :], [-1, states.shape[1]])
        return tf.math.unsorted_segment_sum(products, tf.reshape(rows, [-1]), num_rows)
    count, each = tf.shape(rows, tf.int64)[0], rows.shape[1]
    places = tf.stack([tf.cast(tf.reshape(rows, [-1]), tf.int64), tf.repeat(tf.range(count), each)], axis=1)
    sums = tf.SparseTensor(places, tf.reshape(factors, [-1]), tf.stack([tf.constant(num_rows, tf.int64), count]))
    return tf.sparse.sparse_dense_matmul(sums, states)


def _chunk_size(numbers_per_target: int) -> int:
    return max(1, min(MAX_CHUNK_TARGETS, chunk_numbers() // numbers_per_target))


def _accumulate(
    formula: Callable[..., Tensor],
    forward: Callable[..., tuple[Tensor, Gradients]],
    size: int,
    states: Tensor,
    candidates: Tensor,
    weights: Tensor,
    shift: Tensor,
    nothing: Any,
    keep: Callable[[Any, Tensor, Tensor], Any],
) -> tuple[Tensor, Tensor, Tensor, Any]:
    """The loss, its gradients by shift and by states, and what was kept of the table's, chunk by chunk.

    All chunks have `size` targets, so that what is compiled for one serves all; the last is filled up with weightless
    ones.
    """
    count, dim = states.shape[0] or tf.shape(states)[0], states.shape[1]
    num_chunks = (count + size - 1) // size
    missing = num_chunks * size - count
    states, candidates, weights = (
        tf.pad(values, [[0, missing], *[[0, 0]] * (len(values.shape) - 1)]) for values in (states, candidates, weights)
    )

    def chunk(values: Tensor, number: Tensor) -> Tensor:
        shape = [size, *values.shape[1:]]
        return tf.slice(values, [number * size, *[0] * (len(shape) - 1)], shape)

    def body(number: Tensor, value: Tensor, of_shift: Tensor, parts: Any, kept: Any) -> tuple[Any, ...]:
        logits, backward = forward(chunk(states, number), chunk(candidates, number))
        with tf.GradientTape() as tape:
            tape.watch(logits)
            of_chunk = formula(logits, shift, chunk(weights, number))
        gradient = tape.gradient(of_chunk, logits)
        of_states, of_table = backward(gradient)
        parts, kept = parts.write(number, of_states), keep(kept, number, of_table)
        return number + 1, value + of_chunk, of_shift + tf.reduce_sum(gradient), parts, kept

    zero = tf.zeros([], states.dtype)
    parts = tf.TensorArray(states.dtype, num_chunks, element_shape=[size, dim])
    _, value, of_shift, parts, kept = tf.while_loop(
        lambda number, *_: number < num_chunks,
        body,
        (tf.constant(0), zero, zero, parts, nothing),
        parallel_iterations=1,
    )
    return value, of_shift, tf.reshape(parts.stack(), [-1, dim])[:count], kept
