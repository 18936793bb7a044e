"""Split that comes with the data, stored by the dataset in two columns of users."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from typing_extensions import override

from aprec_like.errors import InputError
from aprec_like.interactions import Interactions
from aprec_like.splits.base import HeldOut, Split, SplitRule

TRAIN_LENGTH = "train_length"
"""User column: number of interactions for training."""

VALIDATION_LENGTH = "validation_length"
"""User column: number of interactions before the validation target, or -1 for users without one."""


@dataclass(frozen=True)
class AsGiven(SplitRule):
    """Use the split that comes with the data (`PreSplitFolder`)."""

    @override
    def split(self, interactions: Interactions) -> Split:
        columns = interactions.user_columns
        if TRAIN_LENGTH not in columns or VALIDATION_LENGTH not in columns:
            raise InputError("AsGiven needs a dataset that comes with a split, such as PreSplitFolder")
        train_lengths, validation_lengths = (np.asarray(columns[name]) for name in (TRAIN_LENGTH, VALIDATION_LENGTH))
        validation_users = np.flatnonzero(validation_lengths >= 0)
        known = interactions.first(np.maximum(train_lengths, validation_lengths))
        targets = interactions.items[interactions.offsets[validation_users] + validation_lengths[validation_users]]
        test_users = np.arange(interactions.num_users)
        return Split(
            train=interactions.first(train_lengths),
            validation=HeldOut(known, validation_users, targets),
            test=HeldOut(interactions.without_last(test_users), test_users, interactions.last_items(test_users)),
        )
