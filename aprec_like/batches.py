"""Training batches as a `tf.data.Dataset`: which inputs a network sees and which targets it predicts where."""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
import tensorflow as tf
from typing_extensions import override

from aprec_like.errors import InputError
from aprec_like.interactions import PADDING, Interactions
from aprec_like.types import Array, Tensor

BUCKET_COST = 600
"""Positions of padding that a training step computes in about the time that one more bucket costs it on a CPU."""

STATIC = 0
"""Value of `num_buckets` for batches of static shape: one bucket, padded to the full length."""

LENGTH_STEP = 8
"""Lengths of buckets are multiples of this, so that there are few different shapes."""


class LengthBucket(NamedTuple):
    """Sequences of a batch that have about the same length, cut to the longest of them.

    users: (sequences,) rows of the training data.
    inputs: (sequences, length) items, padded on the left with PADDING, MASK where an item is masked; for matrix
        factorisation the users.
    """

    users: Tensor
    inputs: Tensor


class Batch(NamedTuple):
    """One training batch.

    buckets: the sequences, grouped by length to reduce padding.
    users: (targets,) the user of each target.
    targets: (targets,) the items to predict; PADDING where there is none, in batches of static shape.
    flat_positions: (targets,) where each target is predicted: index into all positions of all buckets, flattened to one
        axis, bucket by bucket and sequence by sequence.
    """

    buckets: tuple[LengthBucket, ...]
    users: Tensor
    targets: Tensor
    flat_positions: Tensor


class FlatSequences(NamedTuple):
    """The training data as tensors.

    items: (interactions,) the sequences of all users, one after the other.
    offsets: (users + 1,) the start of each user's sequence in `items`, then the end of the last one.
    """

    items: Tensor
    offsets: Tensor

    def last(self, users: Tensor, length: int) -> Tensor:
        """(batch, length) the last training items of users, padded on the left."""
        starts, ends = tf.gather(self.offsets, users), tf.gather(self.offsets, users + 1)
        positions = ends[:, None] + tf.range(-length, 0, dtype=self.offsets.dtype)
        is_item = positions >= starts[:, None]
        return tf.where(is_item, tf.gather(self.items, tf.where(is_item, positions, 0)), PADDING)

    def lengths(self, users: Tensor) -> Tensor:
        """(batch,) number of training items of users."""
        return tf.gather(self.offsets, users + 1) - tf.gather(self.offsets, users)


class Examples(ABC):
    """How a model turns training data into inputs and targets. Subclasses are frozen dataclasses."""

    @abstractmethod
    def cases(self, train: Interactions) -> Array:
        """(cases,) the training cases, as integers that `make_batch` understands; an epoch passes over them once."""

    @abstractmethod
    def make_batch(self, data: FlatSequences, cases: Tensor, seed: Tensor, num_buckets: int) -> Batch:
        """Make a batch from (batch,) cases; everything random in it is a function of the (2,) seed.

        With `num_buckets` of STATIC no padding is cut, and every position has a target or PADDING.
        """

    def best_num_buckets(self, train: Interactions, batch_size: int) -> int:
        """Number of buckets per batch that makes a training step fastest."""
        return 1


@dataclass(frozen=True)
class ShiftedExamples(Examples):
    """A case is a user; every position predicts the item that follows it.

    Args:
        length: number of positions; the last `length + 1` training items of a user are used.
    """

    length: int

    @override
    def cases(self, train: Interactions) -> Array:
        return np.flatnonzero(train.lengths >= 2)

    @override
    def best_num_buckets(self, train: Interactions, batch_size: int) -> int:
        return cheapest_num_buckets(np.minimum(train.lengths[self.cases(train)] - 1, self.length), batch_size)

    @override
    def make_batch(self, data: FlatSequences, cases: Tensor, seed: Tensor, num_buckets: int) -> Batch:
        window = data.last(cases, self.length + 1)
        inputs = window[:, :-1]
        targets = tf.where(inputs == PADDING, PADDING, window[:, 1:])
        return bucketed_batch(cases, inputs, targets, num_buckets)


def cheapest_num_buckets(lengths: Array, batch_size: int) -> int:
    """Number of buckets with the least total cost of padding and buckets, for batches of sequences of such lengths."""

    def cost(num_buckets: int) -> float:
        ends = np.maximum(0, np.arange(1, num_buckets + 1) / num_buckets - 1 / (2 * batch_size))
        return batch_size * float(np.quantile(lengths, ends).mean()) + BUCKET_COST * num_buckets

    return min((1, 2, 4, 8), key=cost)


def static_batch(users: Tensor, inputs: Tensor, targets: Tensor, positions: Tensor) -> Batch:
    """Make a batch of static shape from (batch, length) inputs and (batch, n) targets at (batch, n) positions."""
    batch, length = inputs.shape
    flat_positions = tf.range(batch, dtype=tf.int64)[:, None] * length + tf.cast(positions, tf.int64)
    flat = (tf.reshape(values, [-1]) for values in (targets, flat_positions))
    return Batch((LengthBucket(users, inputs),), tf.repeat(users, targets.shape[1]), *flat)


