"""Interactions and histories: item sequences of users as flat arrays with offsets."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from typing import Any, NamedTuple

import numpy as np
import pandas as pd

from aprec_like.out_of_core import ArrayWriter, Ids, digest_arrays, release, slices, take
from aprec_like.types import Array

PADDING = -1
"""Item number of padding in a padded sequence; items are numbered from 0."""

MASK = -2
"""Item number of a masked position, whose item a model has to predict."""

PART_SIZE = 1 << 22
"""Interactions, or users, of a part of a dataset that is processed at once."""


@dataclass(frozen=True, eq=False)
class Histories:
    """Item sequences of a batch of users, oldest item first, stored one user after another.

    Args:
        items: (interactions,) int32, item numbers from 0.
        offsets: (users + 1,) int64; the items of row `u` are `items[offsets[u]:offsets[u + 1]]`.
        users: (users,) row of each user in the dataset; `None` for users that are not in the dataset.
        timestamps: (interactions,) times of the items; `None` where they are not known or were not asked for.
    """

    items: Array
    offsets: Array
    users: Array | None = None
    timestamps: Array | None = None

    def __len__(self) -> int:
        return len(self.offsets) - 1

    @property
    def lengths(self) -> Array:
        """(users,) number of items of each history."""
        return np.diff(self.offsets)

    @property
    def rows(self) -> Array:
        """(interactions,) row of the history that each item belongs to."""
        return np.repeat(np.arange(len(self)), self.lengths)

    def last(self, length: int, values: Array | None = None, padding: int = PADDING) -> Array:
        """Return the last `length` items, or (interactions,) values, of each history: (users, length), left-padded."""
        positions = self.offsets[1:, None] + np.arange(-length, 0)
        places = np.where(positions >= self.offsets[:-1, None], positions, -1)
        return np.append(self.items if values is None else values, padding)[places].astype(np.int32)


@dataclass(frozen=True, eq=False)
class Interactions:
    """Item sequences of all users of a dataset, with the ids of users and items.

    Arrays of many interactions, and the strings of many ids, are mapped from files. Whatever passes over all
    interactions does it by `parts`, so that it needs memory for a part and for numbers of users and items, not of
    interactions.

    Args:
        items: (interactions,) int32, item numbers from 0, oldest first within a user.
        offsets: (users + 1,) int64; user `u` has `items[offsets[u]:offsets[u + 1]]`.
        user_ids: (users,) id of each user in the source.
        item_ids: (num_items,) id of each item of the catalogue in the source, including items without interactions.
        timestamps: (interactions,) in seconds, or `None` if the source has none.
        ratings: (interactions,) or `None` if the source has none.
        user_columns, item_columns: additional (users,) or (num_items,) columns, by name, such as titles.
    """

    items: Array
    offsets: Array
    user_ids: Ids
    item_ids: Ids
    timestamps: Array | None = None
    ratings: Array | None = None
    user_columns: Mapping[str, Ids] = field(default_factory=dict)
    item_columns: Mapping[str, Ids] = field(default_factory=dict)

    @classmethod
    def from_ids(
        cls,
        users: Array,
        items: Array,
        timestamps: Array | None = None,
        ratings: Array | None = None,
        item_ids: Array | None = None,
    ) -> Interactions:
        """Create interactions from columns with one row per interaction.

        Users and items are numbered in the order of their ids. The interactions of a user are sorted by timestamp, if
        given; ties, and interactions without timestamps, keep the order of the rows.

        Args:
            users: (interactions,) ids of users.
            items: (interactions,) ids of items.
            timestamps: (interactions,) or `None`.
            ratings: (interactions,) or `None`.
            item_ids: (num_items,) sorted ids of the catalogue; by default the distinct `items`.

        Example:
            >>> interactions = Interactions.from_ids(users=np.array([7, 3, 7]), items=np.array([50, 40, 40]))
            >>> interactions.user_ids, interactions.item_ids
            (array([3, 7]), array([40, 50]))
            >>> interactions.items, interactions.offsets
            (array([0, 1, 0], dtype=int32), array([0, 1, 3]))
        """
        user_rows, user_ids = pd.factorize(users, sort=True)
        if item_ids is None:
            item_numbers, item_ids = pd.factorize(items, sort=True)
        else:
            item_numbers = np.searchsorted(item_ids, items)
        order = np.lexsort((user_rows,) if timestamps is None else (timestamps, user_rows))
        return cls(
            items=item_numbers[order].astype(np.int32),
            offsets=offsets_from_lengths(np.bincount(user_rows, minlength=len(user_ids))),
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
        """Number of items of the catalogue."""
        return len(self.item_ids)

    @property
    def num_interactions(self) -> int:
        """Number of interactions."""
        return len(self.items)

    @property
    def lengths(self) -> Array:
        """(users,) number of interactions of each user."""
        return np.diff(self.offsets)

    @property
    def rows(self) -> Array:
        """(interactions,) row of the user of each interaction."""
        return np.repeat(np.arange(self.num_users), self.lengths)

    @property
    def positions(self) -> Array:
        """(interactions,) position of each interaction in the sequence of its user, from 0."""
        return np.arange(self.num_interactions) - np.repeat(self.offsets[:-1], self.lengths)

    def histories(self, users: Array, *, with_times: bool = False) -> Histories:
        """Return the histories of users given by row, in any order and with repetitions, with their times if wanted."""
        lengths, starts = self.lengths[users], self.offsets[:-1][users]
        offsets = offsets_from_lengths(lengths)
        positions = np.arange(offsets[-1]) + np.repeat(starts - offsets[:-1], lengths)
        times = take(self.timestamps, positions) if with_times and self.timestamps is not None else None
        return Histories(take(self.items, positions), offsets, np.asarray(users), times)

    def parts(self) -> Iterator[Part]:
        """Yield the dataset in parts of consecutive users, of at most `PART_SIZE` interactions or of one user."""
        start = 0
        while start < self.num_users:
            end = int(np.searchsorted(self.offsets, self.offsets[start] + PART_SIZE, side="right")) - 1
            users = slice(start, min(max(end, start + 1), start + PART_SIZE))
            rows = slice(int(self.offsets[users.start]), int(self.offsets[users.stop]))
            yield Part(users, rows, self._part(users, rows))
            release(self.items, self.timestamps, self.ratings)
            start = users.stop

    def _part(self, users: slice, rows: slice) -> Interactions:
        return replace(
            self,
            items=self.items[rows],
            offsets=self.offsets[users.start : users.stop + 1] - self.offsets[users.start],
            user_ids=self.user_ids[users],
            timestamps=None if self.timestamps is None else self.timestamps[rows],
            ratings=None if self.ratings is None else self.ratings[rows],
            user_columns={name: column[users] for name, column in self.user_columns.items()},
        )

    def where(self, is_kept: Array) -> Interactions:
        """Keep the interactions where an (interactions,) mask is True; users and items without interactions stay."""
        return self._select(lambda part: is_kept[part.rows])

    def select_users(self, users: Array) -> Interactions:
        """Keep the users given by row in ascending order; the catalogue does not change."""
        is_user = np.zeros(self.num_users, bool)
        is_user[users] = True
        kept = self._select(lambda part: np.repeat(is_user[part.users], part.content.lengths))
        return replace(
            kept,
            offsets=offsets_from_lengths(self.lengths[users]),
            user_ids=self.user_ids[users],
            user_columns={name: column[users] for name, column in self.user_columns.items()},
        )

    def first(self, lengths: Array) -> Interactions:
        """Keep the first `lengths[u]` interactions of every user u; `lengths` has the shape (users,)."""

        def is_first(part: Part) -> Array:
            kept = np.minimum(lengths[part.users], part.content.lengths)
            runs = np.stack([kept, part.content.lengths - kept], axis=1).ravel()
            return np.repeat(np.tile([True, False], len(kept)), runs)

        return self._select(is_first)

    def _select(self, is_kept: Callable[[Part], Array]) -> Interactions:
        """Keep the interactions where the mask of every part is True."""
        lengths = np.zeros(self.num_users, np.int64)
        columns = {"items": self.items, "timestamps": self.timestamps, "ratings": self.ratings}
        writers = {name: ArrayWriter(column.dtype) for name, column in columns.items() if column is not None}
        for part in self.parts():
            mask = is_kept(part)
            lengths[part.users] = sums_of_rows(mask, part.content.offsets)
            for name, writer in writers.items():
                writer.append(getattr(part.content, name)[mask])
        kept: dict[str, Any] = {name: writer.finish() for name, writer in writers.items()}
        return replace(self, offsets=offsets_from_lengths(lengths), **kept)

    def without_last(self, users: Array) -> Interactions:
        """Remove the last interaction of each of `users` (distinct rows, each with at least one interaction)."""
        return self.first(self.lengths - np.bincount(users, minlength=self.num_users))

    def last_items(self, users: Array) -> Array:
        """Return the (len(users),) last item of each of `users` (rows, each with at least one interaction)."""
        return take(self.items, self.offsets[1:][users] - 1)

    def item_counts(self) -> Array:
        """Return the (num_items,) number of interactions of each item."""
        counts = np.zeros(self.num_items, np.int64)
        for chunk in slices(self.num_interactions):
            counts += np.bincount(self.items[chunk], minlength=self.num_items)
            release(self.items)
        return counts

    def distinct_items(self) -> tuple[Array, Array]:
        """Return the distinct items of every user in ascending order, as flat items and offsets."""
        writer, lengths = ArrayWriter(np.int32), np.zeros(self.num_users, np.int64)
        for part in self.parts():
            keys = np.sort(part.content.rows * self.num_items + part.content.items)
            # Sorting is ten times as fast as np.unique when most keys are distinct.
            keys = keys[np.append(True, keys[1:] != keys[:-1])[: len(keys)]]
            rows, items = np.divmod(keys, self.num_items)
            writer.append(items)
            lengths[part.users] = np.bincount(rows, minlength=part.content.num_users)
        return writer.finish(), offsets_from_lengths(lengths)

    def tied_share(self) -> float | None:
        """Return the share of consecutive interactions of a user with equal timestamps; `None` without timestamps."""
        if self.timestamps is None:
            return None
        num_tied = num_pairs = 0
        for part in self.parts():
            is_same_user = np.diff(part.content.rows) == 0
            num_tied += int(np.count_nonzero((np.diff(np.asarray(part.content.timestamps)) == 0) & is_same_user))
            num_pairs += int(np.count_nonzero(is_same_user))
        return num_tied / max(1, num_pairs)

    def digest(self) -> str:
        """Return the sha256 of catalogue size and sequences, which identifies the data that models see."""
        return digest_arrays(np.array([self.num_items]), self.offsets, self.items)


class Part(NamedTuple):
    """Part of a dataset: consecutive users.

    users, rows: slices of the users and interactions of the dataset.
    content: the part as interactions of its own, with the whole catalogue.
    """

    users: slice
    rows: slice
    content: Interactions


def sums_of_rows(values: Array, offsets: Array) -> Array:
    """Return the (n,) sums of `values[offsets[i]:offsets[i + 1]]`."""
    return np.diff(offsets_from_lengths(values)[offsets])


def offsets_from_lengths(lengths: Array) -> Array:
    """Return (n + 1,) offsets: sequence i of n starts at offset i and ends at offset i + 1."""
    return np.concatenate([[0], np.cumsum(lengths)])
