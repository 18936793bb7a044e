"""Layouts of batches: length buckets for CPUs, packed rows for GPUs, and one static shape for XLA."""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple, TypeVar

import numpy as np
import tensorflow as tf

from aprec_like.interactions import PADDING
from aprec_like.types import Array, Tensor

BUCKET_COST = 600
"""Positions of padding that a training step computes in about the time that one more bucket costs it on a CPU."""

STATIC = 0
"""Layout of batches of static shape: one bucket, padded to the full length."""

LENGTH_STEP = 8
"""Lengths of buckets are multiples of this, so that there are few different shapes."""


class LengthBucket(NamedTuple):
    """Sequences of a batch that have about the same length, cut to the longest of them.

    users: (sequences,) rows of the training data.
    inputs: (sequences, length) items, padded on the left with PADDING, MASK where an item is masked; for matrix
        factorisation the users.
    gaps: for networks that need times, one array: (sequences, length) codes of `TimeGaps`, 0 where there is padding.
    """

    users: Tensor
    inputs: Tensor
    gaps: tuple[Tensor, ...] = ()


@dataclass(frozen=True)
class PackedRows:
    """Layout of packed batches.

    Args:
        num_rows: rows of a batch.
        num_targets: number of targets that a batch has room for.
    """

    num_rows: int
    num_targets: int


class Packing(NamedTuple):
    """Where the cells of packed rows belong.

    positions: (rows, length) position of the item counted such that a sequence's last item has length - 1.
    segments: (rows, length) number of the sequence, PADDING where there is none.
    """

    positions: Tensor
    segments: Tensor


class PackedBucket(NamedTuple):
    """Sequences of a batch, several in each row.

    users: (sequences,) rows of the training data.
    inputs: (rows, length) as in a `LengthBucket`, with PADDING behind the sequences of a row.
    packing: which sequence and position a cell belongs to.
    gaps: as in a `LengthBucket`, an array of (rows, length).
    """

    users: Tensor
    inputs: Tensor
    packing: Packing
    gaps: tuple[Tensor, ...] = ()


class Sequences(NamedTuple):
    """The sequences of a batch before they are laid out, padded on the left.

    users: (batch,) rows of the training data.
    inputs: (batch, length) as in a `LengthBucket`.
    targets: (batch, length) the items to predict, PADDING where there is none.
    gaps: as in a `LengthBucket`.
    """

    users: Tensor
    inputs: Tensor
    targets: Tensor
    gaps: tuple[Tensor, ...] = ()


class Batch(NamedTuple):
    """One training batch.

    buckets: the sequences, grouped by length to reduce padding.
    users: (targets,) the user of each target.
    targets: (targets,) the items to predict; PADDING where there is none, in batches of static shape.
    flat_positions: (targets,) where each target is predicted: index into all positions of all buckets, flattened to one
        axis, bucket by bucket and sequence by sequence.
    """

    buckets: tuple[LengthBucket | PackedBucket, ...]
    users: Tensor
    targets: Tensor
    flat_positions: Tensor


class PackedBatch(NamedTuple):
    """A batch in two layouts, of which `packed` is used if all sequences fit into it, else `unpacked`.

    fits: 1 or 0; int32, because that stays in host memory, where the layout is chosen.
    """

    packed: Batch
    unpacked: Batch
    fits: Tensor

    @property
    def targets(self) -> Tensor:
        """(targets,) the items to predict, the same in both layouts."""
        return self.unpacked.targets


Layout = int | PackedRows
"""Number of length buckets, STATIC, or packed rows."""

AnyBatch = Batch | PackedBatch
B = TypeVar("B", bound=AnyBatch)


def cast_batch(batch: B, dtype: tf.DType) -> B:
    """Return a batch with all its arrays of integers in one dtype."""
    if isinstance(batch, PackedBatch):
        return batch._replace(packed=cast_batch(batch.packed, dtype), unpacked=cast_batch(batch.unpacked, dtype))
    cast: B = tf.nest.map_structure(lambda integers: tf.cast(integers, dtype), batch)
    return cast


def cheapest_num_buckets(lengths: Array, batch_size: int) -> int:
    """Number of buckets with the least total cost of padding and buckets, for batches of sequences of such lengths."""

    def cost(num_buckets: int) -> float:
        ends = np.maximum(0, np.arange(1, num_buckets + 1) / num_buckets - 1 / (2 * batch_size))
        return batch_size * float(np.quantile(lengths, ends).mean()) + BUCKET_COST * num_buckets

    return min((1, 2, 4, 8), key=cost)


def static_batch(sequences: Sequences, positions: Tensor) -> Batch:
    """Make a batch of static shape, in which the targets are (batch, n) at (batch, n) positions of the sequences."""
    users, inputs, targets, gaps = sequences
    batch, length = inputs.shape
    flat_positions = tf.range(batch, dtype=tf.int64)[:, None] * length + tf.cast(positions, tf.int64)
    flat = (tf.reshape(values, [-1]) for values in (targets, flat_positions))
    return Batch((LengthBucket(users, inputs, gaps),), tf.repeat(users, targets.shape[1]), *flat)


def targets_first(is_target: Tensor) -> Tensor:
    """Return all flat positions of a boolean array, those of True first, both in their order."""
    order = tf.argsort(tf.cast(~tf.reshape(is_target, [-1]), tf.int32), stable=True)
    return tf.cast(order, tf.int64)


def unpacked_batch(sequences: Sequences, num_targets: int) -> Batch:
    """Make a batch with a row per sequence; targets come first, in the order of the sequences, then PADDING."""
    users, inputs, targets, gaps = sequences
    flat_positions = targets_first(targets != PADDING)[:num_targets]
    flat_users = tf.gather(users, flat_positions // inputs.shape[1])
    flat_targets = tf.gather(tf.reshape(targets, [-1]), flat_positions)
    return Batch((LengthBucket(users, inputs, gaps),), flat_users, flat_targets, flat_positions)


def bucketed_batch(sequences: Sequences, lengths: Tensor, num_buckets: int, min_length: int) -> Batch:
    """Make a batch from sequences of ascending lengths, in buckets of equal size.

    The padding that all sequences of a bucket share is cut, down to `min_length` positions.
    """
    users, inputs, targets, gaps = sequences
    batch, length = inputs.shape
    buckets, flat_targets, flat_users = [], [], []
    for rows in np.array_split(np.arange(batch), min(num_buckets, batch)):
        bucket = slice(rows[0], rows[-1] + 1)
        rounded = (tf.maximum(lengths[rows[-1]], min_length) + LENGTH_STEP - 1) // LENGTH_STEP * LENGTH_STEP
        start = length - tf.minimum(rounded, length)
        cut_gaps = tuple(values[bucket, start:] for values in gaps)
        buckets.append(LengthBucket(users[bucket], inputs[bucket, start:], cut_gaps))
        flat_targets.append(tf.reshape(targets[bucket, start:], [-1]))
        flat_users.append(tf.repeat(users[bucket], length - start))
    targets, users = tf.concat(flat_targets, axis=0), tf.concat(flat_users, axis=0)
    flat_positions = tf.where(targets != PADDING)[:, 0]
    return Batch(tuple(buckets), tf.gather(users, flat_positions), tf.gather(targets, flat_positions), flat_positions)
