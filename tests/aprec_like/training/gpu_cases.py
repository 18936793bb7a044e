"""Trainings that the audit of a GPU's step looks at: every part that a recipe can declare, and every pair of parts."""

import functools
import itertools
from collections.abc import Iterator
from dataclasses import fields, is_dataclass, replace
from typing import NamedTuple

from aprec_like.losses import BCE, BPR, GBCE, BinaryLoss, SampledLoss, SampledSoftmax, Softmax
from aprec_like.models import (
    GELU,
    HSTU,
    BERT4Rec,
    GRU4Rec,
    LiGR,
    MatrixFactorisation,
    PreNorm,
    RelativePositionBias,
    SASRec,
    SwiGLU,
    TimeGaps,
)
from aprec_like.models.sasrec import ORIGINAL_FLAVOUR
from aprec_like.negatives import Negatives
from aprec_like.optimizers import Adagrad, Adam
from aprec_like.schedules import CosineDecay, WarmUp
from aprec_like.training import Trained, Training

SASREC = SASRec(max_length=32, embedding_dim=8, num_blocks=1, dropout_rate=0.1)
BERT = BERT4Rec(max_length=32, embedding_dim=8, num_layers=1, num_heads=2, feed_forward_dim=16)
MODELS = {
    "SASRec": SASREC,
    "original SASRec": replace(SASREC, flavour=ORIGINAL_FLAVOUR, num_heads=2),
    "pre-norm": replace(SASREC, block=PreNorm(GELU(2), RelativePositionBias()), num_blocks=2),
    "LiGR": replace(SASREC, block=LiGR(SwiGLU(2))),
    "LiGR with positions": replace(SASREC, block=LiGR(GELU(2), RelativePositionBias()), num_heads=2),
    "HSTU": replace(SASREC, block=HSTU()),
    "HSTU without positions": replace(SASREC, block=HSTU(position_bias=None)),
    "SASRec with times": replace(SASREC, time_gaps=TimeGaps()),
    "GRU4Rec": GRU4Rec(max_length=32, embedding_dim=8, dropout_rate=0.1),
    "GRU4Rec with times": GRU4Rec(max_length=32, embedding_dim=8, num_layers=2, is_tied=False, time_gaps=TimeGaps(8)),
    "BERT4Rec": replace(BERT, is_padding_attended=False),
    "BERT4Rec that attends to padding, with head": replace(BERT, has_head=True),
    "BERT4Rec of pre-norm blocks": replace(BERT, is_padding_attended=False, block=PreNorm(SwiGLU(2))),
    "MF": MatrixFactorisation(embedding_dim=8),
}
FULL_LOSSES = (Softmax(), Softmax(excludes_history=True), Softmax(excludes_history=True, label_smoothing=0.1))
SAMPLED_LOSSES = (
    BCE(4),
    BCE(4, is_averaged=False),
    GBCE(4, 0.5),
    BPR(4),
    SampledSoftmax(4, is_corrected=False),
    SampledSoftmax(4, is_corrected=True),
)
LAWS = (
    *(
        Negatives(shared_by, reject_positive, reject_history, by_popularity)
        for shared_by, reject_positive, reject_history in (
            ("position", False, False),
            ("position", True, False),
            ("position", False, True),
            ("sequence", False, False),
            ("sequence", False, True),
            ("batch", False, False),
        )
        for by_popularity in (False, True)
    ),
    Negatives("sequence", reject_history=True, without_replacement=True),
    Negatives("batch", without_replacement=True),
)
OPTIMIZERS = (
    Adam(),
    Adam(lazy=True),
    Adagrad(),
    Adam(CosineDecay(0.01, num_steps=100, warmup_steps=10), weight_decay=0.01, clip_norm=1.0),
    Adam(WarmUp(0.01, num_steps=100)),
)
NUM_ITEMS = (200, 40_000)
"""Sizes of the catalogue: XLA compiles the step of the smaller one as a whole, unless Adam is lazy."""


class Case(NamedTuple):
    """A training to audit.

    name: of the model.
    trained: its settings.
    num_items: size of the catalogue.
    is_packed: whether to look at the packed layout of batches, if there are two.
    """

    name: str
    trained: Trained
    num_items: int
    is_packed: bool

    def pairs(self) -> set[tuple[object, object]]:
        """All pairs of two settings; the optimiser comes with the size, because both decide what is compiled."""
        trained, training = self.trained, self.trained.training
        optimization = (training.optimizer, self.num_items)
        settings = (self.name, trained.loss, trained.negatives, optimization, training.mixed_precision, self.is_packed)
        return set(itertools.combinations(enumerate(settings), 2))


def all_cases() -> Iterator[Case]:
    """Every combination of settings that a recipe can declare."""
    objectives = [(loss, Negatives()) for loss in FULL_LOSSES]
    objectives += [pair for pair in itertools.product(SAMPLED_LOSSES, LAWS) if is_possible(*pair)]
    for optimizer, num_items, is_mixed, is_packed, (loss, law), name in itertools.product(
        OPTIMIZERS, NUM_ITEMS, (False, True), (False, True), objectives, MODELS
    ):
        training = Training(batch_size=64, optimizer=optimizer, mixed_precision=is_mixed)
        has_prior = isinstance(loss, BinaryLoss) and not law.by_popularity
        yield Case(name, Trained(MODELS[name], loss, training, law, has_prior), num_items, is_packed)


def is_possible(loss: SampledLoss, law: Negatives) -> bool:
    """Return whether a loss can be trained with negatives of a law."""
    return not (law.by_popularity and isinstance(loss, SampledSoftmax) and loss.is_corrected)


@functools.cache
def chosen_cases() -> list[Case]:
    """Few of all cases that have every pair of settings: first those with most pairs that are new."""
    candidates = [(case, case.pairs()) for case in all_cases()]
    chosen: list[Case] = []
    covered: set[tuple[object, object]] = set()
    for num_new in range(len(candidates[0][1]), 0, -1):
        for case, pairs in candidates:
            if len(pairs - covered) >= num_new:
                chosen.append(case)
                covered |= pairs
    return chosen


def _settings_in(value: object) -> Iterator[object]:
    """A dataclass and all dataclasses in its fields."""
    if is_dataclass(value):
        yield value
        for field in fields(value):
            yield from _settings_in(getattr(value, field.name))


ALL_SETTINGS = [
    settings
    for part in (*MODELS.values(), *FULL_LOSSES, *SAMPLED_LOSSES, *LAWS, *OPTIMIZERS)
    for settings in _settings_in(part)
]
