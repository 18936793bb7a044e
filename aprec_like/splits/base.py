"""The result of a split (`Split`, `HeldOut`) and the interface of splitting rules (`SplitRule`)."""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass

from aprec_like.interactions import Histories, Interactions
from aprec_like.out_of_core import digest_arrays
from aprec_like.types import Array


@dataclass(frozen=True, eq=False)
class HeldOut:
    """Held-out cases: a target item to predict from the history of its user.

    Args:
        known: interactions that models may use, of all users.
        users: (cases,) row in `known` of the user of each case.
        targets: (cases,) next item of this user.
    """

    known: Interactions
    users: Array
    targets: Array

    def __len__(self) -> int:
        return len(self.users)

    def histories(self, cases: Array | slice = slice(None), *, with_times: bool = False) -> Histories:
        """Return the histories of the users of some cases, by default of all, with their times if wanted."""
        return self.known.histories(self.users[cases], with_times=with_times)

    def is_learnable(self) -> Array:
        """Return a (cases,) mask: the target occurs in `known`. No model can learn other targets."""
        return self.known.item_counts()[self.targets] > 0


@dataclass(frozen=True, eq=False)
class Split:
    """Training interactions, validation cases that choose the best epoch, and test cases that are reported.

    `test.known` includes the validation part: test users are ranked with everything before their test target. Whether
    models learn from it too is a setting of the recipe (`fit_on`). `sampled_from` is the number of all test cases if
    `test` is a random sample of them.
    """

    train: Interactions
    validation: HeldOut
    test: HeldOut
    sampled_from: int | None = None

    def digest(self) -> str:
        """Return the sha256 of users and targets; only runs with equal digests are comparable."""
        return digest_arrays(self.validation.users, self.validation.targets, self.test.users, self.test.targets)


class SplitRule(ABC):
    """Rule that splits interactions. Subclasses are frozen dataclasses."""

    @abstractmethod
    def split(self, interactions: Interactions) -> Split:
        """Split the interactions; raises `InputError` if the rule cannot be applied to them."""
