"""Sequences to tf.data: what a training case is, and what is asked of a model at which positions."""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
import tensorflow as tf

from aprec_like.errors import InputError
from aprec_like.interactions import MASK, PADDING, Interactions
from aprec_like.types import Array, Tensor

COST_OF_A_PIECE = 600
"""Positions of padding that a step computes in about the time that one more piece costs it on a CPU."""

STATIC = 0
"""A number of pieces: all sequences padded to the full length."""

LENGTH_STEP = 8
"""Lengths of pieces are multiples of this."""


class Piece(NamedTuple):
    """Sequences of a batch that are about equally long, cut to the longest of them.

    users: (sequences,) rows of the training data.
    inputs: (sequences, length) what the network sees: items, padded on the left, MASK where one is hidden; for a
        network of users, the users.
    """

    users: Tensor
    inputs: Tensor


class Batch(NamedTuple):
    """One training batch.

    pieces: the sequences; padding is cut by putting long and short ones into different pieces.
    users: (targets,) the user of each target.
    targets: (targets,) the items to predict; PADDING where there is none, in batches of static shape.
    places: (targets,) where each target is predicted: the number of a position when all positions of all pieces are
        counted, sequence by sequence.
    """

    pieces: tuple[Piece, ...]
    users: Tensor
    targets: Tensor
    places: Tensor


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
    def make(self, data: FlatSequences, cases: Tensor, seed: Tensor, num_pieces: int) -> Batch:
        """A batch from (batch,) cases; everything random in it is a function of the (2,) seed.

        With `num_pieces` of STATIC nothing is cut, and every position has a target or PADDING.
        """

    def num_pieces(self, train: Interactions, batch_size: int) -> int:
        """Into how many pieces a batch is best cut: as many as save more padding than they cost."""
        return 1


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

    def num_pieces(self, train: Interactions, batch_size: int) -> int:
        """By the lengths of the inputs."""
        return _best_num_pieces(np.minimum(train.lengths[self.cases(train)] - 1, self.length), batch_size)

    def make(self, data: FlatSequences, cases: Tensor, seed: Tensor, num_pieces: int) -> Batch:
        """Inputs and targets are the same window, one place apart."""
        window = data.last(cases, self.length + 1)
        inputs = window[:, :-1]
        targets = tf.where(inputs == PADDING, PADDING, window[:, 1:])
        return _in_pieces(cases, inputs, targets, num_pieces)


@dataclass(frozen=True)
class MaskedExamples(Examples):
    """A case is a user; some items are hidden and are to be found from what stands on both sides of them.

    Args:
        length: how many of a user's last training items are used.
        probability: share of items to hide, of all the training items of the user.
        max_masks: hide no more than this; at least one item is always hidden.
        is_padding_kept: whether the model looks at padding, which then must not be cut.
    """

    length: int
    probability: float
    max_masks: int
    is_padding_kept: bool = False

    def cases(self, train: Interactions) -> Array:
        """Users with any item."""
        return np.flatnonzero(train.lengths >= 1)

    def num_pieces(self, train: Interactions, batch_size: int) -> int:
        """By the lengths of the inputs; one where padding must stay."""
        lengths = np.minimum(train.lengths[self.cases(train)], self.length)
        return 1 if self.is_padding_kept else _best_num_pieces(lengths, batch_size)

    def make(self, data: FlatSequences, cases: Tensor, seed: Tensor, num_pieces: int) -> Batch:
        """Hidden positions are drawn without replacement, each real position equally likely."""
        window = data.last(cases, self.length)
        is_item = window != PADDING
        order = tf.random.stateless_uniform(tf.shape(window), seed, dtype=tf.float32, alg="philox")
        places = tf.argsort(tf.where(is_item, order, 2.0), axis=1, stable=True)[:, : self.num_places]
        num_items = tf.reduce_sum(tf.cast(is_item, tf.int32), axis=1)
        counts = tf.minimum(self.num_masks(data.lengths(cases)), num_items)
        is_drawn = tf.range(self.num_places)[None] < counts[:, None]
        is_hidden = tf.reduce_any((places[:, :, None] == tf.range(self.length)) & is_drawn[:, :, None], axis=1)
        inputs = tf.where(is_hidden, MASK, window)
        if num_pieces == STATIC:
            targets = tf.where(is_drawn, tf.gather(window, places, batch_dims=1), PADDING)
            return _whole(cases, inputs, targets, places)
        shortest = self.length if self.is_padding_kept else 1
        return _in_pieces(cases, inputs, tf.where(is_hidden, window, PADDING), num_pieces, shortest)

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
    """A case is a user with an item: the user is the input, the item the target."""

    def cases(self, train: Interactions) -> Array:
        """The first interaction of every user with every item."""
        pairs = train.rows * train.num_items + train.items
        return np.sort(np.unique(pairs, return_index=True)[1])

    def make(self, data: FlatSequences, cases: Tensor, seed: Tensor, num_pieces: int) -> Batch:
        """One target per interaction."""
        users = tf.searchsorted(data.offsets, cases, side="right", out_type=tf.int64) - 1
        return _whole(users, users[:, None], tf.gather(data.items, cases)[:, None], tf.zeros_like(cases)[:, None])


def _best_num_pieces(lengths: Array, batch_size: int) -> int:
    """The number of pieces at which padding and pieces together cost least, for batches of such lengths."""

    def cost(num_pieces: int) -> float:
        ends = np.maximum(0, np.arange(1, num_pieces + 1) / num_pieces - 1 / (2 * batch_size))
        return batch_size * float(np.quantile(lengths, ends).mean()) + COST_OF_A_PIECE * num_pieces

    return min((1, 2, 4, 8), key=cost)


