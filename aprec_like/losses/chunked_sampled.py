"""The loss of states against candidates of their own, without ever holding all logits.

Every target has its own candidates, and there are many: gathering their rows moves dim numbers for each. For a small
catalogue it is cheaper to compute the logits of all items by a matrix product and to pick; for a large one rows are
gathered. Either way targets go in chunks that stay in the processor's cache, and with the loss of a chunk the gradient
of its candidates' logits is found. These are the entries of a sparse matrix, targets by items, and the gradients of
states and table are its products with the table and, transposed, with the states.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import tensorflow as tf

from aprec_like.devices import has_gpu
from aprec_like.losses import SampledLoss
from aprec_like.losses.chunks import after, chunk_numbers
from aprec_like.types import Tensor

MAX_GEMM_ITEMS_PER_CANDIDATE = 40
"""Up to this many items per candidate all logits are computed. On two CPU cores both ways took the same time at 50 of
them (256 negatives, 128 dimensions) and at 35 (64 and 64), when each way still made its own gradients; since then this
was not measured again."""

MAX_CHUNK_TARGETS = 1024
"""Targets of a chunk at the most: chunks have one size, the last is filled up, and that is waste in small batches."""

CHUNKS_AT_ONCE = 2
"""While one chunk is in an operation that knows only one thread, the next goes on."""

Differentiate = Callable[[Tensor, Tensor, Tensor, Tensor], tuple[Tensor, Tensor]]
"""From logits of positives (n,) and negatives (n, k), a number to add to them and weights (n,) to the sum of the
weighted losses and its gradient by the (n, 1 + k) logits."""

Sums = tuple[Tensor, ...]
"""What is added up over chunks."""

Backward = Callable[[Tensor], tuple[Tensor, Tensor, Tensor]]
"""From the gradient of a loss to those of states, table and the number added to logits."""


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

    # TensorFlow's own operations pass over the logits several times more often than a compiled loop.
    @tf.function(jit_compile=True)
    def differentiate(positive: Tensor, negative: Tensor, shift: Tensor, of_each: Tensor) -> tuple[Tensor, Tensor]:
        with tf.GradientTape() as tape:
            tape.watch([positive, negative])
            value = tf.reduce_sum(of_each * loss(positive + shift, negative + shift, num_items))
        of_positive, of_negative = tape.gradient(value, [positive, negative])
        return value, tf.concat([of_positive[:, None], of_negative], axis=1)

    by = _by_all_logits if uses_all_logits(num_items, candidates.shape[1]) else _by_gathered_rows

    @tf.custom_gradient
    def total(states: Tensor, table: Tensor, shift: Tensor) -> tuple[Tensor, Backward]:
        return by(differentiate, states, table, shift, candidates, weights)

    return total(states, table, tf.zeros([]) if offset is None else tf.convert_to_tensor(offset))


def uses_all_logits(num_items: int, num_candidates: int) -> bool:
    """Whether the logits of all items are cheaper than gathering the rows of this many candidates per target."""
    return num_items <= MAX_GEMM_ITEMS_PER_CANDIDATE * num_candidates


def _by_all_logits(
    differentiate: Differentiate, states: Tensor, table: Tensor, shift: Tensor, candidates: Tensor, weights: Tensor
) -> tuple[Tensor, Backward]:
    """The gradients are made with the loss, while a chunk is in the cache."""
    multiply = _sparse_products if _is_sparse_cheaper(states) else _dense_products

    def of_chunk(sums: Sums, some: Tensor, columns: Tensor, of_each: Tensor) -> tuple[Sums, Tensor]:
        positive, negative = _pick(tf.matmul(some, table, transpose_b=True), columns)
        value, entries = differentiate(positive, negative, shift, of_each)
        of_some, of_table = multiply(entries, columns, some, table)
        return tuple(map(tf.add, sums, (value, of_table, tf.reduce_sum(entries)))), of_some

    size, zero = _chunk_size(table.shape[0]), tf.zeros([], states.dtype)
    start = (zero, tf.zeros_like(table), zero)
    (value, of_table, of_shift), of_states = _over_chunks(
        of_chunk, size, start, states.shape[1], states, candidates, weights
    )

    def backward(upstream: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        return upstream * of_states, upstream * of_table, upstream * of_shift

    return value, backward


def _by_gathered_rows(
    differentiate: Differentiate, states: Tensor, table: Tensor, shift: Tensor, candidates: Tensor, weights: Tensor
) -> tuple[Tensor, Backward]:
    """The gradient of a large table is made once, not with every chunk."""

    def of_chunk(sums: Sums, some: Tensor, columns: Tensor, of_each: Tensor) -> tuple[Sums, Tensor]:
        logits = tf.linalg.matvec(tf.gather(table, columns), some)
        value, entries = differentiate(logits[:, 0], logits[:, 1:], shift, of_each)
        return (sums[0] + value,), entries

    size, start = _chunk_size(candidates.shape[1] * table.shape[1]), (tf.zeros([], states.dtype),)
    (value,), entries = _over_chunks(of_chunk, size, start, candidates.shape[1], states, candidates, weights)

    def backward(upstream: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        multiply = _sparse_products if _is_sparse_cheaper(states) else _gathered_products
        scaled = upstream * entries
        of_states, of_table = multiply(scaled, candidates, states, table)
        return of_states, after(of_states, of_table), tf.reduce_sum(scaled)

    return value, backward


def _is_sparse_cheaper(states: Tensor) -> bool:
    """Whether there are sparse products: XLA, for which all sizes are known, has none, and a GPU none that always adds
    up in the same order."""
    return states.shape[0] is None and not has_gpu()


@tf.function(jit_compile=True)
def _pick(logits: Tensor, candidates: Tensor) -> tuple[Tensor, Tensor]:
    """The logits of (n, 1 + k) candidates among the (n, rows) of all items: (n,) of the first, (n, k) of the others."""
    places = tf.range(logits.shape[0])[:, None] * logits.shape[1] + candidates
    own = tf.gather(tf.reshape(logits, [-1]), places)
    return own[:, 0], own[:, 1:]


def _chunk_size(numbers_per_target: int) -> int:
    return max(1, min(MAX_CHUNK_TARGETS, chunk_numbers() // numbers_per_target))


def _over_chunks(
    of_chunk: Callable[..., tuple[Sums, Tensor]], size: int, sums: Sums, width: int, *arrays: Tensor
) -> tuple[Sums, Tensor]:
    """What `of_chunk` makes of the chunks of the arrays' rows: sums to which each adds, and `width` numbers a row.

    All chunks have `size` rows, so that what is compiled for one serves all; the last is filled up with zeros.

    Returns:
        The sums after the last chunk, and (n, width) the numbers.
    """
    count = arrays[0].shape[0] or tf.shape(arrays[0])[0]
    num_chunks = (count + size - 1) // size
    missing = num_chunks * size - count
    filled = [tf.pad(values, [[0, missing], *[[0, 0]] * (len(values.shape) - 1)]) for values in arrays]

    def take(number: Tensor) -> list[Tensor]:
        return [
            tf.slice(values, [number * size, *[0] * (len(values.shape) - 1)], [size, *values.shape[1:]])
            for values in filled
        ]

    def body(number: Tensor, sums: Sums, parts: Any) -> tuple[Any, ...]:
        sums, rows = of_chunk(sums, *take(number))
        return number + 1, sums, parts.write(number, rows)

    parts = tf.TensorArray(arrays[0].dtype, num_chunks, element_shape=[size, width])
    _, sums, parts = tf.while_loop(
        lambda number, *_: number < num_chunks, body, (tf.constant(0), sums, parts), parallel_iterations=CHUNKS_AT_ONCE
    )
    return sums, tf.reshape(parts.stack(), [-1, width])[:count]


def _sparse_products(entries: Tensor, columns: Tensor, states: Tensor, table: Tensor) -> tuple[Tensor, Tensor]:
    """The gradients of states and table from the (n, c) entries of a sparse matrix, whose columns are candidates.

    Only the entries are multiplied, which is far less than a dense product does, and nothing is scattered. (TensorFlow
    can multiply by a transpose without making it, but adds up in any order, and no two runs would be the same.)
    """
    coordinates = _compiled_coordinates if columns.shape[0] else _coordinates
    matrix = tf.raw_ops.SparseTensorToCSRSparseMatrix(
        indices=coordinates(columns),
        values=tf.reshape(entries, [-1]),
        dense_shape=tf.stack([tf.shape(columns, tf.int64)[0], table.shape[0]]),
    )
    transposed = tf.raw_ops.SparseMatrixTranspose(input=matrix, type=states.dtype)
    of_states = tf.raw_ops.SparseMatrixMatMul(a=matrix, b=table)
    of_table = tf.raw_ops.SparseMatrixMatMul(a=transposed, b=states)
    return tf.ensure_shape(of_states, states.shape), tf.ensure_shape(of_table, table.shape)


def _coordinates(columns: Tensor) -> Tensor:
    """(n * c, 2) the row and the column of every entry."""
    shape = tf.shape(columns, tf.int64)
    numbers = tf.broadcast_to(tf.range(shape[0])[:, None], shape)
    return tf.reshape(tf.stack([numbers, tf.cast(columns, tf.int64)], axis=2), [-1, 2])


_compiled_coordinates = tf.function(_coordinates, jit_compile=True)


def _dense_products(entries: Tensor, columns: Tensor, states: Tensor, table: Tensor) -> tuple[Tensor, Tensor]:
    """The same, the matrix as a dense one."""
    count, num_rows = columns.shape[0], table.shape[0]
    places = tf.reshape(tf.range(count)[:, None] * num_rows + columns, [-1])
    matrix = tf.reshape(_sums(tf.reshape(entries, [-1]), places, count * num_rows), [count, num_rows])
    return tf.matmul(matrix, table), tf.matmul(matrix, states, transpose_a=True)


@tf.function(jit_compile=True)
def _sums(values: Tensor, places: Tensor, size: int) -> Tensor:
    """(size,) the sum of the values of every place."""
    return tf.math.unsorted_segment_sum(values, places, size)


def _gathered_products(entries: Tensor, columns: Tensor, states: Tensor, table: Tensor) -> tuple[Tensor, Tensor]:
    """The same, by the rows of the candidates, in chunks as they were gathered for the loss."""

    def of_chunk(sums: Sums, some: Tensor, some_entries: Tensor, places: Tensor) -> tuple[Sums, Tensor]:
        outer = some_entries[:, :, None] * some[:, None, :]
        of_table = tf.tensor_scatter_nd_add(sums[0], places[:, :, None], outer)
        return (of_table,), tf.linalg.matvec(tf.gather(table, places), some_entries, transpose_a=True)

    size, start = _chunk_size(columns.shape[1] * table.shape[1]), (tf.zeros_like(table),)
    (of_table,), of_states = _over_chunks(of_chunk, size, start, states.shape[1], states, entries, columns)
    return of_states, of_table
