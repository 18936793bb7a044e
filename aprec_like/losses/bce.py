"""Binary cross entropy over the positive and sampled negatives: SASRec's loss."""

from __future__ import annotations

from dataclasses import dataclass

import tensorflow as tf

from aprec_like.losses.base import BinaryLoss
from aprec_like.types import Tensor


@dataclass(frozen=True)
class BCE(BinaryLoss):
    """-(log sigma(s+) + sum log(1 - sigma(s-))), averaged over the k + 1 candidates.

    Args:
        num_negatives: k; SASRec has 1.
        is_averaged: divide by k + 1 as the gSASRec authors do; False sums the terms as the original SASRec does.
    """

    is_averaged: bool = True

    def _formula(self, positive_logits: Tensor, negative_logits: Tensor, num_items: int) -> Tensor:
        total = tf.nn.softplus(-positive_logits) + tf.reduce_sum(tf.nn.softplus(negative_logits), axis=-1)
        return total / (self.num_negatives + 1) if self.is_averaged else total
