"""Temporal split: train before a point in time, predict after it."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from typing_extensions import override

from aprec_like.errors import InputError
from aprec_like.interactions import Interactions
from aprec_like.out_of_core import map_array, select_kth
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
            raise InputError(
                "TemporalSplit needs timestamps, but the dataset has none: read a file that has them (CSVFile(..., "
                'timestamp="time")), or use LeaveOneOut'
            )
        num_interactions = len(timestamps)
        is_known = _is_before(timestamps, select_kth(timestamps, _position(1 - self.test_share, num_interactions)))
        num_known = int(np.count_nonzero(is_known))
        if num_known == 0:
            raise InputError("TemporalSplit finds no interaction before the test time; reduce test_share")
        known = interactions.where(is_known)
        # The known timestamps are the smallest, so their k-th smallest is that of all.
        validation_time = select_kth(timestamps, _position(1 - self.validation_share, num_known))
        train = interactions.where(_is_before(timestamps, validation_time))
        return Split(
            train=train,
            validation=_first_targets(known, train, "validation"),
            test=_first_targets(interactions, known, "test"),
        )


def _position(share: float, length: int) -> int:
    """Return the position ceil(share * length) in a sorted array, at most the last."""
    return min(int(np.ceil(share * length)), length - 1)


def _is_before(timestamps: Array, time: np.number) -> Array:
    return map_array(timestamps, lambda chunk: chunk < time, bool)


def _first_targets(interactions: Interactions, known: Interactions, purpose: str) -> HeldOut:
    """Hold out every user's first interaction after `known`, which has the first interactions of every user."""
    users = np.flatnonzero((known.lengths > 0) & (interactions.lengths > known.lengths))
    if len(users) == 0:
        raise InputError(f"TemporalSplit finds no {purpose} user with interactions before and after the {purpose} time")
    return HeldOut(known, users, interactions.items[interactions.offsets[users] + known.lengths[users]])
