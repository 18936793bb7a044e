"""Short names for the settings of published models: gSASRec and MF-BPR."""

from __future__ import annotations

import sys
from typing import Any

from aprec_like.losses import BPR, GBCE
from aprec_like.models import MatrixFactorisation, SASRec
from aprec_like.negatives import Negatives
from aprec_like.optimizers import Adagrad
from aprec_like.training.settings import Trained, Training


def gSASRec(
    training: Training,
    num_negatives: int = 256,
    calibration: float = 0.75,
    *,
    prior_start: bool = False,
    **architecture: Any,
) -> Trained:
    """SASRec with gBCE, short for `Trained(SASRec(**architecture), GBCE(num_negatives, calibration), training)`."""
    loss = GBCE(num_negatives, calibration)
    return Trained(SASRec(**architecture), loss, training, prior_start=prior_start)


def MFBPR(embedding_dim: int = 128, epochs: int = 20, batch_size: int = 2_048, learning_rate: float = 0.05) -> Trained:
    """Matrix factorisation with the BPR loss as the gSASRec paper ran it (LightFM's defaults).

    Adagrad, negatives as popular as the items of training and never the user's own, everything but the test targets
    learned, no validation. LightFM moves after every single interaction and adds squared gradients to 1; a mean over
    a batch makes gradients `batch_size` times smaller, so the accumulator starts at 1 / batch_size^2 instead. An item
    that a user had several times is learned once, as by LightFM; to the popularity of negatives each time counts.
    """
    training = Training(
        batch_size=batch_size,
        max_steps_per_epoch=sys.maxsize,
        max_epochs=epochs,
        early_stopping=None,
        optimizer=Adagrad(learning_rate, initial_accumulator=batch_size**-2),
        learns_validation_targets=True,
    )
    negatives = Negatives(by_popularity=True, reject_history=True)
    return Trained(MatrixFactorisation(embedding_dim), BPR(1), training, negatives)
