"""Drawing negative items in the graph: uniform, with replacement, independently for every position."""

from __future__ import annotations

from dataclasses import dataclass

import tensorflow as tf

from aprec_like.batches import Tensor


@dataclass(frozen=True)
class Negatives:
    """The law of the negatives. The default is the gSASRec authors': any item, the positive not excluded.

    Args:
        reject_positive: draw from the other num_items - 1 items. Theorem 1 of the paper assumes it.
        reject_history: draw from the items that the user has not interacted with in training, as the
            original SASRec does. This rejects the positive too.
    """

    reject_positive: bool = False
    reject_history: bool = False

    def draw(
        self, num_negatives: int, num_items: int, positives: Tensor, rejected: Tensor | None, seed: Tensor
    ) -> Tensor:
        """Draw (batch, length, num_negatives) items.

        Args:
            num_negatives: k, how many per position.
            num_items: size of the catalogue.
            positives: (batch, length) the positive of each position; the padding may hold anything.
            rejected: (batch, width) sorted distinct items of each user, padded on the right with
                `num_items`; needed (and used) only with `reject_history`.
            seed: (2,) integers; the same seed draws the same items.
        """
        shape = tf.concat([tf.shape(positives), [num_negatives]], axis=0)
        if self.reject_history:
            flat = tf.reshape(_uniform(shape, num_items - _count(rejected, num_items), seed), [shape[0], -1])
            return tf.reshape(_skip(flat, rejected, num_items), shape)
        if self.reject_positive:
            drawn = _uniform(shape, num_items - 1, seed)
            return drawn + tf.cast(drawn >= tf.cast(positives, tf.int32)[..., None], tf.int32)
        return _uniform(shape, num_items, seed)


def _count(rejected: Tensor, num_items: int) -> Tensor:
    """(batch, 1, 1) how many items each user rejects."""
    return tf.reduce_sum(tf.cast(rejected < num_items, tf.int32), axis=1)[:, None, None]


def _uniform(shape: Tensor, limit: Tensor | int, seed: Tensor) -> Tensor:
    """Whole numbers from 0 to limit - 1; `limit` may differ by row."""
    if isinstance(limit, int):
        return tf.random.stateless_uniform(shape, seed, maxval=limit, dtype=tf.int32, alg="philox")
    bits = tf.random.stateless_uniform(shape, seed, minval=None, maxval=None, dtype=tf.uint32, alg="philox")
    # The product of 32 random bits and the limit, shifted back: uniform up to limit / 2**32.
    scaled = tf.cast(bits, tf.uint64) * tf.cast(limit, tf.uint64)
    return tf.cast(tf.bitwise.right_shift(scaled, tf.constant(32, tf.uint64)), tf.int32)


def _skip(drawn: Tensor, rejected: Tensor, num_items: int) -> Tensor:
    """The r-th item that is not rejected, for every drawn r: r plus the number of rejected items before it.

    With rejected items s_0 < s_1 < ... there are s_j - j allowed items below s_j, so s_j stands before the
    r-th allowed item if and only if s_j - j <= r. Exact, and without a loop that draws again.
    """
    allowed_below = tf.where(rejected < num_items, rejected - tf.range(tf.shape(rejected)[1]), num_items)
    return drawn + tf.searchsorted(allowed_below, drawn, side="right")
