"""Bayesian personalised ranking (Rendle et al., UAI 2009)."""

from __future__ import annotations

from dataclasses import dataclass

import tensorflow as tf

from aprec_like.losses.base import SampledLoss
from aprec_like.types import Tensor


@dataclass(frozen=True)
class BPR(SampledLoss):
    """-log sigma(s+ - s-), the mean over the k negatives."""

    def _formula(self, positive_logits: Tensor, negative_logits: Tensor, num_items: int) -> Tensor:
        return tf.reduce_mean(tf.nn.softplus(negative_logits - positive_logits[..., None]), axis=-1)
