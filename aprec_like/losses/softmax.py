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
        # One product of two matrices: as a batch of products its gradient would hold a table per sequence.
        logits = tf.matmul(tf.reshape(states, [-1, states.shape[-1]]), item_table, transpose_b=True)
        losses = tf.nn.sparse_softmax_cross_entropy_with_logits(tf.reshape(targets, [-1]), logits)
        return tf.reshape(losses, tf.shape(targets))