def bucketed_batch(users: Tensor, inputs: Tensor, targets: Tensor, num_buckets: int, min_length: int = 1) -> Batch:
    """Make a batch from (batch, length) inputs and targets, sorted by length into buckets of equal size.

    The padding that all sequences of a bucket share is cut, down to `min_length` positions.
    """
    batch, length = inputs.shape
    if num_buckets == STATIC:
        return static_batch(users, inputs, targets, tf.broadcast_to(tf.range(length), [batch, length]))
    lengths = tf.reduce_sum(tf.cast(inputs != PADDING, tf.int32), axis=1)
    order = tf.argsort(lengths, stable=True)
    users, inputs, targets, lengths = (tf.gather(values, order) for values in (users, inputs, targets, lengths))
    buckets, flat_targets, flat_users = [], [], []
    for rows in np.array_split(np.arange(batch), min(num_buckets, batch)):
        bucket = slice(rows[0], rows[-1] + 1)
        rounded = (tf.maximum(lengths[rows[-1]], min_length) + LENGTH_STEP - 1) // LENGTH_STEP * LENGTH_STEP
        start = length - tf.minimum(rounded, length)
        buckets.append(LengthBucket(users[bucket], inputs[bucket, start:]))
        flat_targets.append(tf.reshape(targets[bucket, start:], [-1]))
        flat_users.append(tf.repeat(users[bucket], length - start))
    targets, users = tf.concat(flat_targets, axis=0), tf.concat(flat_users, axis=0)
    flat_positions = tf.where(targets != PADDING)[:, 0]
    return Batch(tuple(buckets), tf.gather(users, flat_positions), tf.gather(targets, flat_positions), flat_positions)


@dataclass(frozen=True)
class BatchSettings:
    """How training cases become batches.

    Args:
        batch_size: cases per batch.
        max_steps: maximum number of batches in an epoch, which is otherwise one pass over the cases.
        with_replacement: sample cases with replacement instead of passing over them.
        num_buckets: length buckets per batch; `None` chooses by cost, STATIC gives all batches the same shape.
    """

    batch_size: int
    max_steps: int
    with_replacement: bool = False
    num_buckets: int | None = None


def num_steps_per_epoch(num_cases: int, settings: BatchSettings) -> int:
    """Number of full batches of distinct cases, at most `max_steps`; 1 if there are fewer cases than `batch_size`."""
    return min(settings.max_steps, max(1, num_cases // settings.batch_size))


def make_batches(
    train: Interactions, examples: Examples, settings: BatchSettings, seed: int, *, start: tuple[int, int] = (0, 0)
) -> tf.data.Dataset:
    """Make an infinite dataset of batches, epoch after epoch, each epoch in a new random order of the cases.

    Batch i of epoch e is a pure function of (seed, e, i), so a run can resume from any step of any epoch. Batches are
    gathered from flat arrays in the graph, without Python code per user or per batch. Cases left over after the last
    full batch of an epoch are skipped.

    Args:
        train: the training interactions.
        examples: how they become inputs and targets.
        settings: size, order and shape of batches.
        seed: seed of everything random.
        start: first epoch and first step in it, both from 0.
    """
    cases = examples.cases(train)
    if len(cases) == 0:
        raise InputError("training needs a user with at least two training interactions. Received: none")
    num_steps = num_steps_per_epoch(len(cases), settings)
    batch_size = min(settings.batch_size, len(cases))
    num_buckets = examples.best_num_buckets(train, batch_size) if settings.num_buckets is None else settings.num_buckets
    all_cases = tf.constant(cases)
    data = FlatSequences(tf.constant(train.items), tf.constant(train.offsets))

    def epoch_cases(epoch: Tensor) -> tf.data.Dataset:
        epoch_seed = [tf.constant(seed, tf.int64), epoch]
        if settings.with_replacement:
            shape = [num_steps * batch_size]
            drawn = tf.random.stateless_uniform(shape, epoch_seed, maxval=len(cases), dtype=tf.int64, alg="philox")
            chosen = tf.gather(all_cases, drawn)
        else:
            chosen = tf.random.experimental.stateless_shuffle(all_cases, seed=epoch_seed, alg="philox")
        batches = tf.reshape(chosen[: num_steps * batch_size], [num_steps, batch_size])
        step_numbers = epoch * num_steps + tf.range(num_steps, dtype=tf.int64)
        seeds = tf.stack([tf.fill([num_steps], tf.constant(seed, tf.int64)), step_numbers], axis=1)
        return tf.data.Dataset.from_tensors((batches, seeds)).unbatch()

    def make_batch(cases: Tensor, seed: Tensor) -> Batch:
        return examples.make_batch(data, cases, seed, num_buckets)

    first_epoch, first_step = start
    epochs = tf.data.Dataset.range(first_epoch, tf.int64.max)
    cases_and_seeds = epochs.flat_map(epoch_cases).skip(first_step)
    return cases_and_seeds.map(make_batch, num_parallel_calls=2, deterministic=True).prefetch(4)
