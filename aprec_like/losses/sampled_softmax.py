"""Softmax cross entropy over the positive and sampled negatives."""

from __future__ import annotations

import math
from dataclasses import dataclass

import tensorflow as tf

from aprec_like.losses.base import SampledLoss
from aprec_like.types import Tensor


@dataclass(frozen=True)
class SampledSoftmax(SampledLoss):
    """-log of the softmax probability of the positive among itself and k uniformly drawn items.

    Args:
        num_negatives: k.
        is_corrected: let each negative stand for (|I| - 1) / k items (the logQ correction for uniform draws). With
            `Negatives(reject_positive=True)` the denominator estimates that of the full softmax; where the positive
            may be drawn too, it counts about twice. The gSASRec paper does not correct.
    """

    is_corrected: bool = False

    def _formula(self, positive_logits: Tensor, negative_logits: Tensor, num_items: int) -> Tensor:
        if self.is_corrected:
            negative_logits += math.log((num_items - 1) / self.num_negatives)
        every = tf.concat([positive_logits[..., None], negative_logits], axis=-1)
        return tf.reduce_logsumexp(every, axis=-1) - positive_logits
