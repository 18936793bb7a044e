"""Binary cross entropy over the positive and sampled negatives: SASRec's loss."""

from __future__ import annotations

from dataclasses import dataclass

from typing_extensions import override

from aprec_like.lazy_tensorflow import tf
from aprec_like.losses.base import BinaryLoss
from aprec_like.types import Tensor


@dataclass(frozen=True)
class BCE(BinaryLoss):
    """Binary cross entropy: -(log sigma(s+) + sum log(1 - sigma(s-))), averaged over the k + 1 candidates.

    Args:
        num_negatives: k; SASRec has 1.
        is_averaged: divide by k + 1 as the gSASRec authors do; False sums the terms as the original SASRec does.

    Example:
        At logits of 0 every candidate has the loss log 2 = 0.6931.

        >>> import tensorflow as tf
        >>> loss = BCE(num_negatives=1)
        >>> round(float(loss(tf.constant(0.0), tf.constant([0.0]), num_items=100)), 4)
        0.6931
    """

    is_averaged: bool = True

    @override
    def _formula(self, positive_logits: Tensor, negative_logits: Tensor, counts: Tensor, num_items: int) -> Tensor:
        total = tf.nn.softplus(-positive_logits) + tf.reduce_sum(counts * tf.nn.softplus(negative_logits), axis=-1)
        return total / (self.num_negatives + 1) if self.is_averaged else total
