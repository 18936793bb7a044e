"""What users did: item sequences as flat arrays (one row of items after the other, with offsets)."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

Array = NDArray[Any]

PADDING = -1
"""Stands where a padded sequence has no item; real items are numbered from 0."""

MASK = -2
"""Stands where an item is hidden from a model that has to find it."""


@dataclass(frozen=True, eq=False)
class Histories:
    """The known items of some users, oldest first, one user after the other.

    Args:
        items: (interactions,) int32, item numbers from 0.
        offsets: (users + 1,) int64; the items of row `u` are `items[offsets[u]:offsets[u + 1]]`.
        users: (users,) rows of the dataset that these histories belong to; `None` for histories from outside.
    """

    items: Array
    offsets: Array
    users: Array | None = None

    def __len__(self) -> int:
        return len(self.offsets) - 1

    @property
    def lengths(self) -> Array:
        """(users,) how many items each history has."""
        return np.diff(self.offsets)

    @property
    def rows(self) -> Array:
        """(interactions,) the row that each item belongs to."""
        return np.repeat(np.arange(len(self)), self.lengths)

    def last(self, length: int) -> Array:
        """The last `length` items of every history: (users, length) int32, padded on the left."""
        positions = self.offsets[1:, None] + np.arange(-length, 0)
        is_item = positions >= self.offsets[:-1, None]
        if len(self.items) == 0:
            return np.full(positions.shape, PADDING, np.int32)
        return np.where(is_item, self.items[np.where(is_item, positions, 0)], PADDING).astype(np.int32)


@dataclass(frozen=True, eq=False)
class Interactions:
    """The item sequences of all users of a dataset, and what the source calls its users and items.

    Args:
        items: (interactions,) int32, item numbers from 0, oldest first within a user.
        offsets: (users + 1,) int64; user `u` has `items[offsets[u]:offsets[u + 1]]`.
        user_ids: (users,) the source's name of each user.
        item_ids: (num_items,) the source's name of each item of the catalogue, whether or not it occurs.
        timestamps: (interactions,) seconds, where the source has them.
        user_columns: further (users,) columns, by name.
        item_columns: further (num_items,) columns, by name, such as titles.
    """

    items: Array
    offsets: Array
    user_ids: Array
    item_ids: Array
    timestamps: Array | None = None
    user_columns: Mapping[str, Array] = field(default_factory=dict)
    item_columns: Mapping[str, Array] = field(default_factory=dict)

    @classmethod
    def from_ids(
        cls, users: Array, items: Array, timestamps: Array | None = None, item_ids: Array | None = None
    ) -> Interactions:
        """Interactions from one row per event.

        Users and items are numbered in the order of their ids. Within a user the order is that of the
        timestamps where given, else that of the rows; ties keep the order of the rows.

        Args:
            users: (interactions,) ids of users.
            items: (interactions,) ids of items.
            timestamps: (interactions,) or `None`.
            item_ids: (num_items,) sorted ids of the declared catalogue; by default the distinct `items`.
        """
        user_ids, user_rows = np.unique(users, return_inverse=True)
        if item_ids is None:
            item_ids, item_numbers = np.unique(items, return_inverse=True)
        else:
            item_numbers = np.searchsorted(item_ids, items)
        keys = (user_rows,) if timestamps is None else (timestamps, user_rows)
        order = np.lexsort(keys)
        return cls(
            items=item_numbers[order].astype(np.int32),
            offsets=np.concatenate([[0], np.cumsum(np.bincount(user_rows, minlength=len(user_ids)))]),
            user_ids=user_ids,
            item_ids=item_ids,
            timestamps=None if timestamps is None else timestamps[order],
        )

    @property
    def num_users(self) -> int:
        """Number of users."""
        return len(self.offsets) - 1

    @property
    def num_items(self) -> int:
        """Size of the declared catalogue."""
        return len(self.item_ids)

    @property
    def num_interactions(self) -> int:
        """Number of interactions."""
        return len(self.items)

    @property
    def lengths(self) -> Array:
        """(users,) how many interactions each user has."""
        return np.diff(self.offsets)

    def histories(self, users: Array) -> Histories:
        """The histories of some users, given as rows; any order, repeats allowed."""
        lengths = self.lengths[users]
        offsets = np.concatenate([[0], np.cumsum(lengths)])
        starts = self.offsets[:-1][users]
        positions = np.arange(offsets[-1]) + np.repeat(starts - offsets[:-1], lengths)
        return Histories(self.items[positions], offsets, np.asarray(users))

    def without_last(self, users: Array) -> Interactions:
        """All interactions but the last one of each of `users` (rows, distinct, none of them empty)."""
        is_kept = np.ones(self.num_interactions, bool)
        is_kept[self.offsets[1:][users] - 1] = False
        lengths = self.lengths.copy()
        lengths[users] -= 1
        return Interactions(
            items=self.items[is_kept],
            offsets=np.concatenate([[0], np.cumsum(lengths)]),
            user_ids=self.user_ids,
            item_ids=self.item_ids,
            timestamps=None if self.timestamps is None else self.timestamps[is_kept],
            user_columns=self.user_columns,
            item_columns=self.item_columns,
        )

    def last_items(self, users: Array) -> Array:
        """(len(users),) the last item of each of `users` (rows, none of them empty)."""
        return self.items[self.offsets[1:][users] - 1]

    def item_counts(self) -> Array:
        """(num_items,) how often each item of the catalogue occurs."""
        return np.bincount(self.items, minlength=self.num_items)

    def distinct_items(self) -> tuple[Array, Array]:
        """The distinct items of every user in ascending order, as flat items and offsets."""
        rows = np.repeat(np.arange(self.num_users), self.lengths)
        rows, items = np.divmod(np.unique(rows * self.num_items + self.items), self.num_items)
        return items.astype(np.int32), np.searchsorted(rows, np.arange(self.num_users + 1))

    def tied_share(self) -> float | None:
        """The share of neighbouring interactions of a user that have the same timestamp; `None` without timestamps."""
        if self.timestamps is None:
            return None
        is_same_user = np.diff(np.repeat(np.arange(self.num_users), self.lengths)) == 0
        is_tied = (np.diff(self.timestamps) == 0) & is_same_user
        return float(is_tied.sum() / max(1, is_same_user.sum()))

    def digest(self) -> str:
        """Sha256 of the sequences: equal if and only if a model would see the same data."""
        return digest_of(np.array([self.num_items]), self.offsets, self.items)


def digest_of(*arrays: Array) -> str:
    """Sha256 of integer arrays, whatever their width and the machine's byte order."""
    sha256 = hashlib.sha256()
    for array in arrays:
        sha256.update(np.array([array.size], "<i8").tobytes())
        sha256.update(np.ascontiguousarray(array, "<i8").tobytes())
    return sha256.hexdigest()
