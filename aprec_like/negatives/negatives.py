"""Settings of negative sampling: distribution, rejected items, and which positions share their negatives."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Literal, get_args

import numpy as np

from aprec_like.devices import has_gpu
from aprec_like.errors import InputError
from aprec_like.interactions import Interactions
from aprec_like.lazy_tensorflow import tf
from aprec_like.negatives.by_popularity import popularity_sampler
from aprec_like.negatives.sampler import Sampler
from aprec_like.negatives.uniform import distinct_sampler, uniform_sampler
from aprec_like.settings import OMIT_DEFAULT
from aprec_like.types import Tensor

SharedBy = Literal["position", "sequence", "batch"]


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
        without_replacement: sample distinct items, all sets of them equally likely. It sorts random numbers of the
            whole catalogue, so it needs negatives that a sequence or the batch shares.
    """

    shared_by: SharedBy = "position"
    reject_positive: bool = False
    reject_history: bool = False
    by_popularity: bool = False
    without_replacement: bool = field(default=False, metadata=OMIT_DEFAULT)

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

        if self.without_replacement and (self.by_popularity or self.shared_by == "position"):
            raise ValueError(
                "Negatives without replacement need by_popularity=False and shared_by of 'sequence' or 'batch'. "
                f"Received: by_popularity={self.by_popularity}, shared_by={self.shared_by!r}"
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
        if self.without_replacement:
            sample_shape = distinct_sampler(train, num_negatives, reject_history=self.reject_history)
        else:
            make = popularity_sampler if self.by_popularity else uniform_sampler
            sample_shape = make(train, reject_positive=self.reject_positive, reject_history=self.reject_history)

        def sample(users: Tensor, positives: Tensor, seed: Tensor) -> Tensor:
            return sample_shape([tf.shape(users)[0], num_negatives], users, positives, seed)

        if not has_gpu():
            return sample
        # Compiled, sampling keeps its integers on the device and samples again without waiting for the host.
        compiled = tf.function(sample, jit_compile=True)

        def sample_compiled(users: Tensor, positives: Tensor, seed: Tensor) -> Tensor:
            items = compiled(users, tf.cast(positives, tf.int32), seed)
            items.set_shape([users.shape[0], num_negatives])  # TensorFlow forgets it in loops
            return tf.cast(items, positives.dtype)

        return sample_compiled
