"""What is learned from and what is predicted."""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import Any

import numpy as np

from aprec_like.errors import InputError
from aprec_like.interactions import Histories, Interactions, digest_of
from aprec_like.types import Array

TRAIN_LENGTH, VALIDATION_LENGTH = "train_length", "validation_length"
"""Columns of users: how many of their interactions are for training, and how many are known when validating (-1: the
user has no validation target)."""


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

    def histories(self, cases: Array | slice = slice(None)) -> Histories:
        """What is known of the users of some cases."""
        return self.known.histories(self.users[cases])

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


class SplitRule(ABC):
    """How interactions are split. Subclasses are frozen dataclasses."""

    @abstractmethod
    def split(self, interactions: Interactions) -> Split:
        """Split the interactions; raises `InputError` if they don't allow it."""


@dataclass(frozen=True)
class LeaveOneOut(SplitRule):
    """The last interaction of every user is the test target; some users also have a validation target.

    A validation user's target is the last interaction before the test target, and it is left out of
    training; all other users train on everything but their test target. Users with a single interaction
    have no test target, and validation users need a history of their own besides the two targets.

    Args:
        num_validation_users: how many users have a validation target; `None` for all that can.
        seed: draws the validation users; of its own, so that runs with other training seeds stay comparable.
    """

    num_validation_users: int | None = 512
    seed: int = 31337

    def __post_init__(self) -> None:
        if self.num_validation_users is not None and self.num_validation_users < 1:
            raise ValueError(
                f"LeaveOneOut needs num_validation_users of at least 1. Received: {self.num_validation_users}"
            )

    def split(self, interactions: Interactions) -> Split:
        """Split the interactions; raises `InputError` if there are too few users."""
        test_users = np.flatnonzero(interactions.lengths >= 2)
        known = interactions.without_last(test_users)
        eligible = np.flatnonzero(known.lengths >= 2)
        wanted = len(eligible) if self.num_validation_users is None else self.num_validation_users
        if not 1 <= wanted <= len(eligible):
            raise InputError(
                f"LeaveOneOut(num_validation_users={self.num_validation_users}) needs as many users with 3 or more "
                f"interactions. Received: {len(eligible)} such users"
            )
        # The raw bits of PCG64 never change between NumPy versions; the methods of Generator may.
        order = np.argsort(np.random.PCG64(self.seed).random_raw(len(eligible)), kind="stable")
        validation_users = np.sort(eligible[order[:wanted]])
        train = known.without_last(validation_users)
        return Split(
            train=train,
            validation=HeldOut(train, validation_users, known.last_items(validation_users)),
            test=HeldOut(known, test_users, interactions.last_items(test_users)),
        )


@dataclass(frozen=True)
class TemporalSplit(SplitRule):
    """Everything before a moment is known, what comes after is to be predicted: nothing is learned from the future.

    The test moment is the time that a share `test_share` of all interactions lies at or after, the validation moment
    likewise among the interactions before it. The target of a user is the first interaction at or after the moment;
    users without a history before it, or without an interaction after it, are not asked.

    Args:
        test_share: share of interactions at or after the test moment, about.
        validation_share: share of the interactions before the test moment at or after the validation moment.
    """

    test_share: float = 0.1
    validation_share: float = 0.1

    def __post_init__(self) -> None:
        if not (0 < self.test_share < 1 and 0 < self.validation_share < 1):
            raise ValueError(f"TemporalSplit needs shares between 0 and 1. Received: {self}")

    def split(self, interactions: Interactions) -> Split:
        """Split the interactions; raises `InputError` without timestamps, or if nobody is left to be asked."""
        timestamps = interactions.timestamps
        if timestamps is None:
            raise InputError("TemporalSplit needs timestamps, and the dataset has none")
        test_moment = _quantile(timestamps, 1 - self.test_share)
        before = timestamps < test_moment
        if not before.any():
            raise InputError("TemporalSplit finds no interaction before the test moment; test_share is too large")
        validation_moment = _quantile(timestamps[before], 1 - self.validation_share)
        train = interactions.where(timestamps < validation_moment)
        return Split(
            train=train,
            validation=_first_after(interactions.where(before), train, "validation"),
            test=_first_after(interactions, interactions.where(before), "test"),
        )


@dataclass(frozen=True)
class AsGiven(SplitRule):
    """The split that the data came with (`PreSplitFolder`)."""

    def split(self, interactions: Interactions) -> Split:
        """Split the interactions; raises `InputError` if they came without a split."""
        columns = interactions.user_columns
        if TRAIN_LENGTH not in columns or VALIDATION_LENGTH not in columns:
            raise InputError("AsGiven needs data that came split, such as PreSplitFolder")
        train_lengths, validation_lengths = columns[TRAIN_LENGTH], columns[VALIDATION_LENGTH]
        validation_users = np.flatnonzero(validation_lengths >= 0)
        shown = interactions.first(np.maximum(train_lengths, validation_lengths))
        targets = interactions.items[interactions.offsets[validation_users] + validation_lengths[validation_users]]
        test_users = np.arange(interactions.num_users)
        return Split(
            train=interactions.first(train_lengths),
            validation=HeldOut(shown, validation_users, targets),
            test=HeldOut(interactions.without_last(test_users), test_users, interactions.last_items(test_users)),
        )


@dataclass(frozen=True)
class Leakage:
    """How far leave-one-out learns from the future.

    Args:
        train_interactions: how many interactions leave-one-out trains on.
        after_a_target: how many of them lie after the test target of some user.
        mean_share_after: the share of them that lies after the test target, on average over users.
    """

    train_interactions: int
    after_a_target: int
    mean_share_after: float


def leakage_of_leave_one_out(interactions: Interactions) -> Leakage | None:
    """What leave-one-out learns that happened after what it predicts; `None` without timestamps or targets."""
    users = np.flatnonzero(interactions.lengths >= 2)
    if interactions.timestamps is None or len(users) == 0:
        return None
    train = interactions.without_last(users)
    moments = interactions.timestamps[interactions.offsets[1:][users] - 1]
    train_moments = np.sort(np.asarray(train.timestamps))
    after = len(train_moments) - np.searchsorted(train_moments, moments, side="right")
    return Leakage(len(train_moments), int(after.max()), float(np.mean(after / len(train_moments))))


def _quantile(timestamps: Array, share: float) -> Any:
    """The smallest timestamp that at least `share` of them lie before or at."""
    place = min(int(np.ceil(share * len(timestamps))), len(timestamps) - 1)
    return np.partition(timestamps, place)[place]


def _first_after(whole: Interactions, known: Interactions, purpose: str) -> HeldOut:
    """Every user's first interaction that is in `whole` and not in `known`, which is an early part of it."""
    users = np.flatnonzero((known.lengths > 0) & (whole.lengths > known.lengths))
    if len(users) == 0:
        raise InputError(f"TemporalSplit finds no {purpose} user with interactions before and after the moment")
    return HeldOut(known, users, whole.items[whole.offsets[users] + known.lengths[users]])
