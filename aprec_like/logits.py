"""The loss of states against candidates of their own, without ever holding all logits.

Every target has its own candidates, and there are many: gathering their rows moves dim numbers for each. For a small
catalogue it is cheaper to compute the logits of all items by a matrix product and to pick; for a large one rows are
gathered. Either way targets go in chunks that stay in the processor's cache, and of each only the gradient of its
candidates' logits is kept. These are the entries of a sparse matrix, targets by items, and the gradients of states and
table are its products with the table and, transposed, with the states.
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
them (256 negatives, 128 dimensions) and at 35 (64 and 64), when each way still made its own gradients; since they share
them, this was not measured again."""

MAX_CHUNK_TARGETS = 1024
"""Targets of a chunk at the most: chunks have one size, the last is filled up, and that is waste in small batches."""


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
    is_picked = uses_all_logits(num_items, candidates.shape[1])

    # TensorFlow's own operations move single numbers several times more slowly than a compiled loop.
    @tf.function(jit_compile=True)
    def differentiate(logits: Tensor, places: Tensor, shift: Tensor, of_chunk: Tensor) -> tuple[Tensor, Tensor]:
        """The weighted loss of a chunk and its gradient by the candidates' logits."""
        own = tf.gather(tf.reshape(logits, [-1]), places) if is_picked else logits
        with tf.GradientTape() as tape:
            tape.watch(own)
            shifted = own + shift
            value = tf.reduce_sum(of_chunk * loss(shifted[:, 0], shifted[:, 1:], num_items))
        return value, tape.gradient(value, own)

    @tf.custom_gradient
    def total(states: Tensor, table: Tensor, shift: Tensor) -> tuple[Tensor, Callable[[Tensor], Any]]:
        logits_of = _all_logits if is_picked else _own_logits

        def of_chunk(some: Tensor, their_candidates: Tensor, their_weights: Tensor) -> tuple[Tensor, Tensor]:
            logits, places = logits_of(some, table, their_candidates)
            return differentiate(logits, places, shift, their_weights)

        size = _chunk_size(table.shape[0] if is_picked else candidates.shape[1] * table.shape[1])
        value, of_logits = _sum_chunks(of_chunk, size, states, candidates, weights)

        def backward(upstream: Tensor) -> tuple[Tensor, Tensor, Tensor]:
            scaled = upstream * of_logits
            of_states, of_table = _products(scaled, candidates, states, table, is_picked)
            return of_states, of_table, tf.reduce_sum(scaled)

        return value, backward

    return total(states, table, tf.zeros([]) if offset is None else tf.convert_to_tensor(offset))


def uses_all_logits(num_items: int, num_candidates: int) -> bool:
    """Whether the logits of all items are cheaper than gathering the rows of this many candidates per target."""
    return num_items <= MAX_GEMM_ITEMS_PER_CANDIDATE * num_candidates


def _all_logits(states: Tensor, table: Tensor, candidates: Tensor) -> tuple[Tensor, Tensor]:
    """(n, rows) logits of all items, and the (n, c) places of the candidates' in them, counted row by row."""
    starts = tf.range(states.shape[0])[:, None] * table.shape[0]
    return tf.matmul(states, table, transpose_b=True), starts + candidates


def _own_logits(states: Tensor, table: Tensor, candidates: Tensor) -> tuple[Tensor, Tensor]:
    """(n, c) logits of the candidates."""
    return tf.linalg.matvec(tf.gather(table, candidates), states), candidates


