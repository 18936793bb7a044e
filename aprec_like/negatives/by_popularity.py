"""Sampling of negatives in proportion to their training interactions, with rejection."""

from __future__ import annotations

import numpy as np

from aprec_like.devices import has_gpu
from aprec_like.errors import InputError
from aprec_like.interactions import Interactions
from aprec_like.lazy_tensorflow import tf
from aprec_like.negatives.sampler import SampleShape, Shape
from aprec_like.negatives.search import search_sorted
from aprec_like.out_of_core import ArrayWriter, share_tensor, slices
from aprec_like.types import Tensor

NUM_TRIES = 8
"""Items sampled at once for a negative that may be rejected, so that a second round is rarely needed."""


def popularity_sampler(train: Interactions, *, reject_positive: bool, reject_history: bool) -> SampleShape:
    """Return a sampler of the items of random training interactions, which samples again where one is rejected."""
    # On a GPU int32 arrays lie in host memory and would be copied at every step; int64 ones lie on the device.
    items = tf.constant(train.items, tf.int64) if has_gpu() else share_tensor(train.items)
    seen_pairs = _SeenPairs(train) if reject_history else None

    def is_rejected(sampled: Tensor, users: Tensor, positives: Tensor) -> Tensor:
        if seen_pairs is not None:
            return seen_pairs.contain(users, sampled)
        return sampled == positives[:, None] if reject_positive else tf.zeros_like(sampled, tf.bool)

    def sample_once(shape: Shape, users: Tensor, positives: Tensor, seed: Tensor) -> tuple[Tensor, Tensor]:
        """Return for each cell the first of `NUM_TRIES` items that is not rejected, and whether all of them are."""
        shape_of_tries = [shape[0], shape[1] * NUM_TRIES]
        rows = tf.random.stateless_uniform(
            shape_of_tries, seed, maxval=train.num_interactions, dtype=tf.int64, alg="philox"
        )
        tries = tf.cast(tf.gather(items, rows), tf.int32)
        rejected = tf.reshape(is_rejected(tries, users, positives), [*shape, NUM_TRIES])
        first_accepted = tf.argmax(tf.cast(~rejected, tf.int8), axis=-1, output_type=tf.int32)
        sampled = tf.gather(tf.reshape(tries, [*shape, NUM_TRIES]), first_accepted, batch_dims=2)
        return sampled, tf.reduce_all(rejected, axis=-1)

    def sample(shape: Shape, users: Tensor, positives: Tensor, seed: Tensor) -> Tensor:
        def resample(sampled: Tensor, rejected: Tensor, attempt: Tensor) -> tuple[Tensor, Tensor, Tensor]:
            attempt_seed = tf.random.experimental.stateless_fold_in(seed, attempt, alg="philox")
            new_sampled, new_rejected = sample_once(shape, users, positives, attempt_seed)
            return tf.where(rejected, new_sampled, sampled), rejected & new_rejected, attempt + 1

        state = (*sample_once(shape, users, positives, seed), tf.constant(0))
        matrix_shape = tf.TensorShape([None, shape[1]])
        shapes = (matrix_shape, matrix_shape, tf.TensorShape([]))
        return tf.while_loop(lambda _, rejected, attempt: tf.reduce_any(rejected), resample, state, shapes)[0]

    return sample


class _SeenPairs:
    """All (user, item) pairs of the training data, as sorted keys for binary search."""

    def __init__(self, train: Interactions) -> None:
        seen, offsets = train.distinct_items()
        if len(seen) and np.diff(offsets).max() >= np.count_nonzero(train.item_counts()):
            raise InputError("reject_history needs items that the user has not seen. Received: a user with all items")
        self.num_items = train.num_items
        keys = ArrayWriter(np.int64)
        for chunk in slices(len(seen)):
            users = np.searchsorted(offsets, np.arange(chunk.start, chunk.stop), side="right") - 1
            keys.append(users * train.num_items + seen[chunk])
        self.keys = tf.constant(keys.finish()) if has_gpu() else share_tensor(keys.finish())

    def contain(self, users: Tensor, items: Tensor) -> Tensor:
        """Return (n, k) whether the pairs of (n,) users and their (n, k) items are among the training pairs."""
        keys = tf.cast(users, tf.int64)[:, None] * self.num_items + tf.cast(items, tf.int64)
        found = tf.minimum(search_sorted(self.keys, keys, side="left"), len(self.keys) - 1)
        return tf.gather(self.keys, found) == keys
