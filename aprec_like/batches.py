"""Sequences to tf.data: what a training case is, and what is asked of a model at which positions."""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
import tensorflow as tf

from aprec_like.errors import InputError
from aprec_like.interactions import MASK, PADDING, Array, Interactions

Tensor = Any
"""A `tf.Tensor`; TensorFlow ships no types."""


class Batch(NamedTuple):
    """One training batch.

    users: (batch,) rows of the training data.
    items: (batch, length) inputs, padded on the left; MASK where an item is hidden.
    positions: (batch, targets) where in `items` something is to be predicted.
    targets: (batch, targets) the item to predict there; PADDING where there is none.
    """

    users: Tensor
    items: Tensor
    positions: Tensor
    targets: Tensor


class FlatSequences(NamedTuple):
    """The training data in the graph: all items, and where each user's begin and end."""

    items: Tensor
    offsets: Tensor

    def last(self, users: Tensor, length: int) -> Tensor:
        """(batch, length) the last training items of users, padded on the left."""
        starts, ends = tf.gather(self.offsets, users), tf.gather(self.offsets, users + 1)
        positions = ends[:, None] + tf.range(-length, 0, dtype=self.offsets.dtype)
        is_item = positions >= starts[:, None]
        return tf.where(is_item, tf.gather(self.items, tf.where(is_item, positions, 0)), PADDING)

    def lengths(self, users: Tensor) -> Tensor:
        """(batch,) how many training items users have."""
        return tf.gather(self.offsets, users + 1) - tf.gather(self.offsets, users)


class Examples(ABC):
    """How training data becomes inputs and targets. Subclasses are frozen dataclasses."""

    @abstractmethod
    def cases(self, train: Interactions) -> Array:
        """What an epoch passes over once: numbers that `make` understands."""

    @abstractmethod
    def make(self, data: FlatSequences, cases: Tensor, seed: Tensor) -> Batch:
        """A batch from (batch,) cases; everything random in it is a function of the (2,) seed."""


@dataclass(frozen=True)
class ShiftedExamples(Examples):
    """A case is a user; every position predicts the item that follows it.

    Args:
        length: how many positions; the last `length + 1` training items of a user are used.
    """

    length: int

    def cases(self, train: Interactions) -> Array:
        """Users with an item and one that follows it."""
        return np.flatnonzero(train.lengths >= 2)

    def make(self, data: FlatSequences, cases: Tensor, seed: Tensor) -> Batch:
        """Inputs and targets are the same window, one place apart."""
        window = data.last(cases, self.length + 1)
        items = window[:, :-1]
        targets = tf.where(items == PADDING, PADDING, window[:, 1:])
        return Batch(cases, items, tf.broadcast_to(tf.range(self.length), tf.shape(items)), targets)


@dataclass(frozen=True)
class MaskedExamples(Examples):
    """A case is a user; some items are hidden and are to be found from what stands on both sides of them.

    Args:
        length: how many of a user's last training items are used.
        probability: share of items to hide, of all the training items of the user.
        max_masks: hide no more than this; at least one item is always hidden.
    """

    length: int
    probability: float
    max_masks: int

    def cases(self, train: Interactions) -> Array:
        """Users with any item."""
        return np.flatnonzero(train.lengths >= 1)

    def make(self, data: FlatSequences, cases: Tensor, seed: Tensor) -> Batch:
        """Hidden positions are drawn without replacement, each real position equally likely."""
        window = data.last(cases, self.length)
        is_item = window != PADDING
        order = tf.random.stateless_uniform(tf.shape(window), seed, dtype=tf.float32, alg="philox")
        places = tf.argsort(tf.where(is_item, order, 2.0), axis=1, stable=True)[:, : self.num_places]
        num_items = tf.reduce_sum(tf.cast(is_item, tf.int32), axis=1)
        counts = tf.minimum(self.num_masks(data.lengths(cases)), num_items)
        is_hidden = tf.range(self.num_places)[None] < counts[:, None]
        targets = tf.where(is_hidden, tf.gather(window, places, batch_dims=1), PADDING)
        at = tf.reduce_any((places[:, :, None] == tf.range(self.length)) & is_hidden[:, :, None], axis=1)
        return Batch(cases, tf.where(at, MASK, window), places, targets)

    @property
    def num_places(self) -> int:
        """How many positions of a sequence can be hidden at the most."""
        return min(self.length, self.max_masks)

    def num_masks(self, lengths: Tensor) -> Tensor:
        """How many items to hide in sequences of these lengths; halves are rounded to even."""
        wanted = tf.round(self.probability * tf.cast(lengths, tf.float64))
        return tf.minimum(self.max_masks, tf.maximum(1, tf.cast(wanted, tf.int32)))


