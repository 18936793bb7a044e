"""Generalised binary cross entropy: the loss of gSASRec (Petrov and Macdonald, RecSys 2023, section 5)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from typing_extensions import override

from aprec_like.lazy_tensorflow import tf
from aprec_like.losses.base import BinaryLoss
from aprec_like.types import Tensor


@dataclass(frozen=True)
class GBCE(BinaryLoss):
    """Generalised binary cross entropy: -(log sigma(s+)^beta + sum log(1 - sigma(s-))) / (k + 1).

    The power beta removes the overconfidence that negative sampling causes. Since log sigma^beta is
    -beta softplus(-s+), no power is ever computed and nothing can over- or underflow.

    Args:
        num_negatives: k.
        calibration: t in [0, 1]. 0 is plain BCE; 1 makes sigma(s) the probability of the item. The
            authors recommend 0.75 to 0.9.

    Example:
        One negative among 11 items is a sampling rate of 0.1; with t = 1 that is beta, and at logits of 0 the loss is
        (0.1 log 2 + log 2) / 2 = 0.3812.

        >>> import tensorflow as tf
        >>> loss = GBCE(num_negatives=1, calibration=1.0)
        >>> round(loss.power(num_items=11), 4)
        0.1
        >>> round(float(loss(tf.constant(0.0), tf.constant([0.0]), num_items=11)), 4)
        0.3812
    """

    citations: ClassVar[tuple[str, ...]] = ("petrov2023gsasrec",)

    num_negatives: int = 256
    calibration: float = 0.75

    def __post_init__(self) -> None:
        super().__post_init__()
        if not 0 <= self.calibration <= 1:
            raise ValueError(f"GBCE needs a calibration between 0 and 1. Received: calibration={self.calibration}")

    @property
    @override
    def label(self) -> str:
        return f"gBCE, t = {self.calibration:g}"

    @override
    def power(self, num_items: int) -> float:
        """Return beta = alpha (t (1 - 1 / alpha) + 1 / alpha), which is 1 - t (1 - alpha)."""
        return 1 - self.calibration * (1 - self.sampling_rate(num_items))

    @override
    def _formula(self, positive_logits: Tensor, negative_logits: Tensor, counts: Tensor, num_items: int) -> Tensor:
        positive = self.power(num_items) * tf.nn.softplus(-positive_logits)
        negative = tf.reduce_sum(counts * tf.nn.softplus(negative_logits), axis=-1)
        return (positive + negative) / (self.num_negatives + 1)