def _chunk_size(numbers_per_target: int) -> int:
    return max(1, min(MAX_CHUNK_TARGETS, chunk_numbers() // numbers_per_target))


def _sum_chunks(
    of_chunk: Callable[..., tuple[Tensor, Tensor]], size: int, states: Tensor, candidates: Tensor, weights: Tensor
) -> tuple[Tensor, Tensor]:
    """The sum of the chunks' losses, and the (n, c) gradients of logits of all of them.

    All chunks have `size` targets, so that what is compiled for one serves all; the last is filled up with weightless
    ones.
    """
    num_chunks, take = _in_chunks(size, states, candidates, weights)

    def body(number: Tensor, value: Tensor, parts: Any) -> tuple[Any, ...]:
        more, gradient = of_chunk(*take(number))
        return number + 1, value + more, parts.write(number, gradient)

    parts = tf.TensorArray(states.dtype, num_chunks, element_shape=[size, candidates.shape[1]])
    start = (tf.constant(0), tf.zeros([], states.dtype), parts)
    _, value, parts = tf.while_loop(lambda number, *_: number < num_chunks, body, start, parallel_iterations=1)
    return value, tf.reshape(parts.stack(), [-1, candidates.shape[1]])[: _count(states)]


def _count(values: Tensor) -> Any:
    """How many rows there are, before the graph runs if that is known."""
    return values.shape[0] or tf.shape(values)[0]


def _in_chunks(size: int, *arrays: Tensor) -> tuple[Any, Callable[[Tensor], list[Tensor]]]:
    """The number of chunks of `size` rows, the last filled up with zeros, and a function that gives one's rows."""
    count = _count(arrays[0])
    num_chunks = (count + size - 1) // size
    missing = num_chunks * size - count
    filled = [tf.pad(values, [[0, missing], *[[0, 0]] * (len(values.shape) - 1)]) for values in arrays]

    def take(number: Tensor) -> list[Tensor]:
        return [
            tf.slice(values, [number * size, *[0] * (len(values.shape) - 1)], [size, *values.shape[1:]])
            for values in filled
        ]

    return num_chunks, take


def _products(
    of_logits: Tensor, candidates: Tensor, states: Tensor, table: Tensor, is_picked: bool
) -> tuple[Tensor, Tensor]:
    """The gradients of states and table: this sparse matrix times the table, and its transpose times the states.

    The matrix has a row per target and a column per item; `of_logits` are its entries, `candidates` their columns.
    """
    if states.shape[0] is None and not has_gpu():
        return _sparse_products(of_logits, candidates, states, table, is_picked)
    # XLA has no sparse product, and a GPU none that is deterministic.
    multiply = _dense_products if is_picked else _gathered_products
    return multiply(of_logits, candidates, states, table)


def _sparse_products(
    of_logits: Tensor, candidates: Tensor, states: Tensor, table: Tensor, is_picked: bool
) -> tuple[Tensor, Tensor]:
    """Only the entries are multiplied: less arithmetic than a step's largest matrix products, and no scatter.

    A matrix is transposed by one thread, so with a small table there are two, of half the targets each. (TensorFlow can
    multiply by a transpose without making it, but adds up in any order, and no two runs would be the same.)
    """
    count = tf.shape(candidates)[0]
    sizes = [count // 2, count - count // 2] if is_picked else [count]
    parts = zip(*(tf.split(values, sizes) for values in (of_logits, candidates, states)), strict=True)
    products = [_products_of_part(entries, columns, some, table) for entries, columns, some in parts]
    of_states, of_table = zip(*products, strict=True)
    return tf.ensure_shape(tf.concat(of_states, axis=0), states.shape), tf.add_n(of_table)


def _products_of_part(entries: Tensor, columns: Tensor, states: Tensor, table: Tensor) -> tuple[Tensor, Tensor]:
    count, each = tf.shape(columns, tf.int64)[0], columns.shape[1]
    places = tf.stack([tf.repeat(tf.range(count), each), tf.cast(tf.reshape(columns, [-1]), tf.int64)], axis=1)
    matrix = tf.raw_ops.SparseTensorToCSRSparseMatrix(
        indices=places, values=tf.reshape(entries, [-1]), dense_shape=tf.stack([count, table.shape[0]])
    )
    transposed = tf.raw_ops.SparseMatrixTranspose(input=matrix, type=states.dtype)
    of_states = tf.raw_ops.SparseMatrixMatMul(a=matrix, b=table)
    of_table = tf.raw_ops.SparseMatrixMatMul(a=transposed, b=states)
    return of_states, tf.ensure_shape(of_table, table.shape)


def _dense_products(of_logits: Tensor, candidates: Tensor, states: Tensor, table: Tensor) -> tuple[Tensor, Tensor]:
    """The matrix as a dense one, a chunk of targets at a time."""
    num_rows, dim = table.shape
    size = _chunk_size(num_rows)
    num_chunks, take = _in_chunks(size, of_logits, candidates, states)
    starts = tf.range(size)[:, None] * num_rows

    def body(number: Tensor, of_table: Tensor, parts: Any) -> tuple[Any, ...]:
        entries, columns, some = take(number)
        places = tf.reshape(starts + columns, [-1])
        matrix = tf.reshape(_sums(tf.reshape(entries, [-1]), places, size * num_rows), [size, num_rows])
        of_table += tf.matmul(matrix, some, transpose_a=True)
        return number + 1, of_table, parts.write(number, tf.matmul(matrix, table))

    start = (tf.constant(0), tf.zeros_like(table), tf.TensorArray(states.dtype, num_chunks, element_shape=[size, dim]))
    _, of_table, parts = tf.while_loop(lambda number, *_: number < num_chunks, body, start, parallel_iterations=1)
    return tf.reshape(parts.stack(), [-1, dim])[: _count(states)], of_table


@tf.function(jit_compile=True)
def _sums(values: Tensor, places: Tensor, size: int) -> Tensor:
    """(size,) the sum of the values of every place."""
    return tf.math.unsorted_segment_sum(values, places, size)


def _gathered_products(of_logits: Tensor, candidates: Tensor, states: Tensor, table: Tensor) -> tuple[Tensor, Tensor]:
    """By the rows of the candidates."""
    of_states = tf.linalg.matvec(tf.gather(table, candidates), of_logits, transpose_a=True)
    outer = tf.reshape(of_logits[:, :, None] * states[:, None, :], [-1, states.shape[1]])
    return of_states, tf.math.unsorted_segment_sum(outer, tf.reshape(candidates, [-1]), table.shape[0])
