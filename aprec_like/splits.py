"""What is learned from and what is predicted."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from aprec_like.errors import InputError
from aprec_like.interactions import Array, Histories, Interactions, digest_of


@dataclass(frozen=True, eq=False)
class HeldOut:
    """Targets to be predicted from what is known before them.

    Args:
        known: the interactions that may be used, of all users.
        users: (cases,) the row in `known` of the user of each case.
        targets: (cases,) the item that this user interacted with next.
    """

    known: Interactions
    users: Array
    targets: Array

    def __len__(self) -> int:
        return len(self.users)

    def histories(self, start: int = 0, stop: int | None = None) -> Histories:
        """What is known of the users of cases `start` to `stop`."""
        return self.known.histories(self.users[start:stop])

    def is_learnable(self) -> Array:
        """(cases,) whether the target occurs in what is known of anyone; no model can learn another one."""
        return self.known.item_counts()[self.targets] > 0


@dataclass(frozen=True, eq=False)
class Split:
    """Interactions to train on, cases to choose the best epoch by, and cases to report.

    `test.known` holds the validation targets too: a model ranks for a test user with everything that came
    before the test target, and models that need no validation learn from it.
    """

    train: Interactions
    validation: HeldOut
    test: HeldOut

    def digest(self) -> str:
        """Sha256 of who is asked for what: runs of different digests are not comparable."""
        return digest_of(self.validation.users, self.validation.targets, self.test.users, self.test.targets)


@dataclass(frozen=True)
class LeaveOneOut:
    """The last interaction of every user is the test target; some users also have a validation target.

    A validation user's target is the last interaction before the test target, and it is left out of
    training; all other users train on everything but their test target. Users with a single interaction
    have no test target, and validation users need a history of their own besides the two targets.

    Args:
        num_validation_users: how many users have a validation target.
        seed: draws the validation users; of its own, so that runs with other training seeds stay comparable.
    """

    num_validation_users: int = 512
    seed: int = 31337

    def __post_init__(self) -> None:
        if self.num_validation_users < 1:
            raise ValueError(
                f"LeaveOneOut needs num_validation_users of at least 1. Received: {self.num_validation_users}"
            )

    def split(self, interactions: Interactions) -> Split:
        """Split the interactions; raises `InputError` if there are too few users."""
        test_users = np.flatnonzero(interactions.lengths >= 2)
        known = interactions.without_last(test_users)
        eligible = np.flatnonzero(known.lengths >= 2)
        if len(eligible) < self.num_validation_users:
            raise InputError(
                f"num_validation_users={self.num_validation_users} needs as many users with 3 or more interactions. "
                f"Received: {len(eligible)} such users"
            )
        # The raw bits of PCG64 never change between NumPy versions; the methods of Generator may.
        order = np.argsort(np.random.PCG64(self.seed).random_raw(len(eligible)), kind="stable")
        validation_users = np.sort(eligible[order[: self.num_validation_users]])
        train = known.without_last(validation_users)
        return Split(
            train=train,
            validation=HeldOut(train, validation_users, known.last_items(validation_users)),
            test=HeldOut(known, test_users, interactions.last_items(test_users)),
        )
