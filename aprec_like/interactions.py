"""What users did: item sequences as flat arrays (one row of items after the other, with offsets)."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from dataclasses import dataclass, field, replace

import numpy as np
import pandas as pd

from aprec_like.types import Array

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
        ratings: (interactions,) what users said of the items, where the source has it.
        user_columns: further (users,) columns, by name.
        item_columns: further (num_items,) columns, by name, such as titles.
    """

    items: Array
    offsets: Array
    user_ids: Array
    item_ids: Array
    timestamps: Array | None = None
    ratings: Array | None = None
    user_columns: Mapping[str, Array] = field(default_factory=dict)
    item_columns: Mapping[str, Array] = field(default_factory=dict)

    @classmethod
    def from_ids(
        cls,
        users: Array,
        items: Array,
        timestamps: Array | None = None,
        ratings: Array | None = None,
        item_ids: Array | None = None,
    ) -> Interactions:
        """Interactions from one row per event.

        Users and items are numbered in the order of their ids. Within a user the order is that of the
        timestamps where given, else that of the rows; ties keep the order of the rows.

        Args:
            users: (interactions,) ids of users.
            items: (interactions,) ids of items.
            timestamps: (interactions,) or `None`.
            ratings: (interactions,) or `None`.
            item_ids: (num_items,) sorted ids of the declared catalogue; by default the distinct `items`.
        """
        user_rows, user_ids = pd.factorize(users, sort=True)
        if item_ids is None:
            item_numbers, item_ids = pd.factorize(items, sort=True)
        else:
            item_numbers = np.searchsorted(item_ids, items)
        order = np.lexsort((user_rows,) if timestamps is None else (timestamps, user_rows))
        return cls(
            items=item_numbers[order].astype(np.int32),
            offsets=offsets_of(np.bincount(user_rows, minlength=len(user_ids))),
            user_ids=user_ids,
            item_ids=item_ids,
            timestamps=None if timestamps is None else timestamps[order],
            ratings=None if ratings is None else ratings[order],
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

    @property
    def rows(self) -> Array:
        """(interactions,) the user that each interaction belongs to."""
        return np.repeat(np.arange(self.num_users), self.lengths)

    @property
    def positions(self) -> Array:
        """(interactions,) the place of each interaction in its user's sequence, from 0."""
        return np.arange(self.num_interactions) - np.repeat(self.offsets[:-1], self.lengths)

    def histories(self, users: Array) -> Histories:
        """The histories of some users, given as rows; any order, repeats allowed."""
        lengths = self.lengths[users]
        offsets = offsets_of(lengths)
        starts = self.offsets[:-1][users]
        positions = np.arange(offsets[-1]) + np.repeat(starts - offsets[:-1], lengths)
        return Histories(self.items[positions], offsets, np.asarray(users))

    def where(self, is_kept: Array) -> Interactions:
        """The interactions that a (interactions,) mask keeps; all users and items stay, some with nothing."""
        return replace(
            self,
            items=self.items[is_kept],
            offsets=offsets_of(np.bincount(self.rows[is_kept], minlength=self.num_users)),
            timestamps=None if self.timestamps is None else self.timestamps[is_kept],
            ratings=None if self.ratings is None else self.ratings[is_kept],
        )

    def users_only(self, users: Array) -> Interactions:
        """The interactions of some users (rows, ascending), with the whole catalogue."""
        kept = self.where(np.isin(self.rows, users))
        return replace(
            kept,
            offsets=offsets_of(self.lengths[users]),
            user_ids=self.user_ids[users],
            user_columns={name: column[users] for name, column in self.user_columns.items()},
        )

    def first(self, lengths: Array) -> Interactions:
        """The first interactions of every user, `lengths` (users,) of them."""
        return self.where(self.positions < lengths[self.rows])

    def without_last(self, users: Array) -> Interactions:
        """All interactions but the last one of each of `users` (rows, distinct, none of them empty)."""
        lengths = self.lengths.copy()
        lengths[users] -= 1
        return self.first(lengths)

    def last_items(self, users: Array) -> Array:
        """(len(users),) the last item of each of `users` (rows, none of them empty)."""
        return self.items[self.offsets[1:][users] - 1]

    def item_counts(self) -> Array:
        """(num_items,) how often each item of the catalogue occurs."""
        return np.bincount(self.items, minlength=self.num_items)

    def distinct_items(self) -> tuple[Array, Array]:
        """The distinct items of every user in ascending order, as flat items and offsets."""
        keys = np.sort(self.rows * self.num_items + self.items)
        # By sorting: np.unique takes ten times as long where most keys are distinct.
        keys = keys[np.append(True, keys[1:] != keys[:-1])[: len(keys)]]
        rows, items = np.divmod(keys, self.num_items)
        return items.astype(np.int32), np.searchsorted(rows, np.arange(self.num_users + 1))

    def tied_share(self) -> float | None:
        """The share of neighbouring interactions of a user that have the same timestamp; `None` without timestamps."""
        if self.timestamps is None:
            return None
        is_same_user = np.diff(self.rows) == 0
        is_tied = (np.diff(self.timestamps) == 0) & is_same_user
        return float(is_tied.sum() / max(1, is_same_user.sum()))

    def digest(self) -> str:
        """Sha256 of the sequences: equal if and only if a model would see the same data."""
        return digest_of(np.array([self.num_items]), self.offsets, self.items)


def offsets_of(lengths: Array) -> Array:
    """(n + 1,) where each of n parts of these lengths starts, and where the last one ends."""
    return np.concatenate([[0], np.cumsum(lengths)])


def digest_of(*arrays: Array) -> str:
    """Sha256 of integer arrays, whatever their width and the machine's byte order."""
    sha256 = hashlib.sha256()
    for array in arrays:
        sha256.update(np.array([array.size], "<i8").tobytes())
        sha256.update(np.ascontiguousarray(array, "<i8").tobytes())
    return sha256.hexdigest()
