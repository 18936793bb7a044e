"""Presets of published models: gSASRec, eSASRec and MF-BPR."""

from __future__ import annotations

import sys
from dataclasses import replace
from typing import Any

from aprec_like.losses import BPR, GBCE, SampledSoftmax
from aprec_like.models import GSASREC_FLAVOUR, LiGR, MatrixFactorisation, SASRec
from aprec_like.negatives import Negatives
from aprec_like.optimizers import Adagrad
from aprec_like.training.settings import Trained, Training


def gSASRec(
    training: Training,
    num_negatives: int = 256,
    calibration: float = 0.75,
    *,
    prior_start: bool = True,
    **architecture: Any,
) -> Trained:
    """Return SASRec with gBCE: `Trained(SASRec(**architecture), GBCE(num_negatives, calibration), training)`.

    Unlike the paper's, it starts from the prior (`prior_start`): otherwise the first epochs only lower all scores, and
    early stopping with an ordinary patience ends training before it has started. The paper has a patience of 200.
    """
    loss = GBCE(num_negatives, calibration)
    return Trained(SASRec(**architecture), loss, training, prior_start=prior_start)


def eSASRec(training: Training, num_negatives: int = 256, **architecture: Any) -> Trained:
    """Return eSASRec: SASRec with LiGR blocks, one item table and a sampled softmax (Tikhonovich et al., RecSys 2025).

    Negatives are uniform, drawn for every position, and not corrected for; the paper's logQ correction belongs to its
    variants with negatives of the batch. The authors' code (github.com/blondered/transformer_benchmark) differs in that
    its attention and gates have biases, and in a dropout within the feed-forward.

    Args:
        training: settings of the optimisation.
        num_negatives: negatives of every position; 256 for all datasets of the paper.
        architecture: settings of `SASRec`; by default those that the authors chose for MovieLens-1M.
    """
    tied = replace(GSASREC_FLAVOUR, is_tied=True)
    chosen = {"max_length": 200, "embedding_dim": 64, "num_blocks": 2, "num_heads": 1, "dropout_rate": 0.1}
    model = SASRec(**{**chosen, "flavour": tied, "block": LiGR(), **architecture})
    return Trained(model, SampledSoftmax(num_negatives), training)


def MFBPR(embedding_dim: int = 128, epochs: int = 20, batch_size: int = 2_048, learning_rate: float = 0.05) -> Trained:
    """Return matrix factorisation with the BPR loss as in the gSASRec paper (LightFM's defaults).

    The optimiser is Adagrad. Negatives are sampled by popularity in training, excluding the items of the user. There is
    no validation; in recipes with `fit_on="mixed"` the model learns validation targets too. LightFM updates after every
    interaction, with an initial accumulator of 1; the mean over a batch makes gradients `batch_size` times smaller, so
    the initial accumulator is 1 / batch_size^2 here. As in LightFM, repeated interactions of a user with an item are
    one training example, but each of them counts for the popularity of the item.
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
