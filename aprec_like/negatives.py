"""Drawing negative items in the graph, with replacement: by which law, and for whom."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Literal, get_args

import numpy as np
import tensorflow as tf

from aprec_like.errors import InputError
from aprec_like.interactions import Interactions
from aprec_like.types import Tensor

TRIES = 8
"""How many items are drawn at once for a negative that may be rejected: a second turn is rarely needed."""

SharedBy = Literal["position", "sequence", "batch"]

Shape = list[Any]
"""(n, k); n may be known only in the graph."""

Sampler = Callable[[Tensor, Tensor, Tensor], Tensor]
"""From (n,) users, their (n,) positives and a (2,) seed to (n, k) items."""


@dataclass(frozen=True)
class Negatives:
    """The law of the negatives. The default is the gSASRec authors': any item, the positive not excluded.

    Args:
        shared_by: who uses the same draws: only one `position` (the default, as in the paper), all positions of a
            `sequence`, or the whole `batch`. Sharing makes a step much cheaper; the expected loss stays the same.
        reject_positive: draw from the other num_items - 1 items. Theorem 1 of the paper assumes it.
        reject_history: draw from the items that the user has not interacted with in training, as the
            original SASRec does. This rejects the positive too.
        by_popularity: draw items as often as they occur in training instead of uniformly. Theorem 1 does not cover it.
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
            raise ValueError("Negatives that are shared cannot reject the positive: each position has another one")
        if self.shared_by == "batch" and self.reject_history:
            raise ValueError("Negatives that are shared by the batch cannot reject the history: each user has another")

    def sampler(self, train: Interactions, num_negatives: int) -> Sampler:
        """A function that draws `num_negatives` items for each of n users, in the graph, from the catalogue.

        Whoever shares negatives asks once for all that share them.
        """
        drawable = np.count_nonzero(train.item_counts()) if self.by_popularity else train.num_items
        if drawable < 2:
            raise InputError(f"negatives need at least 2 items to draw from. Received: {drawable}")
        draw = self._popular_draw(train) if self.by_popularity else self._uniform_draw(train)

        def sample(users: Tensor, positives: Tensor, seed: Tensor) -> Tensor:
            return draw([tf.shape(users)[0], num_negatives], users, positives, seed)

        return sample

    def _uniform_draw(self, train: Interactions) -> Callable[..., Tensor]:
        num_items = train.num_items
        if self.reject_history:
            unseen = _Unseen(train)

            def draw_unseen(shape: Shape, users: Tensor, positives: Tensor, seed: Tensor) -> Tensor:
                return unseen.pick(users, _uniform_below(unseen.counts(users)[:, None], shape, seed))

            return draw_unseen

        def draw_other(shape: Shape, users: Tensor, positives: Tensor, seed: Tensor) -> Tensor:
            places = tf.random.stateless_uniform(shape, seed, maxval=num_items - 1, dtype=tf.int32, alg="philox")
            return places + tf.cast(places >= positives[:, None], tf.int32)

        def draw_any(shape: Shape, users: Tensor, positives: Tensor, seed: Tensor) -> Tensor:
            return tf.random.stateless_uniform(shape, seed, maxval=num_items, dtype=tf.int32, alg="philox")

        return draw_other if self.reject_positive else draw_any

    def _popular_draw(self, train: Interactions) -> Callable[..., Tensor]:
        """The item of a random training interaction, drawn again where it is rejected."""
        items = tf.constant(train.items)
        pairs = _KnownPairs(train) if self.reject_history else None

        def rejected(drawn: Tensor, users: Tensor, positives: Tensor) -> Tensor:
            if pairs is not None:
                return pairs.has(users, drawn)
            return drawn == positives[:, None] if self.reject_positive else tf.zeros_like(drawn, tf.bool)

        def draw_once(shape: Shape, users: Tensor, positives: Tensor, seed: Tensor) -> tuple[Tensor, Tensor]:
            """(n, k) items, and whether each is rejected: the first of some tries that is not, if any."""
            count = train.num_interactions
            tries = [shape[0], shape[1] * TRIES]
            where = tf.random.stateless_uniform(tries, seed, maxval=count, dtype=tf.int64, alg="philox")
            drawn = tf.gather(items, where)
            is_rejected = tf.reshape(rejected(drawn, users, positives), [*shape, TRIES])
            first = tf.argmax(tf.cast(~is_rejected, tf.int8), axis=-1, output_type=tf.int32)
            drawn = tf.gather(tf.reshape(drawn, [*shape, TRIES]), first, batch_dims=2)
            return drawn, tf.reduce_all(is_rejected, axis=-1)

        def draw(shape: Shape, users: Tensor, positives: Tensor, seed: Tensor) -> Tensor:
            def again(drawn: Tensor, is_rejected: Tensor, turn: Tensor) -> tuple[Tensor, Tensor, Tensor]:
                turn_seed = tf.random.experimental.stateless_fold_in(seed, turn, alg="philox")
                other, is_other_rejected = draw_once(shape, users, positives, turn_seed)
                return tf.where(is_rejected, other, drawn), is_rejected & is_other_rejected, turn + 1

            state = (*draw_once(shape, users, positives, seed), tf.constant(0))
            open_shape = tf.TensorShape([None, shape[1]])
            shapes = (open_shape, open_shape, tf.TensorShape([]))
            return tf.while_loop(lambda _, is_rejected, turn: tf.reduce_any(is_rejected), again, state, shapes)[0]

        return draw


