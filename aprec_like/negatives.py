"""Sampling of negative items, with replacement and in the TensorFlow graph."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Literal, get_args

import numpy as np

from aprec_like.errors import InputError
from aprec_like.interactions import Interactions
from aprec_like.lazy_tensorflow import tf
from aprec_like.types import Tensor
from aprec_like.unseen_items import unseen_thresholds

NUM_TRIES = 8
"""Items sampled at once for a negative that may be rejected, so that a second round is rarely needed."""

SharedBy = Literal["position", "sequence", "batch"]

Shape = list[Any]
"""[n, k]; n may be a scalar tensor."""

Sampler = Callable[[Tensor, Tensor, Tensor], Tensor]
"""Function of (n,) users, their (n,) positives and a (2,) seed that returns (n, k) items."""

SampleShape = Callable[[Shape, Tensor, Tensor, Tensor], Tensor]
"""Function of a shape [n, k] and the arguments of a `Sampler` that returns items of that shape."""


@dataclass(frozen=True)
class Negatives:
    """Sampling distribution of the negatives.

    The default is that of the gSASRec authors: uniform over all items, the positive included.

    Args:
        shared_by: which positions use the same negatives: only one `position` (the default, as in the paper), all
            positions of a `sequence`, or the whole `batch`. Sharing makes a step much cheaper and does not change the
            expected loss.
        reject_positive: sample from the other num_items - 1 items. Theorem 1 of the paper assumes it.
        reject_history: sample from the items that the user has not interacted with in training, as the original
            SASRec does. This rejects the positive too.
        by_popularity: sample items in proportion to their training interactions instead of uniformly. Theorem 1 does
            not cover it.
    """

    shared_by: SharedBy = "position"
    reject_positive: bool = False
    reject_history: bool = False
    by_popularity: bool = False

    def __post_init__(self) -> None:
        if self.shared_by not in get_args(SharedBy):
            wanted = ", ".join(get_args(SharedBy))
            raise ValueError(f"Negatives needs shared_by to be one of {wanted}. Received: {self.shared_by!r}")
        if self.shared_by != "position" and self.reject_positive:
            raise ValueError("Negatives that are shared cannot reject the positive: it differs between positions")
        if self.shared_by == "batch" and self.reject_history:
            raise ValueError(
                "Negatives that are shared by the batch cannot reject the history: it differs between users"
            )

    @property
    def excludes_positive(self) -> bool:
        """Whether the positive is never sampled: it is rejected alone or with the history."""
        return self.reject_positive or self.reject_history

    def sampler(self, train: Interactions, num_negatives: int) -> Sampler:
        """Return a function that samples `num_negatives` items for each of n users.

        For shared negatives, call it once per sequence or batch.
        """
        num_sampled_from = np.count_nonzero(train.item_counts()) if self.by_popularity else train.num_items
        if num_sampled_from < 2:
            raise InputError(f"negatives need at least 2 items to sample from. Received: {num_sampled_from}")
        sample_shape = self._popularity_sampler(train) if self.by_popularity else self._uniform_sampler(train)

        def sample(users: Tensor, positives: Tensor, seed: Tensor) -> Tensor:
            return sample_shape([tf.shape(users)[0], num_negatives], users, positives, seed)

        return sample

    def _uniform_sampler(self, train: Interactions) -> SampleShape:
        num_items = train.num_items
        if self.reject_history:
            unseen = _UnseenItems(train)

            def sample_unseen(shape: Shape, users: Tensor, positives: Tensor, seed: Tensor) -> Tensor:
                return unseen.select(users, _uniform_below(unseen.counts(users)[:, None], shape, seed))

            return sample_unseen

        def sample_other(shape: Shape, users: Tensor, positives: Tensor, seed: Tensor) -> Tensor:
            indices = tf.random.stateless_uniform(shape, seed, maxval=num_items - 1, dtype=tf.int32, alg="philox")
            return indices + tf.cast(indices >= positives[:, None], tf.int32)

        def sample_any(shape: Shape, users: Tensor, positives: Tensor, seed: Tensor) -> Tensor:
            return tf.random.stateless_uniform(shape, seed, maxval=num_items, dtype=tf.int32, alg="philox")

        return sample_other if self.reject_positive else sample_any

    def _popularity_sampler(self, train: Interactions) -> SampleShape:
        """Sample the item of a random training interaction, and sample again where it is rejected."""
        items = tf.constant(train.items)
        seen_pairs = _SeenPairs(train) if self.reject_history else None

        def is_rejected(sampled: Tensor, users: Tensor, positives: Tensor) -> Tensor:
            if seen_pairs is not None:
                return seen_pairs.contain(users, sampled)
            return sampled == positives[:, None] if self.reject_positive else tf.zeros_like(sampled, tf.bool)

        def sample_once(shape: Shape, users: Tensor, positives: Tensor, seed: Tensor) -> tuple[Tensor, Tensor]:
            """Return for each cell the first of `NUM_TRIES` items that is not rejected, and whether all of them are."""
            shape_of_tries = [shape[0], shape[1] * NUM_TRIES]
            rows = tf.random.stateless_uniform(
                shape_of_tries, seed, maxval=train.num_interactions, dtype=tf.int64, alg="philox"
            )
            tries = tf.gather(items, rows)
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


class _UnseenItems:
    """Items that are not in each user's training history; `aprec_like.unseen_items` explains the search."""

    def __init__(self, train: Interactions) -> None:
        seen, offsets = train.distinct_items()
        if np.diff(offsets).max() >= train.num_items:
            raise InputError("reject_history needs items that the user has not seen. Received: a user with all items")
        self.num_items, self.offsets = train.num_items, tf.constant(offsets)
        self.thresholds = tf.constant(unseen_thresholds(seen, offsets, train.num_items))

    def counts(self, users: Tensor) -> Tensor:
        """Return the (n,) numbers of unseen items of (n,) users."""
        return self.num_items - (tf.gather(self.offsets, users + 1) - tf.gather(self.offsets, users))

    def select(self, users: Tensor, indices: Tensor) -> Tensor:
        """Return the (n, k) unseen items of (n,) users at (n, k) indices from 0."""
        keys = tf.cast(users, tf.int64)[:, None] * self.num_items + tf.cast(indices, tf.int64)
        found = tf.reshape(tf.searchsorted(self.thresholds, tf.reshape(keys, [-1]), side="right"), tf.shape(keys))
        num_not_after = tf.cast(found, tf.int64) - tf.gather(self.offsets, users)[:, None]
        return indices + tf.cast(num_not_after, tf.int32)


