"""Softmax cross entropy over the whole catalogue."""

from __future__ import annotations

from dataclasses import dataclass

import tensorflow as tf

from aprec_like.batches import Tensor
from aprec_like.losses.base import FullLoss


@dataclass(frozen=True)
class Softmax(FullLoss):
    """-log of the softmax probability of the target among all items: no sampling, no overconfidence, all logits."""

    def __call__(self, states: Tensor, item_table: Tensor, targets: Tensor) -> Tensor:
        """The loss of every position; holds all logits."""
        logits = tf.matmul(states, item_table, transpose_b=True)
        return tf.nn.sparse_softmax_cross_entropy_with_logits(targets, logits)