class _Unseen:
    """The items that each user has not had in training, in the graph, without a list of them.

    With a user's items s_0 < s_1 < ... there are s_j - j unseen items below s_j, so s_j stands before the r-th unseen
    item if and only if s_j - j <= r: the r-th unseen item is r plus the number of such j. These thresholds never
    decrease, so one search among those of all users, set apart by an offset per user, finds that number.
    """

    def __init__(self, train: Interactions) -> None:
        flat, offsets = train.distinct_items()
        lengths = np.diff(offsets)
        if lengths.max() >= train.num_items:
            raise InputError("reject_history needs items that the user has not had. Received: a user with all of them")
        self.num_items = train.num_items
        users = np.repeat(np.arange(train.num_users), lengths)
        below = flat - (np.arange(len(flat)) - offsets[:-1][users])
        self.thresholds, self.offsets = tf.constant(users * self.num_items + below), tf.constant(offsets)

    def counts(self, users: Tensor) -> Tensor:
        """(n,) how many items each user has not had."""
        return self.num_items - (tf.gather(self.offsets, users + 1) - tf.gather(self.offsets, users))

    def pick(self, users: Tensor, places: Tensor) -> Tensor:
        """(n, k) the unseen items of (n,) users at (n, k) places from 0."""
        keys = tf.cast(users, tf.int64)[:, None] * self.num_items + tf.cast(places, tf.int64)
        found = tf.reshape(tf.searchsorted(self.thresholds, tf.reshape(keys, [-1]), side="right"), tf.shape(keys))
        before = tf.cast(found, tf.int64) - tf.gather(self.offsets, users)[:, None]
        return places + tf.cast(before, tf.int32)


class _KnownPairs:
    """Whether a user has an item in training, by looking the pair up among all sorted pairs."""

    def __init__(self, train: Interactions) -> None:
        flat, offsets = train.distinct_items()
        users = np.repeat(np.arange(train.num_users), np.diff(offsets))
        if len(flat) and np.diff(offsets).max() >= np.count_nonzero(train.item_counts()):
            raise InputError("reject_history needs items that the user has not had. Received: a user with all of them")
        self.num_items = train.num_items
        self.keys = tf.constant(users * train.num_items + flat.astype(np.int64))

    def has(self, users: Tensor, items: Tensor) -> Tensor:
        """(n, k) from (n,) users and (n, k) items."""
        keys = tf.cast(users, tf.int64)[:, None] * self.num_items + tf.cast(items, tf.int64)
        found = tf.minimum(tf.searchsorted(self.keys, tf.reshape(keys, [-1])), len(self.keys) - 1)
        return tf.reshape(tf.gather(self.keys, found), tf.shape(keys)) == keys


def _uniform_below(limits: Tensor, shape: Shape, seed: Tensor) -> Tensor:
    """Whole numbers from 0 to limit - 1; `limits` may differ by row."""
    bits = tf.random.stateless_uniform(shape, seed, minval=None, maxval=None, dtype=tf.uint32, alg="philox")
    # The product of 32 random bits and the limit, shifted back: uniform up to limit / 2**32.
    scaled = tf.cast(bits, tf.uint64) * tf.cast(limits, tf.uint64)
    return tf.cast(tf.bitwise.right_shift(scaled, tf.constant(32, tf.uint64)), tf.int32)
