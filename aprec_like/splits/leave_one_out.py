"""Leave-one-out split: the last interaction of every user is the test target."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from typing_extensions import override

from aprec_like.errors import InputError
from aprec_like.interactions import Interactions
from aprec_like.splits.base import HeldOut, Split, SplitRule
from aprec_like.splits.sample import random_order


@dataclass(frozen=True)
class LeaveOneOut(SplitRule):
    """Split by position: the last interaction of every user is the test target.

    The validation target of a validation user is the interaction before the test target; it is excluded from training.
    All other users train on everything but their test target. Users with a single interaction have no test target,
    and validation users need at least one interaction before their two targets.

    Args:
        num_validation_users: number of users with a validation target; `None` for all users with 3 or more
            interactions.
        seed: seed of the sample of validation users. It is independent of the training seeds, so that runs with
            different training seeds are comparable.

    Example:
        >>> interactions = Interactions.from_ids(users=np.array([1, 1, 1, 2, 2]), items=np.array([5, 6, 7, 6, 5]))
        >>> split = LeaveOneOut(num_validation_users=1).split(interactions)
        >>> interactions.item_ids[split.test.targets], interactions.item_ids[split.validation.targets]
        (array([7, 5]), array([6]))
        >>> interactions.item_ids[split.train.items]
        array([5, 6])
    """

    num_validation_users: int | None = 512
    seed: int = 31337

    def __post_init__(self) -> None:
        if self.num_validation_users is not None and self.num_validation_users < 1:
            raise ValueError(
                f"LeaveOneOut needs num_validation_users of at least 1. Received: {self.num_validation_users}"
            )

    @override
    def split(self, interactions: Interactions) -> Split:
        test_users = np.flatnonzero(interactions.lengths >= 2)
        known = interactions.without_last(test_users)
        eligible = np.flatnonzero(known.lengths >= 2)
        num_sampled = len(eligible) if self.num_validation_users is None else self.num_validation_users
        if not 1 <= num_sampled <= len(eligible):
            hint = "; num_validation_users=None takes all of them" if len(eligible) else ""
            raise InputError(
                f"LeaveOneOut(num_validation_users={self.num_validation_users}) needs as many users with 3 or more "
                f"interactions. Received: {len(eligible)} such users{hint}"
            )
        validation_users = np.sort(eligible[random_order(len(eligible), self.seed)[:num_sampled]])
        train = known.without_last(validation_users)
        return Split(
            train=train,
            validation=HeldOut(train, validation_users, known.last_items(validation_users)),
            test=HeldOut(known, test_users, interactions.last_items(test_users)),
        )
