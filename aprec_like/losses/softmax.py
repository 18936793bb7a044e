"""Softmax cross entropy over the whole catalogue, computed in chunks of items."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from typing_extensions import override

from aprec_like.calibration import Probability, SoftmaxProbability
from aprec_like.devices import has_gpu
from aprec_like.lazy_tensorflow import tf
from aprec_like.losses.base import FullLoss
from aprec_like.losses.chunks import chunk_elements, identity_after
from aprec_like.types import Tensor

if TYPE_CHECKING:
    from aprec_like.negatives import Negatives

MIN_CHUNK_ITEMS = 64
"""Smallest number of items in a chunk: products with thinner matrices are slow."""


@dataclass(frozen=True)
class Softmax(FullLoss):
    """Full softmax: -log of the softmax probability of the target among all items. No sampling, no overconfidence.

    Items are processed in chunks: a first pass sums up the exponentials, and the gradient computes the logits again.
    This needs one matrix product more than keeping the logits would, but memory for one chunk of logits only.

    Example:
        A state of zeros scores 4 items equally, so the loss is -log(1/4) = 1.3863.

        >>> import tensorflow as tf
        >>> losses = Softmax()(states=tf.zeros([1, 2]), item_table=tf.ones([4, 2]), targets=tf.constant([3]))
        >>> round(float(losses[0]), 4)
        1.3863
    """

    @override
    def probability(self, num_items: int, negatives: Negatives) -> Probability:
        return SoftmaxProbability()

    @override
    def __call__(self, states: Tensor, item_table: Tensor, targets: Tensor) -> Tensor:
        flat_states = tf.reshape(states, [-1, states.shape[-1]])
        losses = _cross_entropy(flat_states, tf.convert_to_tensor(item_table), tf.reshape(targets, [-1]))
        return tf.reshape(losses, tf.shape(targets))


def _cross_entropy(states: Tensor, table: Tensor, targets: Tensor) -> Tensor:
    """Return the (n,) losses of (n, dim) states and (n,) targets."""

    @tf.custom_gradient
    def losses(states: Tensor, table: Tensor) -> tuple[Tensor, Callable[[Tensor], Any]]:
        logsumexps = _logsumexp(states, table)
        target_logits = tf.reduce_sum(states * tf.gather(table, targets), axis=1)

        def backward(upstream: Tensor) -> tuple[Tensor, Tensor]:
            if states.shape[0] is not None or has_gpu():
                return _logsumexp_gradients(states, table, logsumexps, upstream, targets)
            grad_states, grad_table = _logsumexp_gradients(states, table, logsumexps, upstream)
            grad_states -= upstream[:, None] * tf.gather(table, targets)
            grad_table = tf.tensor_scatter_nd_sub(grad_table, targets[:, None], upstream[:, None] * states)
            return grad_states, identity_after(grad_states, grad_table)

        return logsumexps - target_logits, backward

    return losses(states, table)


def _logsumexp(states: Tensor, table: Tensor) -> Tensor:
    """Return the (n,) logs of the sum of exp(logit) over all items."""
    _, rows_of_chunk, num_chunks, last_rows = _item_chunks(table, states)

    @_compiled_on_gpus(states)
    def add(total: Tensor, rows: Tensor) -> Tensor:
        chunk_total = tf.reduce_logsumexp(tf.matmul(states, rows, transpose_b=True), axis=1)
        larger, smaller = tf.maximum(total, chunk_total), tf.minimum(total, chunk_total)
        return larger + tf.math.log1p(tf.exp(smaller - larger))

    start = (tf.constant(0), tf.fill(tf.shape(states)[:1], states.dtype.min))
    _, total = tf.while_loop(
        lambda number, _: number < num_chunks,
        lambda number, total: (number + 1, add(total, rows_of_chunk(number))),
        start,
        parallel_iterations=1,
    )
    return add(total, last_rows)


def _logsumexp_gradients(
    states: Tensor, table: Tensor, logsumexps: Tensor, upstream: Tensor, targets: Tensor | None = None
) -> tuple[Tensor, Tensor]:
    """Return the gradients of sum(upstream * logsumexps) with respect to states and table.

    With targets, of sum(upstream * (logsumexps - logits of the targets)): a comparison finds the targets' cells, where
    a scatter of floats would be serial or in any order on a GPU.
    """
    size, rows_of_chunk, num_chunks, last_rows = _item_chunks(table, states)

    @_compiled_on_gpus(states)
    def gradients(rows: Tensor, first: Tensor) -> tuple[Tensor, Tensor]:
        logits = tf.matmul(states, rows, transpose_b=True)
        probabilities = tf.exp(logits - logsumexps[:, None])
        if targets is not None:
            items = tf.cast(first, targets.dtype) + tf.range(rows.shape[0] or tf.shape(rows)[0], dtype=targets.dtype)
            is_target = targets[:, None] == items
            probabilities -= tf.cast(is_target, probabilities.dtype)
        grad_logits = probabilities * upstream[:, None]
        return tf.matmul(grad_logits, rows), tf.matmul(grad_logits, states, transpose_a=True)

    def body(number: Tensor, grad_states: Tensor, grad_chunks: Any) -> tuple[Any, ...]:
        chunk_grad_states, grad_rows = gradients(rows_of_chunk(number), number * size)
        return number + 1, grad_states + chunk_grad_states, grad_chunks.write(number, grad_rows)

    start = (tf.constant(0), tf.zeros_like(states), tf.TensorArray(table.dtype, num_chunks))
    _, grad_states, grad_chunks = tf.while_loop(
        lambda number, *_: number < num_chunks, body, start, parallel_iterations=1
    )
    grad_whole_chunks = tf.reshape(grad_chunks.stack(), [-1, table.shape[1]])
    last_grad_states, grad_last_rows = gradients(last_rows, num_chunks * size)
    grad_table = tf.ensure_shape(tf.concat([grad_whole_chunks, grad_last_rows], axis=0), table.shape)
    return grad_states + last_grad_states, grad_table


def _compiled_on_gpus(states: Tensor) -> Callable[[Any], Any]:
    """Return a decorator that lets XLA compile a function in a GPU's graph, if the number of states is known.

    TensorFlow's own operations would write the logits of a chunk to memory several times.
    """
    if not has_gpu() or tf.executing_eagerly() or states.shape[0] is None:
        return lambda function: function
    return tf.function(jit_compile=True)


def _item_chunks(table: Tensor, states: Tensor) -> tuple[Any, Callable[[Tensor], Tensor], Any, Tensor]:
    """Return the chunk size, a function from a chunk's number to its rows, the number of chunks, and remaining rows.

    A chunk has as many items as keep its logits small. Its size is a Python number if the number of states is known.
    """
    num_items, dim = table.shape
    if states.shape[0] is not None:
        size = min(num_items, max(MIN_CHUNK_ITEMS, chunk_elements() // max(1, states.shape[0])))
    else:
        num_states = tf.maximum(1, tf.shape(states)[0])
        size = tf.minimum(num_items, tf.maximum(MIN_CHUNK_ITEMS, chunk_elements() // num_states))
    num_chunks = num_items // size
    return size, lambda number: tf.slice(table, [number * size, 0], [size, dim]), num_chunks, table[num_chunks * size :]
