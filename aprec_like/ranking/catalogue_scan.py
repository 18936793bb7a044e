"""One pass over the catalogue for a batch of users: rank counts of the targets, top items, and sums over all items.

Scores are computed in chunks, items as rows and users as columns, and used while they are in the processor's cache; the
full score matrix never exists. The loop over chunks is in the graph, and all shapes but the numbers of seen items are
static.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cache
from typing import NamedTuple

import numpy as np
import tensorflow as tf

from aprec_like.interactions import PADDING
from aprec_like.types import Array, Tensor

CHUNK_ITEMS = 1 << 16
"""Items scored by one matrix product; with 128 users that is 32 MiB of scores."""

CACHED_ITEMS = 1 << 13
"""Items of a chunk that are reduced together: few enough to be read from memory once; a multiple of `BLOCK_ITEMS`."""

BLOCK_ITEMS = 16
"""Neighbouring items that are represented by their maximum in the search for the top items."""

PRODUCT_ROWS = 192
"""The rows of the targets' product are filled up to a multiple of this: kernels of matrix products work on blocks of
rows (of 6 to 64), and on some processors round the rows after the last whole block differently."""

MAX_UNSHIFTED_SCORE = 75.0
"""Largest absolute score whose exponentials can be summed in float32 without subtracting a maximum first."""


class Cells(NamedTuple):
    """Some (item, user) cells of the score matrix, sorted by item.

    indices: (cells, 2) item and user.
    bounds: (chunks + 1,) index of the first cell of each chunk of items, then the number of cells.
    """

    indices: Tensor
    bounds: Tensor

    @classmethod
    def from_pairs(cls, items: Array, users: Array, num_items: int) -> Cells:
        """Create the distinct cells of (item, user) pairs in any order: writing to them needs no order."""
        num_users = users.max(initial=0) + 1
        items, users = np.divmod(np.unique(items.astype(np.int64) * num_users + users), num_users)
        chunk_starts = np.append(np.arange(0, num_items, CHUNK_ITEMS), num_items)
        bounds = np.searchsorted(items, chunk_starts)
        return cls(tf.constant(np.stack([items, users], axis=1), tf.int32), tf.constant(bounds, tf.int32))

    def write(self, scores: Tensor, values: Tensor, first: Tensor) -> Tensor:
        """Return the (items, users) scores of the chunk that starts at item `first`, with (users,) values in cells."""
        number = first // CHUNK_ITEMS
        indices = self.indices[self.bounds[number] : self.bounds[number + 1]]
        return tf.tensor_scatter_nd_update(scores, indices - tf.stack([first, 0]), tf.gather(values, indices[:, 1]))


class ScanResult(NamedTuple):
    """Result of a scan for each user. With a depth of 0 only `num_better_minus_worse` is computed.

    num_better_minus_worse: (users,) items scored above the target minus items scored below it; excluded items count as
        below.
    exp_shift: (users,) number subtracted from scores so that their exponentials do not overflow.
    exp_sum: (users,) sum of exp(score - exp_shift).
    sigmoid_sum: (users,) sum of sigmoid(score).
    top_scores: (users, depth) highest scores of items that are not excluded, -inf where there are fewer.
    top_items: (users, depth) their items; of equal scores the first in the catalogue comes first.
    """

    num_better_minus_worse: Tensor
    exp_shift: Tensor
    exp_sum: Tensor
    sigmoid_sum: Tensor
    top_scores: Tensor
    top_items: Tensor

    def numpy(self) -> ScanResult:
        """Return the result as NumPy arrays."""
        return ScanResult(*(value.numpy() for value in self))

    @classmethod
    def initial(cls, spec: ScanSpec) -> ScanResult:
        """Return the result before the first item."""
        zeros = tf.zeros([spec.num_users], tf.float64)
        top_shape = [spec.num_users, spec.depth]
        return cls(
            num_better_minus_worse=zeros,
            exp_shift=tf.fill([spec.num_users], tf.float32.min),
            exp_sum=zeros,
            sigmoid_sum=zeros,
            top_scores=tf.fill(top_shape, -np.inf),
            top_items=tf.fill(top_shape, PADDING),
        )


class ScanInputs(NamedTuple):
    """Targets and seen items of the users to scan for.

    targets: (users,) items.
    target_cells: cells of the targets.
    seen_cells: cells of the items to exclude.
    """

    targets: Tensor
    target_cells: Cells
    seen_cells: Cells


@dataclass(frozen=True)
class ScanSpec:
    """Static properties of a scan; one graph is traced for each combination.

    Args:
        num_items: size of the catalogue.
        num_users: number of users of a scan.
        depth: number of top items to keep; 0 computes `num_better_minus_worse` only.
        excludes_seen: whether the seen cells are excluded.
        is_unshifted: whether all absolute scores are known to be at most `MAX_UNSHIFTED_SCORE`.
    """

    num_items: int
    num_users: int
    depth: int
    excludes_seen: bool
    is_unshifted: bool

    def inputs_spec(self) -> ScanInputs:
        """Return the shapes and dtypes of the inputs."""
        bounds = tf.TensorSpec([-(-self.num_items // CHUNK_ITEMS) + 1], tf.int32)
        cells = Cells(tf.TensorSpec([None, 2], tf.int32), bounds)
        return ScanInputs(tf.TensorSpec([self.num_users], tf.int32), cells, cells)


@cache
def make_product_scan(
    spec: ScanSpec, dim: int
) -> Callable[[Tensor, Tensor, ScanInputs, Tensor], tuple[Tensor, ScanResult]]:
    """Return a scan whose scores are products of item embeddings and states.

    Its arguments are the (num_items, dim) table, the (users, dim) states, the inputs and a scalar bias of all scores.
    It returns the (users,) scores of the targets and the result.
    """
    table_spec, states_spec = tf.TensorSpec([spec.num_items, dim]), tf.TensorSpec([spec.num_users, dim])

    @tf.function(input_signature=[table_spec, states_spec, spec.inputs_spec(), tf.TensorSpec([])])
    def scan(table: Tensor, states: Tensor, inputs: ScanInputs, bias: Tensor) -> tuple[Tensor, ScanResult]:
        def score_chunk(first: Tensor, count: int) -> Tensor:
            return tf.matmul(tf.slice(table, [first, 0], [count, dim]), states, transpose_b=True)

        # The same kind of product as for all scores, so that items with equal embeddings have equal scores.
        rows = tf.pad(tf.gather(table, inputs.targets), [[0, -spec.num_users % PRODUCT_ROWS], [0, 0]])
        products = tf.matmul(rows, states, transpose_b=True)[: spec.num_users]
        target_scores = tf.linalg.diag_part(products)
        result = _scan(spec, score_chunk, target_scores, inputs, bias)
        return target_scores + bias, result._replace(top_scores=result.top_scores + bias)

    return scan


@cache
def make_score_scan(spec: ScanSpec) -> Callable[[Tensor, ScanInputs], tuple[Tensor, ScanResult]]:
    """Return a scan of given (users, num_items) scores and inputs; it returns the same as a scan of products."""

    @tf.function(input_signature=[tf.TensorSpec([spec.num_users, spec.num_items]), spec.inputs_spec()])
    def scan(scores: Tensor, inputs: ScanInputs) -> tuple[Tensor, ScanResult]:
        def score_chunk(first: Tensor, count: int) -> Tensor:
            return tf.transpose(tf.slice(scores, [0, first], [spec.num_users, count]))

        target_scores = tf.gather(scores, inputs.targets, batch_dims=1)
        return target_scores, _scan(spec, score_chunk, target_scores, inputs, tf.zeros([]))

    return scan


def _scan(
    spec: ScanSpec,
    score_chunk: Callable[[Tensor, int], Tensor],
    target_scores: Tensor,
    inputs: ScanInputs,
    bias: Tensor,
) -> ScanResult:
    """Scan all whole chunks of items in a loop, then the remaining items."""
    excluded = tf.fill([spec.num_users], -np.inf)
    reduce = _reduce_unshifted if spec.is_unshifted else _reduce

    def scan_chunk(first: Tensor, count: int, result: ScanResult) -> ScanResult:
        scores = inputs.target_cells.write(score_chunk(first, count), target_scores, first)
        ranked = inputs.seen_cells.write(scores, excluded, first) if spec.excludes_seen else scores
        block_maxima = []
        for start in range(0, count, CACHED_ITEMS):
            cached_scores, cached_ranked = (values[start : start + CACHED_ITEMS] for values in (scores, ranked))
            if spec.depth:
                difference, maxima, *sums = reduce(cached_ranked, cached_scores, target_scores, bias)
                result = _add_sums(result, *sums)
                block_maxima.append(maxima)
            else:
                difference = _better_minus_worse(cached_ranked, target_scores)
            total = result.num_better_minus_worse + tf.cast(difference, tf.float64)
            result = result._replace(num_better_minus_worse=total)
        return _merge_top_items(result, ranked, tf.concat(block_maxima, axis=0), first) if spec.depth else result

    num_chunks, num_remaining = divmod(spec.num_items, CHUNK_ITEMS)
    result = ScanResult.initial(spec)
    if num_chunks:
        _, result = tf.while_loop(
            lambda number, result: number < num_chunks,
            lambda number, result: (number + 1, scan_chunk(number * CHUNK_ITEMS, CHUNK_ITEMS, result)),
            (tf.constant(0), result),
            parallel_iterations=1,
        )
    return scan_chunk(tf.constant(num_chunks * CHUNK_ITEMS), num_remaining, result) if num_remaining else result


def _add_sums(result: ScanResult, exp_shift: Tensor, exp_sum: Tensor, sigmoid_sum: Tensor) -> ScanResult:
    """Return the result with the sums over some more items added."""
    new_shift = tf.maximum(result.exp_shift, exp_shift)
    old_factor, new_factor = (tf.cast(tf.exp(shift - new_shift), tf.float64) for shift in (result.exp_shift, exp_shift))
    return result._replace(
        exp_shift=new_shift,
        exp_sum=result.exp_sum * old_factor + tf.cast(exp_sum, tf.float64) * new_factor,
        sigmoid_sum=result.sigmoid_sum + tf.cast(sigmoid_sum, tf.float64),
    )


# XLA compiles each sum to one loop without temporaries; TensorFlow's own operations take twice the time. Each call of a
# compiled function has a cost, so one call computes everything.

Reduced = tuple[Tensor, Tensor, Tensor, Tensor, Tensor]
"""Of some items: items better minus items worse than the target, block maxima, exp_shift, exp_sum, sigmoid_sum."""


@tf.function(jit_compile=True)
def _reduce(ranked: Tensor, scores: Tensor, target_scores: Tensor, bias: Tensor) -> Reduced:
    return _better_minus_worse(ranked, target_scores), _block_maxima(ranked), *_shifted_sums(scores, bias)


@tf.function(jit_compile=True)
def _reduce_unshifted(ranked: Tensor, scores: Tensor, target_scores: Tensor, bias: Tensor) -> Reduced:
    return _better_minus_worse(ranked, target_scores), _block_maxima(ranked), *_unshifted_sums(scores, bias)


@tf.function(jit_compile=True)
def _better_minus_worse(ranked: Tensor, target_scores: Tensor) -> Tensor:
    return tf.reduce_sum(tf.sign(ranked - target_scores), axis=0)


def _shifted_sums(scores: Tensor, bias: Tensor) -> tuple[Tensor, Tensor, Tensor]:
    """Return (users,) a shift, the sums of exp(score - shift) and of sigmoid(score)."""
    maxima = tf.reduce_max(scores, axis=0)
    exp_sum = tf.reduce_sum(tf.exp(scores - maxima), axis=0)
    return maxima + bias, exp_sum, tf.reduce_sum(tf.sigmoid(scores + bias), axis=0)


def _unshifted_sums(scores: Tensor, bias: Tensor) -> tuple[Tensor, Tensor, Tensor]:
    """Return the same with a shift of zero, which needs half of the exponentials."""
    exponentials = tf.exp(scores + bias)
    shift = tf.zeros(scores.shape[1:])
    return shift, tf.reduce_sum(exponentials, axis=0), tf.reduce_sum(exponentials / (1 + exponentials), axis=0)


def _block_maxima(ranked: Tensor) -> Tensor:
    """Return the (blocks, users) highest score of every block of items; the last block may be smaller."""
    count, num_users = ranked.shape
    num_missing = -count % BLOCK_ITEMS
    padded = tf.pad(ranked, [[0, num_missing], [0, 0]], constant_values=-np.inf)
    return tf.reduce_max(tf.reshape(padded, [-1, BLOCK_ITEMS, num_users]), axis=1)


def _merge_top_items(result: ScanResult, ranked: Tensor, block_maxima: Tensor, first: Tensor) -> ScanResult:
    """Return the result with the top items of the chunk that starts at item `first`, (items, users) scores `ranked`.

    First the `depth` best blocks are selected by their maxima. A block that is not selected is beaten by `depth`
    others, each with an item above all items of that block, so no top item is lost.
    """
    depth, count, num_users = result.top_scores.shape[1], ranked.shape[0], ranked.shape[1]
    # Earlier top scores come first: most blocks are then rejected by one comparison with the lowest of them.
    _, selected = tf.math.top_k(tf.concat([result.top_scores, tf.transpose(block_maxima)], axis=1), depth)
    # In the order of the catalogue, so that of equal scores the first item comes first; entries without a block last.
    blocks = tf.sort(tf.where(selected < depth, count, selected - depth), axis=1)
    items = tf.reshape(blocks[:, :, None] * BLOCK_ITEMS + tf.range(BLOCK_ITEMS), [num_users, depth * BLOCK_ITEMS])
    cells = tf.minimum(items, count - 1) * num_users + tf.range(num_users)[:, None]
    scores = tf.where(items < count, tf.gather(tf.reshape(ranked, [-1]), cells), -np.inf)
    top_scores, indices = tf.math.top_k(tf.concat([result.top_scores, scores], axis=1), depth)
    new_items = first + tf.gather(items, tf.maximum(indices - depth, 0), batch_dims=1)
    old_items = tf.gather(result.top_items, tf.minimum(indices, depth - 1), batch_dims=1)
    return result._replace(top_scores=top_scores, top_items=tf.where(indices < depth, old_items, new_items))
