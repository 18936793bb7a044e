"""The user's own tables: CSV, Parquet, and the atomic files of RecBole."""

from __future__ import annotations

import csv
import gzip
import io
import zlib
from abc import abstractmethod
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TextIO

import pyarrow as pa
import pyarrow.csv
import pyarrow.parquet

from aprec_like.datasets.base import Dataset
from aprec_like.datasets.cache import load_cached
from aprec_like.datasets.columns import Columns, interactions_from
from aprec_like.datasets.text import find_plain_or_gzipped
from aprec_like.errors import InputError, first_line
from aprec_like.interactions import Interactions


@dataclass(frozen=True)
class TableFile(Dataset):
    """A table with one row per interaction. Ids may be numbers or texts; they come back in every output.

    Rows are ordered by `timestamp` within a user, ties in the order of the file; without it the file's order counts.

    Args:
        path: the file, relative to the data folder or absolute; `NAME.gz` is found for `NAME`.
        user: the name of the column of users.
        item: the name of the column of items.
        timestamp: the name of the column of times, seconds or ISO 8601 dates.
        rating: the name of the column of ratings.
    """

    path: str
    user: str
    item: str
    timestamp: str | None = None
    rating: str | None = None

    def load(self, data_dir: Path) -> Interactions:
        """Read the table."""
        path = find_plain_or_gzipped(data_dir / self.path)
        if path is None:
            raise InputError(f"{data_dir / self.path} does not exist; put the file there or name another data folder")
        return load_cached(path, self, lambda: self._read(path))

    def is_on_disk(self, data_dir: Path) -> bool:
        """Whether the file exists."""
        return find_plain_or_gzipped(data_dir / self.path) is not None

    @abstractmethod
    def _read(self, path: Path) -> Interactions:
        """Read the file."""


@dataclass(frozen=True)
class CSVFile(TableFile):
    """A text file of separated columns, plain or gzipped.

    Args:
        separator: between columns, one character.
        header: the names of the columns, for a file whose first line does not say them.
    """

    separator: str = ","
    header: tuple[str, ...] = ()

    def _read(self, path: Path) -> Interactions:
        columns = Columns(self.user, self.item, self.timestamp, self.rating)
        return read_separated(path, columns, self.separator, self.header)


@dataclass(frozen=True)
class ParquetFile(TableFile):
    """A Parquet file."""

    def _read(self, path: Path) -> Interactions:
        columns = Columns(self.user, self.item, self.timestamp, self.rating)
        try:
            _check_columns(path, columns, pa.parquet.read_schema(path).names)
            table = pa.parquet.read_table(path, columns=columns.names)
        except (OSError, pa.ArrowException) as error:
            raise InputError(f"{path}: is not a Parquet file, or damaged: {first_line(error)}") from error
        return interactions_from(table, columns, lambda row: f"{path}: row {row + 1}")


@dataclass(frozen=True)
class AtomicFile(TableFile):
    """An atomic file of RecBole, `NAME.inter`: columns separated by tabs, the first line `name:type` for each.

    A file need not have the columns `timestamp` and `rating`; any other that is named must be there.
    """

    user: str = "user_id"
    item: str = "item_id"
    timestamp: str | None = "timestamp"
    rating: str | None = "rating"

    def _read(self, path: Path) -> Interactions:
        typed = {name.partition(":")[0]: name for name in read_header(path, "\t")}
        times = [name for name in typed if "time" in name.lower()]
        if self.timestamp == "timestamp" and times and "timestamp" not in typed:
            raise InputError(f"{path}: has no column 'timestamp' but {', '.join(times)}; name it, or timestamp=None")
        columns = Columns(
            typed.get(self.user, self.user),
            typed.get(self.item, self.item),
            *(
                typed.get(name, None if name == default else name) if name else None
                for name, default in ((self.timestamp, "timestamp"), (self.rating, "rating"))
            ),
        )
        return read_separated(path, columns, "\t", is_quoted=False)


def read_separated(
    path: Path, columns: Columns, separator: str, header: tuple[str, ...] = (), *, is_quoted: bool = True
) -> Interactions:
    """Interactions from separated text; every field is read as text first, so that an id stays as it is written."""
    _check_columns(path, columns, list(header) or read_header(path, separator))
    try:
        table = pa.csv.read_csv(
            path,
            read_options=pa.csv.ReadOptions(column_names=list(header) or None),
            parse_options=pa.csv.ParseOptions(
                delimiter=separator, quote_char='"' if is_quoted else False, newlines_in_values=is_quoted
            ),
            convert_options=pa.csv.ConvertOptions(
                include_columns=columns.names, column_types=dict.fromkeys(columns.names, pa.string())
            ),
        )
    except (OSError, EOFError, zlib.error) as error:
        raise InputError(f"{path}: cannot be read: {first_line(error)}") from error
    except pa.ArrowException as error:
        raise _explain(path, separator, len(header), is_quoted, error) from error
    return interactions_from(
        table, columns, lambda row: f"{path}:{_line_of_row(path, separator, row, bool(header), is_quoted)}"
    )


def _check_columns(path: Path, columns: Columns, names: list[str]) -> None:
    for name in columns.names:
        if names.count(name) != 1:
            problem = "has no column" if name not in names else "has more than one column"
            raise InputError(f"{path}: {problem} {name!r}; it has {', '.join(names)}")


def read_header(path: Path, separator: str) -> list[str]:
    """The names in the first line of a table."""
    try:
        with _open(path) as file:
            return next(csv.reader(file, delimiter=separator), [])
    except (OSError, EOFError, zlib.error, UnicodeDecodeError, csv.Error) as error:
        raise InputError(f"{path}: cannot be read: {first_line(error)}") from error


def _explain(path: Path, separator: str, num_columns: int, is_quoted: bool, error: Exception) -> InputError:
    """Find the first line with another number of columns than the header. Reads line by line: only after a failure."""
    try:
        for line, fields in _records(path, separator, is_quoted):
            num_columns = num_columns or len(fields)
            if fields and len(fields) != num_columns:
                return InputError(f"{path}:{line}: must have {num_columns} columns. Received: {len(fields)}")
    except (OSError, EOFError, zlib.error, UnicodeDecodeError, csv.Error) as second:
        return InputError(f"{path}: cannot be read: {first_line(second)}")
    return InputError(f"{path}: cannot be read: {first_line(error)}")


def _line_of_row(path: Path, separator: str, row: int, has_header: bool, is_quoted: bool) -> int:
    """The line on which a row of the table ends; blank lines are no rows."""
    number = -1 if has_header else -2
    for line, fields in _records(path, separator, is_quoted):
        number += bool(fields)
        if number == row:
            return line
    return row + 1


def _records(path: Path, separator: str, is_quoted: bool) -> Iterator[tuple[int, list[str]]]:
    with _open(path) as file:
        reader = csv.reader(file, delimiter=separator, quoting=csv.QUOTE_MINIMAL if is_quoted else csv.QUOTE_NONE)
        for fields in reader:
            yield reader.line_num, fields


@contextmanager
def _open(path: Path) -> Iterator[TextIO]:
    with gzip.open(path) if path.suffix == ".gz" else path.open("rb") as binary:
        yield io.TextIOWrapper(binary, encoding="utf-8-sig", newline="")
