"""The items that the users of a batch have seen in training, for losses that leave them out."""

from __future__ import annotations

import numpy as np
import tensorflow as tf

from aprec_like.batches.layouts import Batch
from aprec_like.interactions import PADDING, Interactions
from aprec_like.losses import LeftOut


class SeenItems:
    """The distinct training items of every user, as constants of the graph.

    Args:
        train: the training interactions.
    """

    def __init__(self, train: Interactions) -> None:
        items, offsets = train.distinct_items()
        self.items, self.offsets = tf.constant(items, tf.int64), tf.constant(offsets, tf.int64)
        self.num_users, self.max_count = train.num_users, int(np.diff(offsets).max(initial=1))

    def left_out(self, batch: Batch) -> LeftOut:
        """The items of the users of a batch; a row per sequence."""
        users = tf.cast(tf.concat([bucket.users for bucket in batch.buckets], axis=0), tf.int64)
        rows = tf.range(users.shape[0], dtype=tf.int64)
        # Positions know their user; this finds the user's row. A user that comes twice has equal rows.
        row_of_user = tf.math.unsorted_segment_max(tf.cast(rows, tf.int32), users, self.num_users)
        position_rows = tf.gather(row_of_user, batch.users)
        starts, ends = tf.gather(self.offsets, users), tf.gather(self.offsets, users + 1)
        if batch.targets.shape[0] is None:
            counts = ends - starts
            pair_rows = tf.repeat(rows, counts)
            shifts = tf.gather(starts - tf.cumsum(counts, exclusive=True), pair_rows)
            places = tf.range(tf.reduce_sum(counts)) + shifts
            return LeftOut(position_rows, pair_rows, tf.gather(self.items, places), users.shape[0])
        places = starts[:, None] + tf.range(self.max_count, dtype=tf.int64)
        is_place = places < ends[:, None]
        items = tf.where(is_place, tf.gather(self.items, tf.where(is_place, places, 0)), PADDING)
        pair_rows = tf.broadcast_to(rows[:, None], items.shape)
        return LeftOut(position_rows, tf.reshape(pair_rows, [-1]), tf.reshape(items, [-1]), users.shape[0])
