"""Softmax cross entropy over the whole catalogue, computed in chunks of items."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from typing_extensions import override

from aprec_like.calibration import Probability, SoftmaxProbability
from aprec_like.devices import has_gpu
from aprec_like.lazy_tensorflow import tf
from aprec_like.losses.base import FullLoss
from aprec_like.losses.chunks import chunk_elements, identity_after
from aprec_like.losses.left_out import LeftOut
from aprec_like.settings import OMIT_DEFAULT
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

    Args:
        excludes_history: leave the other items of the user's training sequence out of the sum, as evaluation leaves
            them out of the ranking: a softmax over the target and the items that the user has not seen. (Klenitskiy and
            Vasilev, RecSys 2023, sample their negatives from these items.)
        label_smoothing: share of the target's probability that is spread evenly over all items of the sum.

    Example:
        A state of zeros scores 4 items equally, so the loss is -log(1/4) = 1.3863.

        >>> import tensorflow as tf
        >>> losses = Softmax()(states=tf.zeros([1, 2]), item_table=tf.ones([4, 2]), targets=tf.constant([3]))
        >>> round(float(losses[0]), 4)
        1.3863
    """

    excludes_history: bool = field(default=False, metadata=OMIT_DEFAULT)
    label_smoothing: float = field(default=0.0, metadata=OMIT_DEFAULT)

    def __post_init__(self) -> None:
        if not 0 <= self.label_smoothing < 1:
            raise ValueError(f"Softmax needs 0 <= label_smoothing < 1. Received: {self.label_smoothing}")

    @property
    @override
    def label(self) -> str:
        return "Softmax, unseen items" if self.excludes_history else "Softmax"

    @property
    @override
    def leaves_out_history(self) -> bool:
        return self.excludes_history

    @override
    def probability(self, num_items: int, negatives: Negatives) -> Probability | None:
        """Return the softmax; `None` without the history, whose scores then have no meaning but count in the sum."""
        return None if self.excludes_history else SoftmaxProbability()

    @override
    def __call__(self, states: Tensor, item_table: Tensor, targets: Tensor, left_out: LeftOut | None = None) -> Tensor:
        flat_states, table = tf.reshape(states, [-1, states.shape[-1]]), tf.convert_to_tensor(item_table)
        losses = _cross_entropy(flat_states, table, tf.reshape(targets, [-1]), left_out, self.label_smoothing)
        return tf.reshape(losses, tf.shape(targets))


def _cross_entropy(
    states: Tensor, table: Tensor, targets: Tensor, left_out: LeftOut | None, label_smoothing: float
) -> Tensor:
    """Return the (n,) losses of (n, dim) states and (n,) targets."""

    @tf.custom_gradient
    def losses(states: Tensor, table: Tensor) -> tuple[Tensor, Callable[[Tensor], Any]]:
        logits = _ChunkLogits(states, targets, left_out)
        logsumexps = _logsumexp(logits, table)
        target_logits = tf.reduce_sum(states * tf.gather(table, targets), axis=1)
        smoothing, target_share, expected_logits = None, 1 - label_smoothing, target_logits
        if label_smoothing:
            logit_sums, counts = _sums_and_counts(logits, table)
            smoothing = label_smoothing / counts
            expected_logits = target_share * target_logits + smoothing * logit_sums

        def backward(upstream: Tensor) -> tuple[Tensor, Tensor]:
            if states.shape[0] is not None or has_gpu():
                return _gradients(logits, table, logsumexps, upstream, smoothing, target_share)
            grad_states, grad_table = _gradients(logits, table, logsumexps, upstream, smoothing, None)
            weights = target_share * upstream[:, None]
            grad_states -= weights * tf.gather(table, targets)
            grad_table = tf.tensor_scatter_nd_sub(grad_table, targets[:, None], weights * states)
            return grad_states, identity_after(grad_states, grad_table)

        return logsumexps - expected_logits, backward

    return losses(states, table)