def _whole(users: Tensor, inputs: Tensor, targets: Tensor, positions: Tensor) -> Batch:
    """A batch of static shape from (batch, length) inputs and (batch, n) targets at (batch, n) positions."""
    batch, length = inputs.shape
    places = tf.range(batch, dtype=tf.int64)[:, None] * length + tf.cast(positions, tf.int64)
    flat = (tf.reshape(values, [-1]) for values in (targets, places))
    return Batch((Piece(users, inputs),), tf.repeat(users, targets.shape[1]), *flat)


def _in_pieces(users: Tensor, inputs: Tensor, targets: Tensor, num_pieces: int, shortest: int = 1) -> Batch:
    """A batch from (batch, length) inputs and targets, in pieces of equal size from short to long, cut on the left.

    Lengths are rounded up, so that there are few different shapes.
    """
    batch, length = inputs.shape
    if num_pieces == STATIC:
        return _whole(users, inputs, targets, tf.broadcast_to(tf.range(length), [batch, length]))
    lengths = tf.reduce_sum(tf.cast(inputs != PADDING, tf.int32), axis=1)
    order = tf.argsort(lengths, stable=True)
    users, inputs, targets, lengths = (tf.gather(values, order) for values in (users, inputs, targets, lengths))
    pieces, flat_targets, flat_users = [], [], []
    for rows in np.array_split(np.arange(batch), min(num_pieces, batch)):
        part = slice(rows[0], rows[-1] + 1)
        rounded = (tf.maximum(lengths[rows[-1]], shortest) + LENGTH_STEP - 1) // LENGTH_STEP * LENGTH_STEP
        start = length - tf.minimum(rounded, length)
        pieces.append(Piece(users[part], inputs[part, start:]))
        flat_targets.append(tf.reshape(targets[part, start:], [-1]))
        flat_users.append(tf.repeat(users[part], length - start))
    targets, users = tf.concat(flat_targets, axis=0), tf.concat(flat_users, axis=0)
    places = tf.where(targets != PADDING)[:, 0]
    return Batch(tuple(pieces), tf.gather(users, places), tf.gather(targets, places), places)


@dataclass(frozen=True)
class BatchSettings:
    """How training cases become batches.

    Args:
        batch_size: cases per batch.
        max_steps: an epoch is one pass over the cases, but no more batches than this.
        with_replacement: sample the cases of every batch with replacement instead of passing over them.
        num_pieces: pieces of similar length per batch; `None` chooses by cost, STATIC gives all batches one shape.
    """

    batch_size: int
    max_steps: int
    with_replacement: bool = False
    num_pieces: int | None = None


def num_steps_per_epoch(num_cases: int, settings: BatchSettings) -> int:
    """Whole batches of distinct cases, at most `max_steps`; with fewer cases than a batch, one batch of them all."""
    return min(settings.max_steps, max(1, num_cases // settings.batch_size))


def make_batches(
    train: Interactions, examples: Examples, settings: BatchSettings, seed: int, *, start: tuple[int, int] = (0, 0)
) -> tf.data.Dataset:
    """Endless batches, one epoch after the other, each epoch in a fresh random order of the cases.

    Batch i of epoch e is a pure function of (seed, e, i), so a run can resume from any step of any epoch. Everything is
    gathered in the graph from flat arrays; nothing is done in Python per user or per batch. Cases left over after the
    last whole batch of an epoch are skipped.

    Args:
        train: the training interactions.
        examples: how they become inputs and targets.
        settings: size, order and shape of batches.
        seed: of everything random.
        start: number of the first epoch and of the first step in it, both from 0.
    """
    cases = examples.cases(train)
    if len(cases) == 0:
        raise InputError("training needs a user with at least two training interactions. Received: none")
    num_steps = num_steps_per_epoch(len(cases), settings)
    batch_size = min(settings.batch_size, len(cases))
    num_pieces = examples.num_pieces(train, batch_size) if settings.num_pieces is None else settings.num_pieces
    all_cases = tf.constant(cases)
    data = FlatSequences(tf.constant(train.items), tf.constant(train.offsets))

    def cases_of_epoch(epoch: Tensor) -> tf.data.Dataset:
        epoch_seed = [tf.constant(seed, tf.int64), epoch]
        if settings.with_replacement:
            shape = [num_steps * batch_size]
            drawn = tf.random.stateless_uniform(shape, epoch_seed, maxval=len(cases), dtype=tf.int64, alg="philox")
            chosen = tf.gather(all_cases, drawn)
        else:
            chosen = tf.random.experimental.stateless_shuffle(all_cases, seed=epoch_seed, alg="philox")
        batches = tf.reshape(chosen[: num_steps * batch_size], [num_steps, batch_size])
        numbers = epoch * num_steps + tf.range(num_steps, dtype=tf.int64)
        seeds = tf.stack([tf.fill([num_steps], tf.constant(seed, tf.int64)), numbers], axis=1)
        return tf.data.Dataset.from_tensors((batches, seeds)).unbatch()

    def make_batch(cases: Tensor, seed: Tensor) -> Batch:
        return examples.make(data, cases, seed, num_pieces)

    first_epoch, first_step = start
    epochs = tf.data.Dataset.range(first_epoch, tf.int64.max)
    chosen = epochs.flat_map(cases_of_epoch).skip(first_step)
    return chosen.map(make_batch, num_parallel_calls=2, deterministic=True).prefetch(4)
