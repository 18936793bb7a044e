"""Temporal split: train before a point in time, predict after it."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from typing_extensions import override

from aprec_like.errors import InputError
from aprec_like.interactions import Interactions
from aprec_like.splits.base import HeldOut, Split, SplitRule
from aprec_like.types import Array


@dataclass(frozen=True)
class TemporalSplit(SplitRule):
    """Split by time: models learn only from interactions before the targets.

    A share `test_share` of all interactions lies at or after the test time. The validation time is chosen in the same
    way among the interactions before the test time. The target of a user is the first interaction at or after that
    time; users without interactions on both sides of it have no target.

    Args:
        test_share: approximate share of interactions at or after the test time.
        validation_share: approximate share, among interactions before the test time, of those at or after the
            validation time.
    """

    test_share: float = 0.1
    validation_share: float = 0.1

    def __post_init__(self) -> None:
        if not (0 < self.test_share < 1 and 0 < self.validation_share < 1):
            raise ValueError(f"TemporalSplit needs shares between 0 and 1. Received: {self}")

    @override
    def split(self, interactions: Interactions) -> Split:
        timestamps = interactions.timestamps
        if timestamps is None:
            raise InputError("TemporalSplit needs timestamps, but the dataset has none")
        is_known = timestamps < _quantile(timestamps, 1 - self.test_share)
        if not is_known.any():
            raise InputError("TemporalSplit finds no interaction before the test time; reduce test_share")
        known = interactions.where(is_known)
        train = interactions.where(timestamps < _quantile(timestamps[is_known], 1 - self.validation_share))
        return Split(
            train=train,
            validation=_first_targets(known, train, "validation"),
            test=_first_targets(interactions, known, "test"),
        )


def _quantile(timestamps: Array, share: float) -> np.number:
    """Return the timestamp at position ceil(share * n) of the n sorted timestamps."""
    position = min(int(np.ceil(share * len(timestamps))), len(timestamps) - 1)
    return np.partition(timestamps, position)[position]


def _first_targets(interactions: Interactions, known: Interactions, purpose: str) -> HeldOut:
    """Hold out every user's first interaction after `known`, which has the first interactions of every user."""
    users = np.flatnonzero((known.lengths > 0) & (interactions.lengths > known.lengths))
    if len(users) == 0:
        raise InputError(f"TemporalSplit finds no {purpose} user with interactions before and after the {purpose} time")
    return HeldOut(known, users, interactions.items[interactions.offsets[users] + known.lengths[users]])
