"""What is left out of a dataset before it is split; filters apply in the order in which a recipe names them."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterable
from dataclasses import dataclass, replace
from typing import Literal

import numpy as np

from aprec_like.errors import InputError
from aprec_like.interactions import Interactions, offsets_from_lengths
from aprec_like.types import Array


class Filter(ABC):
    """Keeps some interactions. Users and items that it leaves with nothing are dropped. Subclasses are dataclasses."""

    @abstractmethod
    def keep(self, interactions: Interactions) -> Array:
        """(interactions,) whether each interaction is kept."""

    def apply(self, interactions: Interactions) -> Interactions:
        """The kept interactions; raises `InputError` if there are none.

        Items that never occurred, of a catalogue larger than the data, stay in it.
        """
        kept = interactions.where(self.keep(interactions))
        if kept.num_interactions == 0:
            raise InputError(f"{self} leaves no interaction of {interactions.num_interactions:,}")
        return _without_empty(kept, self.is_in_catalogue(interactions, kept))

    def is_in_catalogue(self, before: Interactions, after: Interactions) -> Array:
        """(num_items,) whether each item stays in the catalogue."""
        return (after.item_counts() > 0) | (before.item_counts() == 0)


def filtered(interactions: Interactions, filters: Iterable[Filter]) -> Interactions:
    """What several filters leave, one after the other."""
    for kept in filters:
        interactions = kept.apply(interactions)
    return interactions


@dataclass(frozen=True)
class MinimumRating(Filter):
    """Keeps interactions with a rating of at least `rating`."""

    rating: float

    def keep(self, interactions: Interactions) -> Array:
        """By the rating."""
        if interactions.ratings is None:
            raise InputError("MinimumRating needs ratings, and the dataset has none")
        return interactions.ratings >= self.rating


@dataclass(frozen=True)
class WithoutRepeats(Filter):
    """Keeps one interaction of a user with an item, the `first` or the `last`."""

    kept: Literal["first", "last"] = "first"

    def __post_init__(self) -> None:
        if self.kept not in ("first", "last"):
            raise ValueError(f"WithoutRepeats keeps the first or the last. Received: {self.kept!r}")

    def keep(self, interactions: Interactions) -> Array:
        """By the place of each pair among its like."""
        return ~is_repeat(interactions, self.kept)


@dataclass(frozen=True)
class MinimumCounts(Filter):
    """Keeps interactions of users and items that both have enough of them, counted once, before anything is dropped.

    What is left may have users and items with fewer; `KCore` goes on until it has none.

    Args:
        user: how many interactions a user needs.
        item: how many interactions an item needs; one that never occurs leaves the catalogue if this is positive.
    """

    user: int = 0
    item: int = 0

    def __post_init__(self) -> None:
        if min(self.user, self.item) < 0:
            raise ValueError(f"{self} needs counts of at least 0")

    def keep(self, interactions: Interactions) -> Array:
        """By both counts."""
        return _has_enough(interactions.rows, interactions.items, interactions, self.user, self.item)

    def is_in_catalogue(self, before: Interactions, after: Interactions) -> Array:
        """Items that have interactions left, and those without any if none are asked for."""
        return after.item_counts() > 0 if self.item > 0 else super().is_in_catalogue(before, after)


@dataclass(frozen=True)
class KCore(MinimumCounts):
    """Like `MinimumCounts`, again and again until every user and every item that is left has enough interactions."""

    user: int = 5
    item: int = 5

    def keep(self, interactions: Interactions) -> Array:
        """By counts among what is kept."""
        kept = np.arange(interactions.num_interactions)
        rows, items = interactions.rows, interactions.items
        while True:
            is_kept = _has_enough(rows[kept], items[kept], interactions, self.user, self.item)
            if is_kept.all():
                result = np.zeros(interactions.num_interactions, bool)
                result[kept] = True
                return result
            kept = kept[is_kept]


def is_repeat(interactions: Interactions, kept: Literal["first", "last"] = "first") -> Array:
    """(interactions,) whether the user has the same item before (or, if the last is kept, after) as well."""
    keys = interactions.rows * interactions.num_items + interactions.items
    step = 1 if kept == "first" else -1
    result = np.ones(len(keys), bool)
    result[np.unique(keys[::step], return_index=True)[1]] = False
    return result[::step]


def _has_enough(rows: Array, items: Array, interactions: Interactions, user: int, item: int) -> Array:
    of_user = np.bincount(rows, minlength=interactions.num_users)
    of_item = np.bincount(items, minlength=interactions.num_items)
    return (of_user[rows] >= user) & (of_item[items] >= item)


def _without_empty(interactions: Interactions, is_item: Array) -> Interactions:
    """Without users that have no interactions, and with the chosen items numbered anew."""
    is_user = interactions.lengths > 0
    numbers = np.cumsum(is_item) - 1
    return replace(
        interactions,
        items=numbers[interactions.items].astype(np.int32),
        offsets=offsets_from_lengths(interactions.lengths[is_user]),
        user_ids=interactions.user_ids[is_user],
        item_ids=interactions.item_ids[is_item],
        user_columns={name: column[is_user] for name, column in interactions.user_columns.items()},
        item_columns={name: column[is_item] for name, column in interactions.item_columns.items()},
    )
