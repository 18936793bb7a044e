"""Bayesian personalised ranking (Rendle et al., UAI 2009)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar

from typing_extensions import override

from aprec_like.lazy_tensorflow import tf
from aprec_like.losses.base import SampledLoss
from aprec_like.types import Tensor

if TYPE_CHECKING:
    from aprec_like.negatives import Negatives


@dataclass(frozen=True)
class BPR(SampledLoss):
    """Pairwise ranking loss: -log sigma(s+ - s-), averaged over the k negatives.

    Scores have no meaning as probabilities: only their differences matter.

    Args:
        num_negatives: k.

    Example:
        Equal logits have the loss -log 0.5 = 0.6931.

        >>> import tensorflow as tf
        >>> loss = BPR(num_negatives=1)
        >>> round(float(loss(tf.constant(2.0), tf.constant([2.0]), num_items=100)), 4)
        0.6931
    """

    citations: ClassVar[tuple[str, ...]] = ("rendle2009bpr",)

    @override
    def probability(self, num_items: int, negatives: Negatives) -> None:
        return None

    @override
    def _formula(self, positive_logits: Tensor, negative_logits: Tensor, counts: Tensor, num_items: int) -> Tensor:
        losses = counts * tf.nn.softplus(negative_logits - positive_logits[..., None])
        return tf.reduce_sum(losses, axis=-1) / self.num_negatives
