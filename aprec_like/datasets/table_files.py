"""Tables with one row per interaction: CSV, Parquet, and the atomic files of RecBole."""

from __future__ import annotations

import csv
import io
import zlib
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TextIO

import pyarrow as pa
import pyarrow.csv
import pyarrow.parquet
from typing_extensions import override

from aprec_like.datasets.columns import Columns, interactions_from
from aprec_like.datasets.local_files import open_plain_or_gzipped
from aprec_like.datasets.user_file import UserFile
from aprec_like.errors import InputError, first_line
from aprec_like.interactions import Interactions


@dataclass(frozen=True)
class TableFile(UserFile):
    """Table with one row per interaction. Ids may be numbers or strings; all outputs show them unchanged.

    The interactions of a user are sorted by `timestamp`, ties in the order of the file; without a timestamp they keep
    the order of the file.

    Args:
        path: path of the file, relative to the data folder or absolute; `NAME.gz` is found for `NAME`.
        user: name of the column of user ids.
        item: name of the column of item ids.
        timestamp: name of the column of timestamps, in seconds or as ISO 8601 dates.
        rating: name of the column of ratings.
    """

    user: str
    item: str
    timestamp: str | None = None
    rating: str | None = None

    @property
    def columns(self) -> Columns:
        """Names of the columns."""
        return Columns(self.user, self.item, self.timestamp, self.rating)


@dataclass(frozen=True)
class CSVFile(TableFile):
    """Text file of separated columns, plain or gzipped.

    Args:
        separator: character between columns.
        header: names of the columns, for a file without a header line.
    """

    separator: str = ","
    header: tuple[str, ...] = ()

    @override
    def _read(self, path: Path) -> Interactions:
        return read_separated(path, self.columns, self.separator, self.header)


@dataclass(frozen=True)
class ParquetFile(TableFile):
    """Parquet file."""

    @override
    def _read(self, path: Path) -> Interactions:
        try:
            _check_columns(path, self.columns, pa.parquet.read_schema(path).names)
            table = pa.parquet.read_table(path, columns=self.columns.names)
        except (OSError, pa.ArrowException) as error:
            raise InputError(f"{path}: is not a Parquet file, or damaged: {first_line(error)}") from error
        return interactions_from(table, self.columns, lambda row: f"{path}: row {row + 1}")


@dataclass(frozen=True)
class AtomicFile(TableFile):
    """Atomic file of RecBole, `NAME.inter`: columns separated by tabs, with a header of `name:type` fields.

    The default columns `timestamp` and `rating` are optional; columns with other names must exist.
    """

    user: str = "user_id"
    item: str = "item_id"
    timestamp: str | None = "timestamp"
    rating: str | None = "rating"

    @override
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
    """Read interactions from a file of separated columns; all fields are read as strings, which keeps ids unchanged."""
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
        raise _error_of_first_bad_line(path, separator, len(header), is_quoted, error) from error
    return interactions_from(
        table, columns, lambda row: f"{path}:{_line_of_row(path, separator, row, bool(header), is_quoted)}"
    )


def _check_columns(path: Path, columns: Columns, names: list[str]) -> None:
    for name in columns.names:
        if names.count(name) != 1:
            problem = "has no column" if name not in names else "has more than one column"
            raise InputError(f"{path}: {problem} {name!r}; it has {', '.join(names)}")


def read_header(path: Path, separator: str) -> list[str]:
    """Read the column names in the first line of a table."""
    try:
        with _open_text(path) as file:
            return next(csv.reader(file, delimiter=separator), [])
    except (OSError, EOFError, zlib.error, UnicodeDecodeError, csv.Error) as error:
        raise InputError(f"{path}: cannot be read: {first_line(error)}") from error


def _error_of_first_bad_line(
    path: Path, separator: str, num_columns: int, is_quoted: bool, error: Exception
) -> InputError:
    """Return an error with the first line of a wrong number of columns; slow, so used only after a failure."""
    try:
        for line, fields in _records(path, separator, is_quoted):
            num_columns = num_columns or len(fields)
            if fields and len(fields) != num_columns:
                return InputError(f"{path}:{line}: must have {num_columns} columns. Received: {len(fields)}")
    except (OSError, EOFError, zlib.error, UnicodeDecodeError, csv.Error) as second_error:
        return InputError(f"{path}: cannot be read: {first_line(second_error)}")
    return InputError(f"{path}: cannot be read: {first_line(error)}")


def _line_of_row(path: Path, separator: str, row: int, has_header: bool, is_quoted: bool) -> int:
    """Return the number of the line on which a row of the table ends; blank lines are not rows."""
    number = -1 if has_header else -2
    for line, fields in _records(path, separator, is_quoted):
        number += bool(fields)
        if number == row:
            return line
    return row + 1


def _records(path: Path, separator: str, is_quoted: bool) -> Iterator[tuple[int, list[str]]]:
    """Iterate over the records of a file: number of the last line of the record, and its fields."""
    with _open_text(path) as file:
        reader = csv.reader(file, delimiter=separator, quoting=csv.QUOTE_MINIMAL if is_quoted else csv.QUOTE_NONE)
        for fields in reader:
            yield reader.line_num, fields


@contextmanager
def _open_text(path: Path) -> Iterator[TextIO]:
    with open_plain_or_gzipped(path) as binary:
        yield io.TextIOWrapper(binary, encoding="utf-8-sig", newline="")
