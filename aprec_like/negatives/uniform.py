"""Uniform sampling of negatives: from all items, from all but the positive, or from the items unseen by the user."""

from __future__ import annotations

import numpy as np

from aprec_like.devices import has_gpu
from aprec_like.errors import InputError
from aprec_like.interactions import Interactions
from aprec_like.lazy_tensorflow import tf
from aprec_like.negatives.sampler import SampleShape, Shape
from aprec_like.negatives.search import search_sorted
from aprec_like.out_of_core import share_tensor
from aprec_like.types import Tensor
from aprec_like.unseen_items import unseen_thresholds


def uniform_sampler(train: Interactions, *, reject_positive: bool, reject_history: bool) -> SampleShape:
    """Return a sampler of items that are all equally likely."""
    num_items = train.num_items
    if reject_history:
        unseen = _UnseenItems(train)

        def sample_unseen(shape: Shape, users: Tensor, positives: Tensor, seed: Tensor) -> Tensor:
            return unseen.select(users, _uniform_below(unseen.counts(users)[:, None], shape, seed))

        return sample_unseen

    def sample_other(shape: Shape, users: Tensor, positives: Tensor, seed: Tensor) -> Tensor:
        indices = tf.random.stateless_uniform(shape, seed, maxval=num_items - 1, dtype=tf.int32, alg="philox")
        return indices + tf.cast(indices >= positives[:, None], tf.int32)

    def sample_any(shape: Shape, users: Tensor, positives: Tensor, seed: Tensor) -> Tensor:
        return tf.random.stateless_uniform(shape, seed, maxval=num_items, dtype=tf.int32, alg="philox")

    return sample_other if reject_positive else sample_any


def distinct_sampler(train: Interactions, num_negatives: int, *, reject_history: bool) -> SampleShape:
    """Return a sampler of distinct items: those with the largest of independent random numbers."""
    unseen = _UnseenItems(train) if reject_history else None
    smallest = train.num_items - (int(np.diff(train.distinct_items()[1]).max()) if reject_history else 0)
    if num_negatives > smallest:
        raise InputError(f"{num_negatives} distinct negatives need as many items. Received: {smallest} to sample from")

    def sample(shape: Shape, users: Tensor, positives: Tensor, seed: Tensor) -> Tensor:
        numbers = tf.random.stateless_uniform(
            [shape[0], train.num_items], seed, maxval=2**31 - 1, dtype=tf.int32, alg="philox"
        )
        if unseen is None:
            return tf.math.top_k(numbers, num_negatives).indices
        counts = tf.cast(unseen.counts(users), tf.int32)[:, None]
        numbers = tf.where(tf.range(train.num_items)[None] < counts, numbers, -1)
        return unseen.select(users, tf.math.top_k(numbers, num_negatives).indices)

    return sample


class _UnseenItems:
    """Items that are not in each user's training history; `aprec_like.unseen_items` explains the search."""

    def __init__(self, train: Interactions) -> None:
        seen, offsets = train.distinct_items()
        if np.diff(offsets).max() >= train.num_items:
            raise InputError("reject_history needs items that the user has not seen. Received: a user with all items")
        self.num_items, self.offsets = train.num_items, tf.constant(offsets)
        thresholds = unseen_thresholds(seen, offsets, train.num_items)
        self.thresholds = tf.constant(thresholds) if has_gpu() else share_tensor(thresholds)

    def counts(self, users: Tensor) -> Tensor:
        """Return the (n,) numbers of unseen items of (n,) users."""
        return self.num_items - (tf.gather(self.offsets, users + 1) - tf.gather(self.offsets, users))

    def select(self, users: Tensor, indices: Tensor) -> Tensor:
        """Return the (n, k) unseen items of (n,) users at (n, k) indices from 0."""
        keys = tf.cast(users, tf.int64)[:, None] * self.num_items + tf.cast(indices, tf.int64)
        found = search_sorted(self.thresholds, keys, side="right")
        num_not_after = tf.cast(found, tf.int64) - tf.gather(self.offsets, users)[:, None]
        return indices + tf.cast(num_not_after, tf.int32)


def _uniform_below(limits: Tensor, shape: Shape, seed: Tensor) -> Tensor:
    """Return integers from 0 to limit - 1 of a shape [n, k]; `limits` has the shape (n, 1)."""
    bits = tf.random.stateless_uniform(shape, seed, minval=None, maxval=None, dtype=tf.uint32, alg="philox")
    # Multiply 32 random bits by the limit and shift back: uniform with an error of at most limit / 2**32.
    scaled = tf.cast(bits, tf.uint64) * tf.cast(limits, tf.uint64)
    return tf.cast(tf.bitwise.right_shift(scaled, tf.constant(32, tf.uint64)), tf.int32)