class _SeenPairs:
    """All (user, item) pairs of the training data, as sorted keys for binary search."""

    def __init__(self, train: Interactions) -> None:
        seen, offsets = train.distinct_items()
        users = np.repeat(np.arange(train.num_users), np.diff(offsets))
        if len(seen) and np.diff(offsets).max() >= np.count_nonzero(train.item_counts()):
            raise InputError("reject_history needs items that the user has not seen. Received: a user with all items")
        self.num_items = train.num_items
        self.keys = tf.constant(users * train.num_items + seen.astype(np.int64))

    def contain(self, users: Tensor, items: Tensor) -> Tensor:
        """Return (n, k) whether the pairs of (n,) users and their (n, k) items are among the training pairs."""
        keys = tf.cast(users, tf.int64)[:, None] * self.num_items + tf.cast(items, tf.int64)
        found = tf.minimum(tf.searchsorted(self.keys, tf.reshape(keys, [-1])), len(self.keys) - 1)
        return tf.reshape(tf.gather(self.keys, found), tf.shape(keys)) == keys


def _uniform_below(limits: Tensor, shape: Shape, seed: Tensor) -> Tensor:
    """Return integers from 0 to limit - 1 of a shape [n, k]; `limits` has the shape (n, 1)."""
    bits = tf.random.stateless_uniform(shape, seed, minval=None, maxval=None, dtype=tf.uint32, alg="philox")
    # Multiply 32 random bits by the limit and shift back: uniform with an error of at most limit / 2**32.
    scaled = tf.cast(bits, tf.uint64) * tf.cast(limits, tf.uint64)
    return tf.cast(tf.bitwise.right_shift(scaled, tf.constant(32, tf.uint64)), tf.int32)