@dataclass(frozen=True)
class PairExamples(Examples):
    """A case is an interaction: the user is the input, the item the target."""

    def cases(self, train: Interactions) -> Array:
        """All interactions."""
        return np.arange(train.num_interactions)

    def make(self, data: FlatSequences, cases: Tensor, seed: Tensor) -> Batch:
        """One target per interaction; there are no input items."""
        users = tf.searchsorted(data.offsets, cases, side="right", out_type=tf.int64) - 1
        nothing = tf.fill([cases.shape[0], 1], PADDING)
        return Batch(users, nothing, tf.zeros_like(nothing), tf.gather(data.items, cases)[:, None])


def steps_per_epoch(num_cases: int, batch_size: int, max_steps: int) -> int:
    """Whole batches of distinct cases, at most `max_steps`; of fewer cases than `batch_size`, one batch of them all."""
    return min(max_steps, max(1, num_cases // batch_size))


def make_batches(
    train: Interactions,
    examples: Examples,
    batch_size: int,
    max_steps: int,
    seed: int,
    *,
    with_replacement: bool = False,
    first_epoch: int = 0,
) -> tf.data.Dataset:
    """Endless batches, one epoch after the other, each epoch in a fresh random order of the cases.

    Batch i of epoch e is a pure function of (seed, e, i), so that a run can go on from any epoch. Everything
    is gathered in the graph from flat arrays; nothing is done in Python per user or per batch. Cases left over
    after the last whole batch sit the epoch out. With replacement, every batch draws its cases anew instead.
    """
    cases = examples.cases(train)
    if len(cases) == 0:
        raise InputError("training needs a user with at least two training interactions. Received: none")
    steps = steps_per_epoch(len(cases), batch_size, max_steps)
    batch_size = min(batch_size, len(cases))
    all_cases = tf.constant(cases)
    data = FlatSequences(tf.constant(train.items), tf.constant(train.offsets))

    def cases_of_epoch(epoch: Tensor) -> tf.data.Dataset:
        epoch_seed = [tf.constant(seed, tf.int64), epoch]
        if with_replacement:
            shape = [steps * batch_size]
            drawn = tf.random.stateless_uniform(shape, epoch_seed, maxval=len(cases), dtype=tf.int64, alg="philox")
            chosen = tf.gather(all_cases, drawn)
        else:
            chosen = tf.random.experimental.stateless_shuffle(all_cases, seed=epoch_seed, alg="philox")
        batches = tf.reshape(chosen[: steps * batch_size], [steps, batch_size])
        seeds = tf.stack(
            [tf.fill([steps], tf.constant(seed, tf.int64)), epoch * steps + tf.range(steps, dtype=tf.int64)], axis=1
        )
        return tf.data.Dataset.from_tensors((batches, seeds)).unbatch()

    def batch(cases: Tensor, seed: Tensor) -> Batch:
        return examples.make(data, cases, seed)

    epochs = tf.data.Dataset.range(first_epoch, tf.int64.max)
    return epochs.flat_map(cases_of_epoch).map(batch, num_parallel_calls=2, deterministic=True).prefetch(4)
