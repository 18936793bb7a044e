"""The part of a batch that one of several replicas computes (`tf.distribute`).

Every replica gets the whole batch, which is small, and takes adjacent rows of every bucket. Whatever is random is drawn
for the whole batch, and a replica takes its rows of it: so any number of replicas draws the same numbers.
"""

from __future__ import annotations

from typing import NamedTuple

import tensorflow as tf

from aprec_like.batches.layouts import Batch, LengthBucket, PackedBucket, targets_first
from aprec_like.interactions import PADDING
from aprec_like.types import Tensor


class Replica(NamedTuple):
    """The replica that a training step is traced for.

    number: from 0.
    num_replicas: of all devices and hosts.
    """

    number: Tensor
    num_replicas: int


def current_replica() -> Replica:
    """Return the replica that is traced; without a strategy, and between replicas, the only one."""
    context = tf.distribute.get_replica_context()
    if context is None or context.num_replicas_in_sync == 1:
        return Replica(tf.constant(0), 1)
    return Replica(tf.convert_to_tensor(context.replica_id_in_sync_group), context.num_replicas_in_sync)


def own_rows(values: Tensor, num_rows: int | Tensor) -> Tensor:
    """Return the `num_rows` rows of this replica, of values for all rows of a batch (padded to full replicas)."""
    start = current_replica().number * num_rows
    begin = tf.concat([start[None], tf.zeros([len(values.shape) - 1], start.dtype)], axis=0)
    return tf.slice(values, begin, tf.concat([tf.stack([num_rows]), tf.shape(values)[1:]], axis=0))


class Shard(NamedTuple):
    """A replica's part of a batch.

    batch: the part, itself a batch.
    whole: the batch of all replicas.
    target_numbers: (targets,) place of each target among those of `whole`, PADDING where there is no target; `None` if
        the part is the whole.
    """

    batch: Batch
    whole: Batch
    target_numbers: Tensor | None = None

    def own_targets(self, values: Tensor) -> Tensor:
        """Return the rows of the part's targets, of values with a row per target of the whole batch."""
        return values if self.target_numbers is None else tf.gather(values, tf.maximum(self.target_numbers, 0))

    def own_sequences(self, values: Tensor) -> Tensor:
        """Return the rows of the part's sequences, of values with a row per sequence of the whole batch."""
        if self.target_numbers is None:
            return values
        parts = tf.split(values, [bucket.users.shape[0] for bucket in self.whole.buckets])
        return tf.concat([_own_part(part, fill=0) for part in parts], axis=0)


def take_shard(batch: Batch) -> Shard:
    """Return the part of a batch that the current replica computes.

    Where the number of targets is static, it stays so: there are as many as the part may have, and the targets come
    first.
    """
    if current_replica().num_replicas == 1:
        return Shard(batch, batch)
    num_targets = batch.targets.shape[0]
    batch = batch._replace(buckets=tuple(_with_static_rows(bucket) for bucket in batch.buckets))
    sizes = [tf.size(bucket.inputs) for bucket in batch.buckets]
    # For every position of the batch, the number of its target.
    numbers = tf.range(tf.size(batch.targets))
    numbers = tf.where(batch.targets == PADDING, PADDING, numbers)
    places = tf.scatter_nd(batch.flat_positions[:, None], numbers + 1, [tf.cast(tf.add_n(sizes), tf.int64)]) - 1
    bucket_places = [
        _own_part(tf.reshape(part, [bucket.inputs.shape[0], *_trailing(bucket.inputs)]), fill=PADDING)
        for part, bucket in zip(tf.split(places, sizes, num=len(sizes)), batch.buckets, strict=True)
    ]
    own = tf.concat([tf.reshape(part, [-1]) for part in bucket_places], axis=0)
    if num_targets is None:
        flat_positions = tf.where(own != PADDING)[:, 0]
    else:
        flat_positions = targets_first(own != PADDING)[: min(num_targets, own.shape[0])]
    target_numbers = tf.gather(own, flat_positions)
    found = tf.maximum(target_numbers, 0)
    targets = tf.where(target_numbers == PADDING, PADDING, tf.gather(batch.targets, found))
    buckets = tuple(_own_bucket(bucket) for bucket in batch.buckets)
    part = Batch(buckets, tf.gather(batch.users, found), targets, flat_positions)
    return Shard(part, batch, target_numbers)


def _with_static_rows(bucket: LengthBucket | PackedBucket) -> LengthBucket | PackedBucket:
    """Return the bucket with inputs whose number of rows is known, which a cut of padding hides."""
    if isinstance(bucket, PackedBucket):
        return bucket
    shape = [bucket.users.shape[0], None]
    gaps = tuple(tf.ensure_shape(gaps, shape) for gaps in bucket.gaps)
    return bucket._replace(inputs=tf.ensure_shape(bucket.inputs, shape), gaps=gaps)


def _own_bucket(bucket: LengthBucket | PackedBucket) -> LengthBucket | PackedBucket:
    inputs, gaps = _own_part(bucket.inputs, fill=PADDING), tuple(_own_part(gaps, fill=0) for gaps in bucket.gaps)
    if not isinstance(bucket, PackedBucket):
        return LengthBucket(_own_part(bucket.users, fill=0), inputs, gaps)
    packing = bucket.packing._replace(
        positions=_own_part(bucket.packing.positions, fill=0),
        segments=_own_part(bucket.packing.segments, fill=PADDING),
    )
    return PackedBucket(bucket.users, inputs, packing, gaps)


def _own_part(values: Tensor, fill: int) -> Tensor:
    """Return this replica's rows of the (rows, ...) values of a bucket, the last ones padded."""
    num_replicas = current_replica().num_replicas
    num_rows = -(-values.shape[0] // num_replicas)
    missing = num_rows * num_replicas - values.shape[0]
    padded = tf.pad(values, [[0, missing]] + [[0, 0]] * (len(values.shape) - 1), constant_values=fill)
    return tf.reshape(own_rows(padded, num_rows), [num_rows, *_trailing(values)])


def _trailing(values: Tensor) -> list[int | Tensor]:
    """Return the sizes of all axes but the first, static where they are known."""
    sizes = tf.shape(values)
    return [sizes[axis] if size is None else size for axis, size in enumerate(values.shape) if axis > 0]
