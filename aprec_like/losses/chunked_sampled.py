"""Sum of a sampled loss over targets that each have their own candidates, computed in chunks of targets.

Gathering the embeddings of all candidates moves dim numbers per candidate. For a small catalogue it is cheaper to
compute the logits of all items by a matrix product and to gather logits; for a large one embeddings are gathered.
Either way targets are processed in chunks that stay in the processor's cache, and the gradient with respect to the
candidates' logits is computed together with the loss of a chunk. It is a sparse matrix, targets by items, and the
gradients of states and table are its products with the table and, transposed, with the states.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import tensorflow as tf

from aprec_like.devices import has_gpu
from aprec_like.gathers import is_small_table
from aprec_like.losses.base import SampledLoss
from aprec_like.losses.chunks import chunk_elements, identity_after
from aprec_like.losses.counted_sampled import counted_loss_sum
from aprec_like.types import Tensor

MAX_GEMM_ITEMS_PER_CANDIDATE = 40
"""Up to this many items per candidate the logits of all items are computed. On two CPU cores both ways took the same
time at 50 (256 negatives, 128 dimensions) and at 35 (64 and 64), measured before they shared the sparse gradients; not
measured again since."""

MAX_CHUNK_TARGETS = 1024
"""Largest number of targets in a chunk on a CPU: the last chunk is padded to full size, which is waste in small
batches. On a GPU shapes are static, and chunks are of equal size."""

CHUNKS_IN_FLIGHT = 2
"""Chunks in flight: overlaps the single-threaded operations of one chunk with the next."""

LossAndGradient = Callable[[Tensor, Tensor, Tensor, Tensor], tuple[Tensor, Tensor]]
"""Function of (n,) positive logits, (n, k) negative logits, a bias of all logits and (n,) weights that returns the
weighted sum of the losses and its gradient with respect to the (n, 1 + k) logits."""

Totals = tuple[Tensor, ...]
"""Tensors that are summed over chunks."""

Backward = Callable[[Tensor], tuple[Tensor, Tensor, Tensor]]
"""Function from the gradient of the loss to the gradients of states, table and logit bias."""


def sampled_loss_sum(
    loss: SampledLoss,
    states: Tensor,
    table: Tensor,
    candidates: Tensor,
    weights: Tensor,
    num_items: int,
    logit_bias: Tensor | None = None,
) -> Tensor:
    """Return the weighted sum of the losses of states that each have their own candidates.

    Args:
        loss: loss over the positive and the negatives.
        states: (n, dim).
        table: (rows, dim) embedding of each item; more rows may follow.
        candidates: (n, 1 + k) items, the positive first.
        weights: (n,) weight of each loss.
        num_items: size of the catalogue.
        logit_bias: scalar added to all logits.
    """

    # TensorFlow's own operations pass over the logits several times more often than a compiled loop.
    @tf.function(jit_compile=True)
    def loss_and_gradient(positive: Tensor, negative: Tensor, bias: Tensor, weights: Tensor) -> tuple[Tensor, Tensor]:
        with tf.GradientTape() as tape:
            tape.watch([positive, negative])
            value = tf.reduce_sum(weights * loss(positive + bias, negative + bias, num_items))
        grad_positive, grad_negative = tape.gradient(value, [positive, negative])
        return value, tf.concat([grad_positive[:, None], grad_negative], axis=1)

    bias = tf.zeros([]) if logit_bias is None else tf.convert_to_tensor(logit_bias)
    if not _can_use_sparse(states) and uses_counts(table.shape[0], num_items, candidates.shape[1]):
        return counted_loss_sum(loss, states, table, bias, candidates, weights, num_items)
    compute = _sum_by_all_logits if uses_all_logits(num_items, candidates.shape[1]) else _sum_by_gathered_rows

    @tf.custom_gradient
    def total(states: Tensor, table: Tensor, bias: Tensor) -> tuple[Tensor, Backward]:
        return compute(loss_and_gradient, states, table, bias, candidates, weights)

    return total(states, table, bias)


def uses_counts(num_rows: int, num_items: int, num_candidates: int) -> bool:
    """Return whether counts of the sampled items, targets by items, are cheaper than gathering embeddings."""
    return is_small_table(num_rows) if has_gpu() else uses_all_logits(num_items, num_candidates)


def uses_all_logits(num_items: int, num_candidates: int) -> bool:
    """Return whether the logits of all items are cheaper than gathering the embeddings of this many candidates."""
    return num_items <= MAX_GEMM_ITEMS_PER_CANDIDATE * num_candidates


def _sum_by_all_logits(
    loss_and_gradient: LossAndGradient,
    states: Tensor,
    table: Tensor,
    bias: Tensor,
    candidates: Tensor,
    weights: Tensor,
) -> tuple[Tensor, Backward]:
    """Compute the loss from the logits of all items; all gradients are computed while a chunk is in the cache."""

    def chunk_loss(totals: Totals, states: Tensor, candidates: Tensor, weights: Tensor) -> tuple[Totals, Tensor]:
        positive, negative = _gather_logits(tf.matmul(states, table, transpose_b=True), candidates)
        value, grad_logits = loss_and_gradient(positive, negative, bias, weights)
        grad_states, grad_table = _sparse_products(grad_logits, candidates, states, table)
        return tuple(map(tf.add, totals, (value, grad_table, tf.reduce_sum(grad_logits)))), grad_states

    size, zero = _chunk_size(table.shape[0], states.shape[0]), tf.zeros([], states.dtype)
    initial = (zero, tf.zeros_like(table), zero)
    (value, grad_table, grad_bias), grad_states = _map_chunks(
        chunk_loss, size, initial, states.shape[1], states, candidates, weights
    )

    def backward(upstream: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        return upstream * grad_states, upstream * grad_table, upstream * grad_bias

    return value, backward


def _sum_by_gathered_rows(
    loss_and_gradient: LossAndGradient,
    states: Tensor,
    table: Tensor,
    bias: Tensor,
    candidates: Tensor,
    weights: Tensor,
) -> tuple[Tensor, Backward]:
    """Compute the loss from gathered embeddings; the gradient of the large table is computed once, not per chunk."""

    def chunk_loss(totals: Totals, states: Tensor, candidates: Tensor, weights: Tensor) -> tuple[Totals, Tensor]:
        logits = tf.linalg.matvec(tf.gather(table, candidates), states)
        value, grad_logits = loss_and_gradient(logits[:, 0], logits[:, 1:], bias, weights)
        return (totals[0] + value,), grad_logits

    size, initial = _chunk_size(candidates.shape[1] * table.shape[1], states.shape[0]), (tf.zeros([], states.dtype),)
    (value,), grad_logits = _map_chunks(chunk_loss, size, initial, candidates.shape[1], states, candidates, weights)

    def backward(upstream: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        multiply = _sparse_products if _can_use_sparse(states) else _gathered_products
        scaled = upstream * grad_logits
        grad_states, grad_table = multiply(scaled, candidates, states, table)
        return grad_states, identity_after(grad_states, grad_table), tf.reduce_sum(scaled)

    return value, backward


def _can_use_sparse(states: Tensor) -> bool:
    """Return whether sparse products can be used: XLA, which needs static shapes, has none, and a GPU has none with a
    deterministic order of summation."""
    return states.shape[0] is None and not has_gpu()


@tf.function(jit_compile=True)
def _gather_logits(logits: Tensor, candidates: Tensor) -> tuple[Tensor, Tensor]:
    """Return (n,) logits of the first and (n, k) logits of the other (n, 1 + k) candidates, from (n, rows) logits."""
    indices = tf.range(logits.shape[0])[:, None] * logits.shape[1] + candidates
    gathered = tf.gather(tf.reshape(logits, [-1]), indices)
    return gathered[:, 0], gathered[:, 1:]


def _chunk_size(elements_per_target: int, num_targets: int | None) -> int:
    """Return the number of targets in a chunk; `num_targets` is `None` where it varies."""
    size = max(1, chunk_elements() // elements_per_target)
    if num_targets is None or not has_gpu():
        return min(MAX_CHUNK_TARGETS, size)
    num_chunks = -(-num_targets // size)
    return -(-num_targets // num_chunks)


def _map_chunks(
    chunk_function: Callable[..., tuple[Totals, Tensor]], size: int, totals: Totals, width: int, *arrays: Tensor
) -> tuple[Totals, Tensor]:
    """Apply a function to chunks of the arrays' rows; it returns new totals and (size, width) results per row.

    All chunks have `size` rows, so that one compiled function serves them all; the last is padded with zeros.

    Returns:
        The totals after the last chunk, and the (n, width) results.
    """
    count = arrays[0].shape[0] or tf.shape(arrays[0])[0]
    num_chunks = (count + size - 1) // size
    num_missing = num_chunks * size - count
    # By concatenation: on a GPU, TensorFlow can't pad integers.
    padded = [
        tf.concat([values, tf.zeros([num_missing, *values.shape[1:]], values.dtype)], axis=0) for values in arrays
    ]

    def slice_chunk(number: Tensor) -> list[Tensor]:
        return [
            tf.slice(values, [number * size, *[0] * (len(values.shape) - 1)], [size, *values.shape[1:]])
            for values in padded
        ]

    def body(number: Tensor, totals: Totals, results: Any) -> tuple[Any, ...]:
        totals, rows = chunk_function(totals, *slice_chunk(number))
        return number + 1, totals, results.write(number, rows)

    results = tf.TensorArray(arrays[0].dtype, num_chunks, element_shape=[size, width])
    _, totals, results = tf.while_loop(
        lambda number, *_: number < num_chunks,
        body,
        (tf.constant(0), totals, results),
        parallel_iterations=CHUNKS_IN_FLIGHT,
    )
    return totals, tf.reshape(results.stack(), [-1, width])[:count]


def _sparse_products(grad_logits: Tensor, candidates: Tensor, states: Tensor, table: Tensor) -> tuple[Tensor, Tensor]:
    """Return the gradients of states and table from the (n, c) gradients of the candidates' logits.

    Multiplies only the entries of the sparse matrix, far fewer than a dense product, and scatters nothing. (TensorFlow
    can multiply by a transpose without computing it, but with an order of summation that differs between runs.)
    """
    coordinates = _compiled_coordinates if candidates.shape[0] else _coordinates
    matrix = tf.raw_ops.SparseTensorToCSRSparseMatrix(
        indices=coordinates(candidates),
        values=tf.reshape(grad_logits, [-1]),
        dense_shape=tf.stack([tf.shape(candidates, tf.int64)[0], table.shape[0]]),
    )
    transposed = tf.raw_ops.SparseMatrixTranspose(input=matrix, type=states.dtype)
    grad_states = tf.raw_ops.SparseMatrixMatMul(a=matrix, b=table)
    grad_table = tf.raw_ops.SparseMatrixMatMul(a=transposed, b=states)
    return tf.ensure_shape(grad_states, states.shape), tf.ensure_shape(grad_table, table.shape)


def _coordinates(candidates: Tensor) -> Tensor:
    """Return the (n * c, 2) row and column of every entry of the sparse matrix."""
    shape = tf.shape(candidates, tf.int64)
    rows = tf.broadcast_to(tf.range(shape[0])[:, None], shape)
    return tf.reshape(tf.stack([rows, tf.cast(candidates, tf.int64)], axis=2), [-1, 2])


_compiled_coordinates = tf.function(_coordinates, jit_compile=True)


def _gathered_products(grad_logits: Tensor, candidates: Tensor, states: Tensor, table: Tensor) -> tuple[Tensor, Tensor]:
    """Return the same as `_sparse_products`, from embeddings gathered in the chunks of the loss."""

    def chunk_products(
        totals: Totals, states: Tensor, grad_logits: Tensor, candidates: Tensor
    ) -> tuple[Totals, Tensor]:
        outer = tf.reshape(grad_logits[:, :, None] * states[:, None, :], [-1, states.shape[1]])
        grad_table = tf.math.unsorted_segment_sum(outer, tf.reshape(candidates, [-1]), table.shape[0])
        return (totals[0] + grad_table,), tf.linalg.matvec(tf.gather(table, candidates), grad_logits, transpose_a=True)

    size, initial = _chunk_size(candidates.shape[1] * table.shape[1], states.shape[0]), (tf.zeros_like(table),)
    (grad_table,), grad_states = _map_chunks(
        chunk_products, size, initial, states.shape[1], states, grad_logits, candidates
    )
    return grad_states, grad_table
