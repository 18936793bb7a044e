"""Sequences to tf.data: which users make up a batch, and what is asked of a model at every position."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
import tensorflow as tf

from aprec_like.errors import InputError
from aprec_like.interactions import PADDING, Array, Interactions

Tensor = Any
"""A `tf.Tensor`; TensorFlow ships no types."""


class Batch(NamedTuple):
    """One training batch.

    users: (batch,) rows of the training data.
    items: (batch, length) inputs, padded on the left.
    targets: (batch, length) the item to predict at each position; PADDING where there is none.
    rejected: (batch, width) sorted distinct training items of each user, padded on the right with
        num_items; of width 0 unless asked for.
    """

    users: Tensor
    items: Tensor
    targets: Tensor
    rejected: Tensor


@dataclass(frozen=True)
class ShiftedExamples:
    """Every position predicts the item that follows it.

    Args:
        length: how many positions; the last `length + 1` training items of a user are used.
    """

    length: int

    @property
    def window(self) -> int:
        """How many of a user's last training items an example is made of."""
        return self.length + 1

    def split(self, window: Tensor) -> tuple[Tensor, Tensor]:
        """(batch, length) inputs and targets from a (batch, length + 1) window; no input, no target."""
        items = window[:, :-1]
        return items, tf.where(items == PADDING, PADDING, window[:, 1:])


def trainable_users(train: Interactions) -> Array:
    """Rows of the users that give an example: those with two or more training interactions."""
    return np.flatnonzero(train.lengths >= 2)


def steps_per_epoch(num_users: int, batch_size: int, max_steps: int) -> int:
    """Whole batches of distinct users, at most `max_steps`; of fewer users than `batch_size`, one batch of them all."""
    return min(max_steps, max(1, num_users // batch_size))


def make_batches(
    train: Interactions,
    examples: ShiftedExamples,
    batch_size: int,
    max_steps: int,
    seed: int,
    *,
    with_rejected: bool = False,
    first_epoch: int = 0,
) -> tf.data.Dataset:
    """Endless batches, one epoch after the other, each epoch in a fresh random order of the users.

    Batch i of epoch e is a pure function of (seed, e, i), so that a run can go on from any epoch. Everything
    is gathered in the graph from flat arrays; nothing is done in Python per user or per batch. Users left over
    after the last whole batch sit the epoch out.
    """
    users = trainable_users(train)
    if len(users) == 0:
        raise InputError("training needs a user with at least two training interactions. Received: none")
    steps = steps_per_epoch(len(users), batch_size, max_steps)
    batch_size = min(batch_size, len(users))
    rows_of_users, items, offsets = tf.constant(users), tf.constant(train.items), tf.constant(train.offsets)
    rejected_items = _rejected_items(train) if with_rejected else _no_items

    def shuffled_rows(epoch: Tensor) -> tf.data.Dataset:
        rows = tf.random.experimental.stateless_shuffle(rows_of_users, seed=[seed, epoch], alg="philox")
        return tf.data.Dataset.from_tensors(tf.reshape(rows[: steps * batch_size], [steps, batch_size])).unbatch()

    def batch(rows: Tensor) -> Batch:
        starts, ends = tf.gather(offsets, rows), tf.gather(offsets, rows + 1)
        positions = ends[:, None] + tf.range(-examples.window, 0, dtype=offsets.dtype)
        window = _gather_or(PADDING, items, positions, positions >= starts[:, None])
        inputs, targets = examples.split(window)
        return Batch(rows, inputs, targets, rejected_items(rows))

    epochs = tf.data.Dataset.range(first_epoch, tf.int64.max)
    return epochs.flat_map(shuffled_rows).map(batch, num_parallel_calls=2, deterministic=True).prefetch(4)


def _rejected_items(train: Interactions) -> Callable[[Tensor], Tensor]:
    """A function from rows to the sorted distinct items of each, padded on the right with num_items."""
    flat_items, flat_offsets = train.distinct_items()
    width = int(np.diff(flat_offsets).max())
    if width >= train.num_items:
        raise InputError("reject_history needs items that the user has not interacted with. Received: a user with all")
    items, offsets = tf.constant(flat_items), tf.constant(flat_offsets)

    def rejected_items(rows: Tensor) -> Tensor:
        starts, ends = tf.gather(offsets, rows), tf.gather(offsets, rows + 1)
        positions = starts[:, None] + tf.range(width, dtype=offsets.dtype)
        return _gather_or(train.num_items, items, positions, positions < ends[:, None])

    return rejected_items


def _no_items(rows: Tensor) -> Tensor:
    return tf.zeros([rows.shape[0], 0], tf.int32)


def _gather_or(filler: int, items: Tensor, positions: Tensor, is_item: Tensor) -> Tensor:
    """`items` at `positions` where there is one, `filler` elsewhere."""
    return tf.where(is_item, tf.gather(items, tf.where(is_item, positions, 0)), filler)
