"""Gathers whose gradients need no scatter of floats, for GPUs.

The gradient of a gather adds up rows at repeated indices. A GPU does that in any order, or, when operations have to be
deterministic, one row after the other or on the host. A product with a one-hot matrix, or a gather by the inverse
index, adds in a fixed order and runs in parallel. On a CPU the plain gather is faster and deterministic.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Any

import tensorflow as tf

from aprec_like.devices import has_gpu
from aprec_like.types import Tensor

MAX_ONE_HOT_ROWS = 1 << 15
"""Tables with more rows have gradients of the gathered rows only: a one-hot product grows with the table."""


_keeps_slices: ContextVar[bool] = ContextVar("keeps_slices", default=False)


@contextmanager
def slices_as_gradients() -> Iterator[None]:
    """Trace gathers whose gradients are slices, for optimisers that update only the gathered rows."""
    token = _keeps_slices.set(True)
    try:
        yield
    finally:
        _keeps_slices.reset(token)


def uses_dense_gradients(num_rows: int) -> bool:
    """Return whether the gradient of a gather from a table of `num_rows` is computed by a product."""
    return has_gpu() and is_small_table(num_rows) and not _keeps_slices.get()


def is_small_table(num_rows: int) -> bool:
    """Return whether products with a matrix of positions by `num_rows` are cheap on a GPU."""
    return num_rows <= MAX_ONE_HOT_ROWS


def gather_rows(table: Tensor, ids: Tensor) -> Tensor:
    """(..., dim) rows of a (rows, dim) table; ids may repeat."""
    if not uses_dense_gradients(table.shape[0]):
        return tf.gather(table, ids)
    num_rows = table.shape[0]

    @tf.custom_gradient
    def gather(table: Tensor) -> tuple[Tensor, Callable[[Tensor], Tensor]]:
        def backward(upstream: Tensor) -> Tensor:
            flat = tf.reshape(upstream, [-1, upstream.shape[-1]])
            one_hot = tf.one_hot(tf.reshape(ids, [-1]), num_rows, dtype=flat.dtype)
            return tf.matmul(one_hot, flat, transpose_a=True)

        return tf.gather(table, ids), backward

    return gather(tf.convert_to_tensor(table))


def embed_range(embedding: Any, start: Tensor, count: Tensor) -> Tensor:
    """(count, dim) adjacent rows of a Keras embedding, in its compute dtype."""
    if not uses_dense_gradients(embedding.input_dim):
        return embedding(tf.range(start, start + count))
    if not embedding.built:
        embedding.build(None)
    rows = tf.slice(tf.convert_to_tensor(embedding.embeddings), tf.stack([start, 0]), [count, embedding.output_dim])
    return tf.cast(rows, embedding.compute_dtype)


def gather_distinct(values: Tensor, positions: Tensor) -> Tensor:
    """(n, dim) rows of (m, dim) values at (n,) distinct positions."""
    if not has_gpu():
        return tf.gather(values, positions)

    @tf.custom_gradient
    def gather(values: Tensor) -> tuple[Tensor, Callable[[Tensor], Tensor]]:
        def backward(upstream: Tensor) -> Tensor:
            # A sum of integers is the same in any order: number 1 and up where a row was gathered, 0 elsewhere.
            numbers = tf.range(1, tf.shape(positions)[0] + 1)
            inverse = tf.math.unsorted_segment_sum(numbers, positions, tf.shape(values)[0])
            rows = tf.gather(upstream, tf.maximum(inverse - 1, 0))
            return tf.where((inverse > 0)[:, None], rows, tf.zeros([], upstream.dtype))

        return tf.gather(values, positions), backward

    return gather(values)
