"""One pass over the catalogue for some users: how many items beat the target, which are best, and sums over all.

Scores are made chunk by chunk, items as rows and users as columns, and used while they are in the processor's cache;
they never exist as a whole. The loop over chunks is in the graph, and all shapes but the numbers of seen items are
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
"""How many items are scored by one product; with 128 users that is 32 MiB of scores."""

CACHED_ITEMS = 1 << 13
"""How many of them are then summed up together: few enough to be read from memory once, in whole blocks."""

BLOCK_ITEMS = 16
"""How many neighbouring items are represented by the best of them while the best items are looked for."""

NEAR = 75.0
"""Exponentials of scores that are not further from zero can be added up in float32 as they are."""


class Cells(NamedTuple):
    """Some (item, user) cells of the scores, in the order of the items.

    places: (cells, 2) item and user.
    bounds: (chunks + 1,) where the cells of each chunk of items begin, and where the last ones end.
    """

    places: Tensor
    bounds: Tensor

    @classmethod
    def of(cls, items: Array, users: Array, num_items: int) -> Cells:
        """The cells of pairs in any order."""
        order = np.argsort(items, kind="stable")
        starts = np.append(np.arange(0, num_items, CHUNK_ITEMS), num_items)
        bounds = np.searchsorted(items[order], starts)
        return cls(tf.constant(np.stack([items, users], axis=1)[order], tf.int32), tf.constant(bounds, tf.int32))

    def write(self, scores: Tensor, values: Tensor, first: Tensor) -> Tensor:
        """The (items, users) scores of the chunk that starts at item `first`, with (users,) values in these cells."""
        number = first // CHUNK_ITEMS
        places = self.places[self.bounds[number] : self.bounds[number + 1]]
        return tf.tensor_scatter_nd_update(scores, places - tf.stack([first, 0]), tf.gather(values, places[:, 1]))


class Found(NamedTuple):
    """What a pass has found for each user. Without a depth only `lead` is kept up.

    lead: (users,) how many more items are better than the target than are worse; excluded ones are worse.
    reference: (users,) a number from which no score is so far above that its exponential overflows.
    exp_sum: (users,) the sum of exp(score - reference).
    sigmoid_sum: (users,) the sum of sigmoid(score).
    top_scores: (users, depth) the best scores of items that are not excluded, -inf where there are fewer.
    top_items: (users, depth) their items; of equal ones the first in the catalogue comes first.
    """

    lead: Tensor
    reference: Tensor
    exp_sum: Tensor
    sigmoid_sum: Tensor
    top_scores: Tensor
    top_items: Tensor

    def numpy(self) -> Found:
        """The same as NumPy arrays."""
        return Found(*(value.numpy() for value in self))

    @classmethod
    def nothing(cls, shape: Shape) -> Found:
        """Before the first item."""
        zeros = tf.zeros([shape.num_users], tf.float64)
        top = [shape.num_users, shape.depth]
        return cls(
            zeros,
            tf.fill([shape.num_users], tf.float32.min),
            zeros,
            zeros,
            tf.fill(top, -np.inf),
            tf.fill(top, PADDING),
        )


class Task(NamedTuple):
    """Whom to scan the catalogue for.

    targets: (users,) items.
    own: the cells of the targets.
    seen: the cells of what is excluded.
    """

    targets: Tensor
    own: Cells
    seen: Cells


@dataclass(frozen=True)
class Shape:
    """What is static in a scan: one is traced for each.

    Args:
        num_items: size of the catalogue.
        num_users: how many users are scanned for at once.
        depth: how many of the best items to keep; with 0 only the lead is found.
        excludes_seen: whether the task's seen cells are excluded.
        is_near: whether all scores are known to be within `NEAR` of zero.
    """

    num_items: int
    num_users: int
    depth: int
    excludes_seen: bool
    is_near: bool

    def task_spec(self) -> Task:
        """Shapes and types of a task."""
        bounds = tf.TensorSpec([-(-self.num_items // CHUNK_ITEMS) + 1], tf.int32)
        cells = Cells(tf.TensorSpec([None, 2], tf.int32), bounds)
        return Task(tf.TensorSpec([self.num_users], tf.int32), cells, cells)


@cache
def scan_of_products(shape: Shape, dim: int) -> Callable[[Tensor, Tensor, Task, Tensor], tuple[Tensor, Found]]:
    """A scan where an item's score is the product of its row and a state.

    It takes the (num_items, dim) rows, (users, dim) states, the task, and a number that every score is too low by, and
    gives the (users,) scores of the targets and what it found.
    """
    rows_spec, states_spec = tf.TensorSpec([shape.num_items, dim]), tf.TensorSpec([shape.num_users, dim])

    @tf.function(input_signature=[rows_spec, states_spec, shape.task_spec(), tf.TensorSpec([])])
    def scan(rows: Tensor, states: Tensor, task: Task, offset: Tensor) -> tuple[Tensor, Found]:
        def products(first: Tensor, count: int) -> Tensor:
            return tf.matmul(tf.slice(rows, [first, 0], [count, dim]), states, transpose_b=True)

        # By the same kind of product as all scores, so that an item with the row of the target has the target's score.
        target_scores = tf.linalg.diag_part(tf.matmul(tf.gather(rows, task.targets), states, transpose_b=True))
        found = _scan(shape, products, target_scores, task, offset)
        return target_scores + offset, found._replace(top_scores=found.top_scores + offset)

    return scan


@cache
def scan_of_scores(shape: Shape) -> Callable[[Tensor, Task], tuple[Tensor, Found]]:
    """A scan of (users, num_items) scores that are there already, and the task; it gives the same."""

    @tf.function(input_signature=[tf.TensorSpec([shape.num_users, shape.num_items]), shape.task_spec()])
    def scan(scores: Tensor, task: Task) -> tuple[Tensor, Found]:
        def transposed(first: Tensor, count: int) -> Tensor:
            return tf.transpose(tf.slice(scores, [0, first], [shape.num_users, count]))

        target_scores = tf.gather(scores, task.targets, batch_dims=1)
        return target_scores, _scan(shape, transposed, target_scores, task, tf.zeros([]))

    return scan


def _scan(
    shape: Shape, score: Callable[[Tensor, int], Tensor], target_scores: Tensor, task: Task, offset: Tensor
) -> Found:
    """All whole chunks of items, in a loop, and then what is left."""
    excluded = tf.fill([shape.num_users], -np.inf)
    survey = _survey_near_zero if shape.is_near else _survey

    def pass_over(first: Tensor, count: int, found: Found) -> Found:
        scores = task.own.write(score(first, count), target_scores, first)
        ranked = task.seen.write(scores, excluded, first) if shape.excludes_seen else scores
        block_maxima = []
        for start in range(0, count, CACHED_ITEMS):
            some_scores, some_ranked = (values[start : start + CACHED_ITEMS] for values in (scores, ranked))
            if shape.depth:
                lead, maxima, *sums = survey(some_ranked, some_scores, target_scores, offset)
                found = _added(found, *sums)
                block_maxima.append(maxima)
            else:
                lead = _lead(some_ranked, target_scores)
            found = found._replace(lead=found.lead + tf.cast(lead, tf.float64))
        return _merged(found, ranked, tf.concat(block_maxima, axis=0), first) if shape.depth else found

    num_chunks, rest = divmod(shape.num_items, CHUNK_ITEMS)
    found = Found.nothing(shape)
    if num_chunks:
        _, found = tf.while_loop(
            lambda number, found: number < num_chunks,
            lambda number, found: (number + 1, pass_over(number * CHUNK_ITEMS, CHUNK_ITEMS, found)),
            (tf.constant(0), found),
            parallel_iterations=1,
        )
    return pass_over(tf.constant(num_chunks * CHUNK_ITEMS), rest, found) if rest else found


def _added(found: Found, reference: Tensor, exp_sum: Tensor, sigmoid_sum: Tensor) -> Found:
    """With the sums over some more items."""
    new = tf.maximum(found.reference, reference)
    old_part, new_part = (tf.cast(tf.exp(part - new), tf.float64) for part in (found.reference, reference))
    return found._replace(
        reference=new,
        exp_sum=found.exp_sum * old_part + tf.cast(exp_sum, tf.float64) * new_part,
        sigmoid_sum=found.sigmoid_sum + tf.cast(sigmoid_sum, tf.float64),
    )


# XLA makes one loop of each sum and holds nothing between; TensorFlow's own operations take twice the time. To start
# what is compiled takes time too, so one start does all.

Survey = tuple[Tensor, Tensor, Tensor, Tensor, Tensor]
"""The lead, the maxima of blocks, and the sums with their reference, of some items."""


@tf.function(jit_compile=True)
def _survey(ranked: Tensor, scores: Tensor, target_scores: Tensor, offset: Tensor) -> Survey:
    return _lead(ranked, target_scores), _block_maxima(ranked), *_sums(scores, offset)


@tf.function(jit_compile=True)
def _survey_near_zero(ranked: Tensor, scores: Tensor, target_scores: Tensor, offset: Tensor) -> Survey:
    return _lead(ranked, target_scores), _block_maxima(ranked), *_sums_near_zero(scores, offset)


@tf.function(jit_compile=True)
def _lead(ranked: Tensor, target_scores: Tensor) -> Tensor:
    return tf.reduce_sum(tf.sign(ranked - target_scores), axis=0)


def _sums(scores: Tensor, offset: Tensor) -> tuple[Tensor, Tensor, Tensor]:
    """(users,) a reference, and sums of exp(score - reference) and of sigmoid(score)."""
    highest = tf.reduce_max(scores, axis=0)
    exp_sum = tf.reduce_sum(tf.exp(scores - highest), axis=0)
    return highest + offset, exp_sum, tf.reduce_sum(tf.sigmoid(scores + offset), axis=0)


def _sums_near_zero(scores: Tensor, offset: Tensor) -> tuple[Tensor, Tensor, Tensor]:
    """The same with zero as the reference and half of the exponentials."""
    powers = tf.exp(scores + offset)
    reference = tf.zeros(scores.shape[1:])
    return reference, tf.reduce_sum(powers, axis=0), tf.reduce_sum(powers / (1 + powers), axis=0)


def _block_maxima(ranked: Tensor) -> Tensor:
    """(blocks, users) the best score of every block of items; the last block may be smaller."""
    count, num_users = ranked.shape
    missing = -count % BLOCK_ITEMS
    filled = tf.pad(ranked, [[0, missing], [0, 0]], constant_values=-np.inf)
    return tf.reduce_max(tf.reshape(filled, [-1, BLOCK_ITEMS, num_users]), axis=1)


def _merged(found: Found, ranked: Tensor, block_maxima: Tensor, first: Tensor) -> Found:
    """With the best of the items from `first` on, whose (items, users) scores are `ranked`.

    A block of items stands in the first choice as its best item. A block that is not chosen is beaten by `depth`
    others, each of which has an item that beats all of its own, so no item is lost.
    """
    depth, count, num_users = found.top_scores.shape[1], ranked.shape[0], ranked.shape[1]
    # What was found before comes first: most blocks are then rejected by one comparison with the worst of it.
    _, chosen = tf.math.top_k(tf.concat([found.top_scores, tf.transpose(block_maxima)], axis=1), depth)
    # In the order of the catalogue, so that of equal items the first comes first; behind them what is no block.
    blocks = tf.sort(tf.where(chosen < depth, count, chosen - depth), axis=1)
    items = tf.reshape(blocks[:, :, None] * BLOCK_ITEMS + tf.range(BLOCK_ITEMS), [num_users, depth * BLOCK_ITEMS])
    cells = tf.minimum(items, count - 1) * num_users + tf.range(num_users)[:, None]
    scores = tf.where(items < count, tf.gather(tf.reshape(ranked, [-1]), cells), -np.inf)
    top_scores, places = tf.math.top_k(tf.concat([found.top_scores, scores], axis=1), depth)
    new_items = first + tf.gather(items, tf.maximum(places - depth, 0), batch_dims=1)
    old_items = tf.gather(found.top_items, tf.minimum(places, depth - 1), batch_dims=1)
    return found._replace(top_scores=top_scores, top_items=tf.where(places < depth, old_items, new_items))
