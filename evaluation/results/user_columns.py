"""Columns of per_user.parquet, one row per test user, read in row groups; metrics also computed from stored ranks.

Millions of ids are neither held nor turned into Python strings: a digest of them tells whether two tables have the
same users and targets in the same order.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from io import BufferedReader
from pathlib import Path

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet

from aprec_like.errors import InputError
from aprec_like.metrics import metric_named
from aprec_like.out_of_core import ArrayWriter, release
from aprec_like.types import Array
from evaluation.results.files import open_parquet

CASE_COLUMNS = ("user", "target")
SAMPLED = " (sampled)"
"""How the names of metrics of the rank among sampled candidates end."""
BATCH_ROWS = 1 << 17
"""Rows that are decoded at once."""


@dataclass(frozen=True, eq=False)
class UserColumns:
    """Open table with one row per test user.

    Args:
        path: of the file, for errors.
        table: the Parquet file.
    """

    path: Path
    table: pa.parquet.ParquetFile

    @property
    def names(self) -> list[str]:
        """Names of the columns."""
        return list(self.table.schema_arrow.names)

    @property
    def num_users(self) -> int:
        """Number of rows."""
        return int(self.table.metadata.num_rows)

    def read_numbers(self, name: str) -> Array:
        """Return a column of numbers, (users,), mapped from a file if it is large; missing numbers are NaN.

        Raises `InputError` if it does not hold numbers.
        """
        kind = self.table.schema_arrow.field(name).type
        if not (pa.types.is_floating(kind) or pa.types.is_integer(kind) or pa.types.is_null(kind)):
            raise InputError(f"{self.path}: {name} must hold numbers. Received: {kind}")
        writer = ArrayWriter(kind.to_pandas_dtype() if pa.types.is_floating(kind) else np.float64)
        for batch in self._batches([name]):
            writer.append(batch.column(0).to_numpy(zero_copy_only=False))
        numbers = writer.finish()
        release(numbers)
        return numbers

    def digest_cases(self) -> str:
        """Return the sha256 of users and targets, which does not depend on row groups and encodings."""
        hashes = [_ColumnHash() for _ in CASE_COLUMNS]
        for batch in self._batches(list(CASE_COLUMNS)):
            for name, each in zip(CASE_COLUMNS, hashes, strict=True):
                each.update(batch[name])
        return hashlib.sha256(" ".join(each.hexdigest() for each in hashes).encode()).hexdigest()

    def users(self) -> Iterator[pd.Index]:
        """Yield the ids of consecutive users."""
        for batch in self._batches(["user"]):
            yield pd.Index(batch.column(0).to_pandas())

    def find_user(self, user: str) -> int | None:
        """Return the row of a user, whose id is given as text; `None` if there is none."""
        first = 0
        for users in self.users():
            found = np.flatnonzero(users.astype(str) == user)
            if len(found):
                return first + int(found[0])
            first += len(users)
        return None

    def find_targets(self, catalogue: pd.Index) -> Array:
        """Return the (users,) rows of the targets in an index of item ids, -1 for others."""
        writer = ArrayWriter(np.int32)
        for batch in self._batches(["target"]):
            writer.append(find_rows(batch.column(0), catalogue))
        return writer.finish()

    def cases(self) -> Iterator[pd.DataFrame]:
        """Yield users and targets in parts."""
        return (batch.to_pandas() for batch in self._batches(list(CASE_COLUMNS)))

    def read_cases(self) -> pd.DataFrame:
        """Return users and targets."""
        return self.table.read(list(CASE_COLUMNS)).to_pandas()

    def _batches(self, names: list[str]) -> Iterator[pa.RecordBatch]:
        return self.table.iter_batches(BATCH_ROWS, columns=names)


class _ColumnHash:
    """Digest of the values of a column, however they are divided into batches."""

    def __init__(self) -> None:
        self._kind = ""
        self._lengths, self._content = hashlib.sha256(), hashlib.sha256()

    def update(self, values: pa.Array) -> None:
        """Add the next values; all but numbers count as strings."""
        is_number = pa.types.is_integer(values.type) or pa.types.is_floating(values.type)
        self._kind = str(values.type) if is_number else "string"
        self._lengths.update(values.is_valid().to_numpy(zero_copy_only=False).tobytes())
        if is_number:
            self._content.update(values.fill_null(0).to_numpy(zero_copy_only=False).tobytes())
            return
        strings = values.cast(pa.large_string()).fill_null("")
        _, offsets, data = strings.buffers()
        ends = np.frombuffer(offsets, np.int64)[strings.offset : strings.offset + len(strings) + 1]
        self._lengths.update(np.diff(ends).tobytes())
        if data is not None:
            self._content.update(memoryview(data)[int(ends[0]) : int(ends[-1])])

    def hexdigest(self) -> str:
        return f"{self._kind} {self._lengths.hexdigest()} {self._content.hexdigest()}"


def find_rows(ids: pa.Array, catalogue: pd.Index) -> Array:
    """Return the rows of ids in an index, -1 for others; an id that is repeated is looked up once."""
    encoded = ids.dictionary_encode()
    rows = catalogue.get_indexer(pd.Index(encoded.dictionary.to_pandas()))
    return np.append(rows, -1)[encoded.indices.fill_null(len(rows)).to_numpy()]


@contextmanager
def open_user_columns(path: Path, file: BufferedReader) -> Iterator[UserColumns]:
    """Open a Parquet file with columns of users and targets; raises `InputError` if it is damaged.

    Args:
        path: of the file, for errors.
        file: the open file.
    """
    with open_parquet(path, file) as table:
        if missing := [name for name in CASE_COLUMNS if name not in table.schema_arrow.names]:
            raise InputError(f"{path}: is damaged, or of another version: it has no column {missing[0]!r}")
        yield UserColumns(path, table)


def check_metric_names(path: Path, metrics: Iterable[str], stored: Iterable[str]) -> None:
    """Check that metrics are stored or known, so that they can be computed; raises `InputError`."""
    known = set(stored)
    for metric in metrics:
        if metric not in known:
            try:
                metric_named(metric.removesuffix(SAMPLED))
            except InputError as error:
                raise InputError(f"{path}: {error}; stored are {', '.join(stored)}") from error


def read_metric_values(table: UserColumns, metrics: Iterable[str]) -> dict[str, Array]:
    """Return the (users,) values of each of these metrics, computed from the ranks where they are not stored.

    Args:
        table: content of per_user.parquet.
        metrics: names of metrics.
    """
    return {metric: _read_values(table, metric) for metric in metrics}


def _read_values(table: UserColumns, metric: str) -> Array:
    if metric not in table.names:
        return _compute_values(table, metric)
    values = table.read_numbers(metric)
    if not np.isfinite(values).all():
        raise InputError(f"{table.path}: its values of {metric} must be finite numbers")
    return values


def _compute_values(table: UserColumns, metric: str) -> Array:
    """Return the values of a metric from the ranks in the whole catalogue or, if it is sampled, among candidates."""
    column = "sampled_rank" if metric.endswith(SAMPLED) else "rank"
    if column not in table.names:
        raise InputError(f"{table.path}: has no values of {metric}, and no {column} to compute them from")
    ranks = table.read_numbers(column)
    if not (ranks >= 1).all():
        raise InputError(f"{table.path}: its column {column} must hold numbers of at least 1")
    return metric_named(metric.removesuffix(SAMPLED)).per_user(ranks)
