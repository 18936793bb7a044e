"""Rows of top_items.parquet, one per test user and position, read in row groups and arranged by user.

Users stand in the order of per_user.parquet; those who have seen all items have no rows.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from io import BufferedReader
from pathlib import Path

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet

from aprec_like.errors import InputError
from aprec_like.interactions import PADDING
from aprec_like.types import Array
from evaluation.results.files import open_parquet
from evaluation.results.schemas import check_table
from evaluation.results.user_columns import BATCH_ROWS, UserColumns, find_rows

CHUNK_USERS = 1 << 15
"""Users whose top items are arranged at once."""


@dataclass(frozen=True, eq=False)
class TopItemsChunk:
    """Top items of consecutive users, best first.

    Args:
        users: their rows in per_user.parquet.
        items: (users, depth) rows of the catalogue, PADDING where a user has fewer.
        scores: (users, depth) scores, NaN where a user has fewer.
    """

    users: slice
    items: Array
    scores: Array


@dataclass(frozen=True, eq=False)
class TopItems:
    """Open table of top items.

    Args:
        path: of the file, for errors.
        table: the Parquet file.
    """

    path: Path
    table: pa.parquet.ParquetFile

    def frames(self) -> Iterator[pd.DataFrame]:
        """Yield the content in parts."""
        for batch in self._batches(None):
            yield batch.to_pandas()

    def first_users(self, num_users: int) -> list[str]:
        """Return the ids of the first users who have top items."""
        batch = next(self._batches(["user"]), None)
        return [] if batch is None else [str(user) for user in batch.column(0).unique()[:num_users].to_pylist()]

    def has_user(self, user: str) -> bool:
        """Return whether a user, whose id is given as text, has top items."""
        return any(user in map(str, batch.column(0).unique().to_pylist()) for batch in self._batches(["user"]))

    def items(self, catalogue: pd.Index) -> Iterator[tuple[Array, Array]]:
        """Yield positions, from 1, and items as rows of the catalogue."""
        for batch in self._batches(["position", "item"]):
            yield _to_numpy(batch["position"]), self._find_items(batch["item"], catalogue)

    def read_depth(self) -> int:
        """Return the largest position; raises `InputError` unless positions count from 1 for every user."""
        depth = longest = length = previous = 0
        for batch in self._batches(["position"]):
            positions = _to_numpy(batch.column(0))
            starts = np.flatnonzero(np.diff(positions, prepend=previous) <= 0)
            lengths = np.diff(starts, prepend=-length, append=len(positions))
            longest, length, previous = max(longest, int(lengths.max())), int(lengths[-1]), positions[-1]
            if not positions.min() >= 1:
                raise self._wrong_positions()
            depth = max(depth, int(positions.max()))
        if depth > longest:
            raise self._wrong_positions()
        return depth

    def chunks(self, users: UserColumns, catalogue: pd.Index) -> Iterator[TopItemsChunk]:
        """Yield the top items of all users, those without any included.

        Args:
            users: table of the same model, which has all users.
            catalogue: ids of the items.
        """
        depth, num_users = self.read_depth(), users.num_users
        finder, chunk = _UserFinder(users, self.path), _empty_chunk(0, num_users, depth)
        for batch in self._batches(["user", "position", "item", "score"]):
            rows, columns = finder.find(batch["user"]), _to_numpy(batch["position"]).astype(np.int64) - 1
            items, scores = self._find_items(batch["item"], catalogue), _to_numpy(batch["score"])
            start = 0
            while start < len(rows):
                end = start + int(np.searchsorted(rows[start:], chunk.users.stop))
                cells = rows[start:end] - chunk.users.start, columns[start:end]
                chunk.items[cells], chunk.scores[cells] = items[start:end], scores[start:end]
                if end < len(rows):
                    yield chunk
                    chunk = _empty_chunk(chunk.users.stop, num_users, depth)
                start = end
        yield chunk
        while chunk.users.stop < num_users:
            chunk = _empty_chunk(chunk.users.stop, num_users, depth)
            yield chunk

    def _find_items(self, ids: pa.Array, catalogue: pd.Index) -> Array:
        rows = find_rows(ids, catalogue)
        if len(rows) and rows.min() < 0:
            raise InputError(f"{self.path}: is damaged: it has items that items.parquet does not have")
        return rows

    def _wrong_positions(self) -> InputError:
        return InputError(f"{self.path}: is damaged: positions must count from 1 for every user")

    def _batches(self, names: list[str] | None) -> Iterator[pa.RecordBatch]:
        batches: Iterator[pa.RecordBatch] = self.table.iter_batches(BATCH_ROWS, columns=names)
        return (batch for batch in batches if batch.num_rows)


class _UserFinder:
    """Finds the rows of users who come in the order of per_user.parquet, and holds only those around the last one."""

    def __init__(self, users: UserColumns, path: Path) -> None:
        self._batches, self._path = users.users(), path
        self._window, self._first = pd.Index([]), 0

    def find(self, ids: pa.Array) -> Array:
        """Return the rows of the next ids, each with all its repetitions."""
        encoded = ids.dictionary_encode()
        wanted = pd.Index(encoded.dictionary.to_pandas())
        found = self._window.get_indexer(wanted)
        while (found < 0).any():
            following = next(self._batches, None)
            if following is None:
                break
            self._window = following if self._window.empty else self._window.append(following)
            found = self._window.get_indexer(wanted)
        rows = np.append(found, -1)[encoded.indices.fill_null(len(found)).to_numpy()]
        if (rows < 0).any() or (np.diff(rows) < 0).any():
            raise InputError(f"{self._path}: is damaged: it must have the users of per_user.parquet in their order")
        rows = rows + self._first
        self._window, self._first = self._window[found[-1] :], self._first + int(found[-1])
        return np.asarray(rows)


@contextmanager
def open_top_items(path: Path, file: BufferedReader) -> Iterator[TopItems]:
    """Open top_items.parquet; raises `InputError` if it is damaged.

    Args:
        path: of the file, for errors.
        file: the open file.
    """
    with open_parquet(path, file) as table:
        check_table(path, table.schema_arrow.empty_table().to_pandas())
        for name in ("position", "score"):
            if table.metadata.num_rows and not _is_number(table.schema_arrow.field(name).type):
                raise InputError(f"{path}: is damaged, or of another version: {name!r} must hold numbers")
        yield TopItems(path, table)


def _is_number(kind: pa.DataType) -> bool:
    return bool(pa.types.is_integer(kind) or pa.types.is_floating(kind))


def _to_numpy(numbers: pa.Array) -> Array:
    return np.asarray(numbers.to_numpy(zero_copy_only=False))


def _empty_chunk(start: int, num_users: int, depth: int) -> TopItemsChunk:
    users = slice(start, min(start + CHUNK_USERS, num_users))
    shape = (users.stop - start, depth)
    return TopItemsChunk(users, np.full(shape, PADDING, np.int32), np.full(shape, np.nan, np.float32))
