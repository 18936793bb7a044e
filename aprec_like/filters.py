"""Filters, which remove interactions, users and items from a dataset before it is split, in the order of the recipe."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterable
from dataclasses import dataclass, replace
from typing import Literal

import numpy as np
from typing_extensions import override

from aprec_like.errors import InputError
from aprec_like.interactions import Interactions, offsets_from_lengths
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
        return interactions.ratings >= self.rating


@dataclass(frozen=True)
class WithoutRepeats(Filter):
    """Keep one interaction per user and item: the `first` or the `last`."""

    kept: Literal["first", "last"] = "first"

    def __post_init__(self) -> None:
        if self.kept not in ("first", "last"):
            raise ValueError(f"WithoutRepeats needs kept to be 'first' or 'last'. Received: {self.kept!r}")

    @override
    def keep(self, interactions: Interactions) -> Array:
        return ~is_repeat(interactions, self.kept)


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
        return _has_enough(interactions.rows, interactions.items, interactions, self.user, self.item)

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
    """Return an (interactions,) mask of all but the first (or the last) interaction of a user with an item."""
    keys = interactions.rows * interactions.num_items + interactions.items
    step = 1 if kept == "first" else -1
    result = np.ones(len(keys), bool)
    result[np.unique(keys[::step], return_index=True)[1]] = False
    return result[::step]


def _has_enough(rows: Array, items: Array, interactions: Interactions, min_user: int, min_item: int) -> Array:
    """Return an (n,) mask of the interactions whose user and item both reach their minimum count."""
    user_counts = np.bincount(rows, minlength=interactions.num_users)
    item_counts = np.bincount(items, minlength=interactions.num_items)
    return (user_counts[rows] >= min_user) & (item_counts[items] >= min_item)


def _without_empty(interactions: Interactions, is_item: Array) -> Interactions:
    """Remove users without interactions and the items where `is_item` is False, and renumber the rest."""
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
