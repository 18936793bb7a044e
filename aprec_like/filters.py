"""Filters, which remove interactions, users and items from a dataset before it is split, in the order of the recipe."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterable
from dataclasses import dataclass, replace
from typing import Literal

import numpy as np
from typing_extensions import override

from aprec_like.errors import InputError
from aprec_like.interactions import Interactions, offsets_from_lengths, sums_of_rows
from aprec_like.out_of_core import ArrayWriter, map_array
from aprec_like.types import Array


class Filter(ABC):
    """Filter of interactions; users and items that lose all interactions are removed. Subclasses are dataclasses."""

    @abstractmethod
    def keep(self, interactions: Interactions) -> Array:
        """Return an (interactions,) mask of the interactions to keep."""

    def apply(self, interactions: Interactions) -> Interactions:
        """Return the kept interactions; raises `InputError` if there are none."""
        kept = interactions.where(self.keep(interactions))
        if kept.num_interactions == 0:
            raise InputError(f"{self} leaves no interaction of {interactions.num_interactions:,}")
        return _without_empty(kept, self.is_in_catalogue(interactions, kept))

    def is_in_catalogue(self, before: Interactions, after: Interactions) -> Array:
        """Return a (num_items,) mask of the items to keep: by default also those without interactions before."""
        return (after.item_counts() > 0) | (before.item_counts() == 0)


def apply_filters(interactions: Interactions, filters: Iterable[Filter]) -> Interactions:
    """Apply several filters one after another."""
    for each in filters:
        interactions = each.apply(interactions)
    return interactions


@dataclass(frozen=True)
class MinimumRating(Filter):
    """Keep interactions with a rating of at least `rating`."""

    rating: float

    @override
    def keep(self, interactions: Interactions) -> Array:
        if interactions.ratings is None:
            raise InputError("MinimumRating needs ratings, but the dataset has none")
        return map_array(interactions.ratings, lambda ratings: ratings >= self.rating, bool)


@dataclass(frozen=True)
class WithoutRepeats(Filter):
    """Keep one interaction per user and item: the `first` or the `last`."""

    kept: Literal["first", "last"] = "first"

    def __post_init__(self) -> None:
        if self.kept not in ("first", "last"):
            raise ValueError(f"WithoutRepeats needs kept to be 'first' or 'last'. Received: {self.kept!r}")

    @override
    def keep(self, interactions: Interactions) -> Array:
        return map_array(is_repeat(interactions, self.kept), np.logical_not, bool)


@dataclass(frozen=True)
class MinimumCounts(Filter):
    """Keep interactions of users and items with enough interactions, counted once, before any are removed.

    The result may have users and items with fewer interactions; `KCore` repeats the filter until there are none.

    Args:
        user: minimum number of interactions of a user.
        item: minimum number of interactions of an item; if positive, items without interactions are removed as well.
    """

    user: int = 0
    item: int = 0

    def __post_init__(self) -> None:
        if min(self.user, self.item) < 0:
            raise ValueError(f"{type(self).__name__} needs counts of at least 0. Received: {self}")

    @override
    def keep(self, interactions: Interactions) -> Array:
        return _is_between(interactions, interactions.lengths >= self.user, interactions.item_counts() >= self.item)

    @override
    def is_in_catalogue(self, before: Interactions, after: Interactions) -> Array:
        return after.item_counts() > 0 if self.item > 0 else super().is_in_catalogue(before, after)


@dataclass(frozen=True)
class KCore(MinimumCounts):
    """Repeat `MinimumCounts` until every remaining user and item has enough interactions."""

    user: int = 5
    item: int = 5

    @override
    def keep(self, interactions: Interactions) -> Array:
        user_counts, item_counts = interactions.lengths, interactions.item_counts()
        is_user, is_item = np.ones(len(user_counts), bool), np.ones(len(item_counts), bool)
        while True:
            num_before = np.count_nonzero(is_user) + np.count_nonzero(is_item)
            is_user &= user_counts >= self.user
            is_item &= item_counts >= self.item
            if np.count_nonzero(is_user) + np.count_nonzero(is_item) == num_before:
                return _is_between(interactions, is_user, is_item)
            user_counts, item_counts = _counts_between(interactions, is_user, is_item)


def is_repeat(interactions: Interactions, kept: Literal["first", "last"] = "first") -> Array:
    """Return an (interactions,) mask of all but the first (or the last) interaction of a user with an item."""
    step, writer = (1 if kept == "first" else -1), ArrayWriter(bool)
    for part in interactions.parts():
        keys = part.content.rows * interactions.num_items + part.content.items
        result = np.ones(len(keys), bool)
        result[np.unique(keys[::step], return_index=True)[1]] = False
        writer.append(result[::step])
    return writer.finish()


def _is_between(interactions: Interactions, is_user: Array, is_item: Array) -> Array:
    """Return an (interactions,) mask of the interactions between some users and some items."""
    writer = ArrayWriter(bool)
    for part in interactions.parts():
        writer.append(is_item[part.content.items] & np.repeat(is_user[part.users], part.content.lengths))
    return writer.finish()


def _counts_between(interactions: Interactions, is_user: Array, is_item: Array) -> tuple[Array, Array]:
    """Return how many interactions each user and each item has, counting only those between some users and items."""
    user_counts, item_counts = np.zeros(len(is_user), np.int64), np.zeros(len(is_item), np.int64)
    for part in interactions.parts():
        is_counted = is_item[part.content.items] & np.repeat(is_user[part.users], part.content.lengths)
        user_counts[part.users] = sums_of_rows(is_counted, part.content.offsets)
        item_counts += np.bincount(part.content.items[is_counted], minlength=len(is_item))
    return user_counts, item_counts


def _without_empty(interactions: Interactions, is_item: Array) -> Interactions:
    """Remove users without interactions and the items where `is_item` is False, and renumber the rest."""
    is_user = interactions.lengths > 0
    numbers = (np.cumsum(is_item) - 1).astype(np.int32)
    return replace(
        interactions,
        items=map_array(interactions.items, lambda items: numbers[items], np.int32),
        offsets=offsets_from_lengths(interactions.lengths[is_user]),
        user_ids=interactions.user_ids[is_user],
        item_ids=interactions.item_ids[is_item],
        user_columns={name: column[is_user] for name, column in interactions.user_columns.items()},
        item_columns={name: column[is_item] for name, column in interactions.item_columns.items()},
    )