@dataclass(frozen=True, eq=False)
class _ChunkLogits:
    """Logits of a chunk of items, very low for items that are left out; targets are never left out."""

    states: Tensor
    targets: Tensor
    left_out: LeftOut | None

    def __call__(self, rows: Tensor, first: Tensor) -> Tensor:
        """(n, chunk) logits of the items first, first + 1, ... with these (chunk, dim) rows of the table."""
        logits = tf.matmul(self.states, rows, transpose_b=True)
        if self.left_out is None:
            return logits
        is_left_out = self.left_out.mask(first, rows.shape[0] or tf.shape(rows)[0]) & ~self.is_target(rows, first)
        return tf.where(is_left_out, self.lowest, logits)

    def is_target(self, rows: Tensor, first: Tensor) -> Tensor:
        """(n, chunk) True at the target of a position."""
        dtype, num_rows = self.targets.dtype, rows.shape[0] or tf.shape(rows)[0]
        return self.targets[:, None] == tf.cast(first, dtype) + tf.range(num_rows, dtype=dtype)

    def is_in_sum(self, logits: Tensor) -> Tensor:
        """(n, chunk) True where an item is not left out."""
        return logits > self.lowest

    @property
    def lowest(self) -> float:
        """The logit of an item that is left out."""
        return self.states.dtype.min / 2


def _logsumexp(logits: _ChunkLogits, table: Tensor) -> Tensor:
    """Return the (n,) logs of the sum of exp(logit) over all items."""

    @_compiled_on_gpus(logits.states)
    def add(totals: tuple[Tensor, ...], rows: Tensor, first: Tensor) -> tuple[Tensor, ...]:
        chunk_total = tf.reduce_logsumexp(logits(rows, first), axis=1)
        larger, smaller = tf.maximum(totals[0], chunk_total), tf.minimum(totals[0], chunk_total)
        return (larger + tf.math.log1p(tf.exp(smaller - larger)),)

    start = tf.fill(tf.shape(logits.states)[:1], logits.states.dtype.min)
    return _fold_chunks(add, (start,), table, logits.states)[0]


def _sums_and_counts(logits: _ChunkLogits, table: Tensor) -> tuple[Tensor, ...]:
    """Return the (n,) sums of the logits of the items that are not left out, and how many there are."""

    @_compiled_on_gpus(logits.states)
    def add(totals: tuple[Tensor, ...], rows: Tensor, first: Tensor) -> tuple[Tensor, ...]:
        values = logits(rows, first)
        is_in_sum = tf.cast(logits.is_in_sum(values), values.dtype)
        return totals[0] + tf.reduce_sum(is_in_sum * values, axis=1), totals[1] + tf.reduce_sum(is_in_sum, axis=1)

    start = tf.zeros_like(logits.states[:, 0])
    return _fold_chunks(add, (start, start), table, logits.states)


def _gradients(
    logits: _ChunkLogits,
    table: Tensor,
    logsumexps: Tensor,
    upstream: Tensor,
    smoothing: Tensor | None,
    target_share: float | None,
) -> tuple[Tensor, Tensor]:
    """Return the gradients of sum(upstream * losses) with respect to states and table.

    Args:
        logits: of the chunks.
        table: (num_items, dim).
        logsumexps: (n,) over all items.
        upstream: (n,) gradients of the losses.
        smoothing: (n,) share of every item of the sum in the target distribution; `None` for none.
        target_share: share of the target: a comparison finds the targets' cells, where a scatter of floats would be
            serial or in any order on a GPU. `None` leaves the targets' logits to the caller.
    """
    states = logits.states
    size, rows_of_chunk, num_chunks, last_rows = _item_chunks(table, states)

    @_compiled_on_gpus(states)
    def gradients(rows: Tensor, first: Tensor) -> tuple[Tensor, Tensor]:
        values = logits(rows, first)
        grad_values = tf.exp(values - logsumexps[:, None])
        if smoothing is not None:
            grad_values -= tf.where(logits.is_in_sum(values), smoothing[:, None], 0.0)
        if target_share is not None:
            grad_values -= target_share * tf.cast(logits.is_target(rows, first), grad_values.dtype)
        grad_values *= upstream[:, None]
        return tf.matmul(grad_values, rows), tf.matmul(grad_values, states, transpose_a=True)

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


def _fold_chunks(
    add: Callable[[tuple[Tensor, ...], Tensor, Tensor], tuple[Tensor, ...]],
    totals: tuple[Tensor, ...],
    table: Tensor,
    states: Tensor,
) -> tuple[Tensor, ...]:
    """Return the totals after `add(totals, rows, first)` of every chunk of items."""
    size, rows_of_chunk, num_chunks, last_rows = _item_chunks(table, states)
    _, *totals = tf.while_loop(
        lambda number, *_: number < num_chunks,
        lambda number, *totals: (number + 1, *add(totals, rows_of_chunk(number), number * size)),
        (tf.constant(0), *totals),
        parallel_iterations=1,
    )
    return add(tuple(totals), last_rows, num_chunks * size)


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
