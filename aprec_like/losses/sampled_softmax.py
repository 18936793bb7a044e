"""Softmax cross entropy over the positive and sampled negatives."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar

from typing_extensions import override

from aprec_like.calibration import Probability, SampledSoftmaxProbability
from aprec_like.lazy_tensorflow import tf
from aprec_like.losses.base import SampledLoss
from aprec_like.types import Tensor

if TYPE_CHECKING:
    from aprec_like.negatives import Negatives


@dataclass(frozen=True)
class SampledSoftmax(SampledLoss):
    """Sampled softmax: -log of the softmax probability of the positive among itself and k sampled items.

    Args:
        num_negatives: k.
        is_corrected: let each negative stand for (|I| - 1) / k items (the logQ correction for uniform sampling). With
            `Negatives(reject_positive=True)` the denominator estimates that of the full softmax; where the positive
            may be sampled too, it counts about twice. The gSASRec paper does not correct.

    Example:
        Equal logits of the positive and 3 negatives have the loss -log(1/4) = 1.3863.

        >>> import tensorflow as tf
        >>> loss = SampledSoftmax(num_negatives=3)
        >>> round(float(loss(tf.constant(0.0), tf.constant([0.0, 0.0, 0.0]), num_items=100)), 4)
        1.3863
    """

    citations: ClassVar[tuple[str, ...]] = ("bengio2008adaptive",)

    is_corrected: bool = False

    @override
    def probability(self, num_items: int, negatives: Negatives) -> Probability | None:
        if negatives.by_popularity:
            return None
        return SampledSoftmaxProbability(
            self.num_negatives, num_items, negatives.excludes_positive, is_corrected=self.is_corrected
        )

    @override
    def _formula(self, positive_logits: Tensor, negative_logits: Tensor, counts: Tensor, num_items: int) -> Tensor:
        if self.is_corrected:
            negative_logits += math.log((num_items - 1) / self.num_negatives)
        logits = tf.concat([positive_logits[..., None], negative_logits + tf.math.log(counts)], axis=-1)
        return tf.reduce_logsumexp(logits, axis=-1) - positive_logits
