"""What a model's sigmoid tends to when it is trained with sampled negatives: Theorem 1 of the gSASRec paper.

P is the true probability that an item comes next, alpha the sampling rate, beta the power of gBCE (1 for BCE).
"""

from __future__ import annotations

import math

from aprec_like.interactions import Array
from aprec_like.losses import BinaryLoss
from aprec_like.negatives import Negatives


def optimal_sigmoid(
    probability: Array | float, loss: BinaryLoss, num_items: int, negatives: Negatives | None = None
) -> Array | float:
    """The sigmoid that minimises the expected loss of an item whose true probability is P.

    With the positive rejected, an item is a negative only when it is not the next one, and the optimum is
    beta P / (alpha - alpha P + beta P), which is P itself for t = 1 (Theorem 1). The authors' sampler draws any
    item, the positive too, k / |I| times on average whatever comes next: beta P / (k / |I| + beta P).

    Args:
        probability: P, in [0, 1].
        loss: gives k and beta.
        num_items: |I|.
        negatives: the law of the negatives; by default the authors'.
    """
    beta = loss.power(num_items)
    law = negatives or Negatives()
    if law.by_popularity:
        raise ValueError("Theorem 1 does not cover negatives drawn by popularity: there is no closed form")
    if law.reject_positive or law.reject_history:
        alpha = loss.sampling_rate(num_items)
        return beta * probability / (alpha - alpha * probability + beta * probability)
    return beta * probability / (loss.num_negatives / num_items + beta * probability)


def prior_logit(loss: BinaryLoss, num_items: int, negatives: Negatives | None = None) -> float:
    """The logit of the optimal sigmoid of an item of which nothing is known: P = 1 / |I|."""
    sigmoid = float(optimal_sigmoid(1 / num_items, loss, num_items, negatives))
    return math.log(sigmoid) - math.log1p(-sigmoid)
