"""Tables with one row per interaction: CSV, Parquet, and the atomic files of RecBole."""

from __future__ import annotations

import codecs
import contextlib
import csv
import io
import zlib
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import TextIO

import pyarrow as pa
import pyarrow.csv
import pyarrow.parquet
from typing_extensions import override

from aprec_like.datasets.columns import TIME_UNITS, Columns, interactions_from, unused_time
from aprec_like.datasets.local_files import check_is_text, open_plain_or_gzipped
from aprec_like.datasets.user_file import UserFile
from aprec_like.errors import InputError, first_line
from aprec_like.interactions import Interactions
from aprec_like.settings import OMIT_DEFAULT

UNIT_SEPARATOR = "\x1f"
"""ASCII's separator of fields, which takes the place of separators of several characters."""
MAX_LINE = 1 << 24
"""Largest number of characters of a line."""


@dataclass(frozen=True)
class TableFile(UserFile):
    """Table with one row per interaction. Ids may be numbers or strings; all outputs show them unchanged.

    The interactions of a user are sorted by `timestamp`, ties in the order of the file; without a timestamp they keep
    the order of the file.

    Args:
        path: path of the file, as for every `UserFile`.
        user: name of the column of user ids.
        item: name of the column of item ids.
        timestamp: name of the column of timestamps, numbers or ISO 8601 dates.
        rating: name of the column of ratings.
        time_unit: unit of timestamps that are numbers: "s", "ms", "us" or "ns".
    """

    user: str
    item: str
    timestamp: str | None = None
    rating: str | None = None
    time_unit: str = field(default="s", kw_only=True, metadata=OMIT_DEFAULT)

    def __post_init__(self) -> None:
        names = self.columns.names
        if repeated := [name for name in names if names.count(name) > 1]:
            raise ValueError(f"{type(self).__name__} needs different columns. Received: {repeated[0]!r} twice")
        if self.time_unit not in TIME_UNITS:
            known = ", ".join(TIME_UNITS)
            raise ValueError(f"{type(self).__name__} needs a time_unit of {known}. Received: {self.time_unit!r}")

    @property
    def columns(self) -> Columns:
        """Names of the columns."""
        return Columns(self.user, self.item, self.timestamp, self.rating, self.time_unit)

    @property
    @override
    def notes(self) -> tuple[str, ...]:
        return () if self.timestamp else ("no timestamps: the rows of a user are taken to be in the order of time",)


@dataclass(frozen=True)
class CSVFile(TableFile):
    """Text file of separated columns, plain or gzipped.

    Args:
        separator: characters between columns; with more than one, such as `::`, quotes have no meaning.
        header: names of the columns, for a file without a header line.
        encoding: encoding of the text, such as "latin-1" or "utf-16".
    """

    separator: str = ","
    header: tuple[str, ...] = ()
    encoding: str = field(default="utf-8", kw_only=True, metadata=OMIT_DEFAULT)

    def __post_init__(self) -> None:
        super().__post_init__()
        if not self.separator:
            raise ValueError("CSVFile needs a separator. Received: ''")
        try:
            codecs.lookup(self.encoding)
        except LookupError as error:
            raise ValueError(f"CSVFile needs an encoding that Python knows. Received: {self.encoding!r}") from error

    @override
    def _read(self, path: Path) -> Interactions:
        return read_separated(path, self.columns, TextFormat(self.separator, self.header, encoding=self.encoding))


@dataclass(frozen=True)
class ParquetFile(TableFile):
    """Parquet file."""

    @override
    def _read(self, path: Path) -> Interactions:
        try:
            names = pa.parquet.read_schema(path).names
            _check_columns(path, self.columns, names)
            ignored = unused_time(self.columns, names)
            table = pa.parquet.read_table(path, columns=[*self.columns.names, *([ignored] if ignored else [])])
        except (OSError, pa.ArrowException) as error:
            raise InputError(f"{path}: is not a Parquet file, or damaged: {first_line(error)}") from error
        return interactions_from(table, self.columns, lambda row: f"{path}: row {row + 1}", ignored)


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
        file_format = TextFormat("\t", is_quoted=False)
        typed = {name.partition(":")[0]: name for name in read_header(path, file_format)}
        times = [name for name in typed if "time" in name.lower()]
        if self.timestamp == "timestamp" and times and "timestamp" not in typed:
            raise InputError(f"{path}: has no column 'timestamp' but {', '.join(times)}; name it, or timestamp=None")
        timestamp, rating = (
            typed.get(name, None if name == default else name) if name else None
            for name, default in ((self.timestamp, "timestamp"), (self.rating, "rating"))
        )
        user, item = typed.get(self.user, self.user), typed.get(self.item, self.item)
        columns = Columns(user, item, timestamp, rating, self.time_unit)
        return read_separated(path, columns, file_format)


@dataclass(frozen=True)
class TextFormat:
    """Layout of a text file of separated columns.

    Args:
        separator: characters between columns.
        header: names of the columns, for a file without a header line.
        is_quoted: whether fields may be in double quotes.
        encoding: encoding of the text.
    """

    separator: str = ","
    header: tuple[str, ...] = ()
    is_quoted: bool = True
    encoding: str = "utf-8"

    @property
    def is_converted(self) -> bool:
        """Whether the text is converted to UTF-8 with one character between columns, which Arrow needs."""
        return len(self.separator) > 1 or codecs.lookup(self.encoding).name not in ("utf-8", "utf-8-sig", "ascii")

    @property
    def delimiter(self) -> str:
        """The one character between columns, after the conversion."""
        return self.separator if len(self.separator) == 1 else UNIT_SEPARATOR

    @property
    def has_quotes(self) -> bool:
        """Whether double quotes have a meaning."""
        return self.is_quoted and len(self.separator) == 1


def read_separated(path: Path, columns: Columns, file_format: TextFormat) -> Interactions:
    """Read interactions from a file of separated columns; all fields are read as strings, which keeps ids unchanged."""
    names = list(file_format.header) or read_header(path, file_format)
    _check_columns(path, columns, names)
    ignored = unused_time(columns, names)
    used = [*columns.names, *([ignored] if ignored else [])]
    try:
        table = pa.csv.read_csv(
            _converted(path, file_format) if file_format.is_converted else path,
            read_options=pa.csv.ReadOptions(column_names=list(file_format.header) or None),
            parse_options=pa.csv.ParseOptions(
                delimiter=file_format.delimiter,
                quote_char='"' if file_format.has_quotes else False,
                newlines_in_values=file_format.has_quotes,
            ),
            convert_options=pa.csv.ConvertOptions(include_columns=used, column_types=dict.fromkeys(used, pa.string())),
        )
    except (OSError, EOFError, zlib.error) as error:
        raise InputError(f"{path}: cannot be read: {first_line(error)}") from error
    except pa.ArrowException as error:
        raise _error_of_first_bad_line(path, file_format, error) from error
    return interactions_from(table, columns, lambda row: _location_of_row(path, file_format, row), ignored)


def _converted(path: Path, file_format: TextFormat) -> pa.BufferReader:
    """Return the text in UTF-8, with one character between columns."""
    with _open_text(path, file_format) as file:
        return pa.BufferReader(file.read().encode())


def _check_columns(path: Path, columns: Columns, names: list[str]) -> None:
    for name in columns.names:
        if names.count(name) != 1:
            problem = "has no column" if name not in names else "has more than one column"
            raise InputError(f"{path}: {problem} {name!r}; it has {', '.join(names)}")


def read_header(path: Path, file_format: TextFormat) -> list[str]:
    """Read the column names in the first line of a table."""
    if file_format.encoding == "utf-8":
        check_is_text(path, "name it: CSVFile(..., encoding='utf-16'), or save it as UTF-8")
    try:
        with _open_text(path, file_format) as file:
            return next(csv.reader(_lines(path, file), delimiter=file_format.delimiter), [])
    except (OSError, EOFError, zlib.error, UnicodeDecodeError, csv.Error) as error:
        raise _unreadable(path, error) from error


def _unreadable(path: Path, error: Exception) -> InputError:
    hint = ""
    if isinstance(error, UnicodeDecodeError):
        hint = "; name its encoding, such as CSVFile(..., encoding='latin-1'), or save it as UTF-8"
    return InputError(f"{path}: cannot be read: {first_line(error)}{hint}")


def _error_of_first_bad_line(path: Path, file_format: TextFormat, error: Exception) -> InputError:
    """Return an error with the first line of a wrong number of columns; slow, so used only after a failure."""
    num_columns = len(file_format.header)
    try:
        for line, fields in _records(path, file_format):
            num_columns = num_columns or len(fields)
            if fields and len(fields) != num_columns:
                return InputError(f"{path}:{line}: must have {num_columns} columns. Received: {len(fields)}")
    except (OSError, EOFError, zlib.error, UnicodeDecodeError, csv.Error) as second_error:
        return _unreadable(path, second_error)
    return InputError(f"{path}: cannot be read: {first_line(error)}")


def _location_of_row(path: Path, file_format: TextFormat, row: int) -> str:
    """Return file and line on which a row of the table ends; blank lines are not rows."""
    number = -1 if file_format.header else -2
    with contextlib.suppress(UnicodeDecodeError, csv.Error):  # elsewhere in the file, or in columns that are not used
        for line, fields in _records(path, file_format):
            number += bool(fields)
            if number == row:
                return f"{path}:{line}"
    return f"{path}: row {row + 1}"


def _records(path: Path, file_format: TextFormat) -> Iterator[tuple[int, list[str]]]:
    """Iterate over the records of a file: number of the last line of the record, and its fields."""
    with _open_text(path, file_format) as file:
        reader = csv.reader(
            _lines(path, file),
            delimiter=file_format.delimiter,
            quoting=csv.QUOTE_MINIMAL if file_format.has_quotes else csv.QUOTE_NONE,
        )
        for fields in reader:
            yield reader.line_num, fields


def _lines(path: Path, file: TextIO) -> Iterator[str]:
    """Iterate over the lines of a file; a file may be one line of many gigabytes."""
    while line := file.readline(MAX_LINE):
        if len(line) == MAX_LINE:
            raise InputError(f"{path}: has a line of more than {MAX_LINE:,} characters")
        yield line


@contextmanager
def _open_text(path: Path, file_format: TextFormat) -> Iterator[TextIO]:
    """Open the text, with one character between columns."""
    encoding = "utf-8-sig" if file_format.encoding == "utf-8" else file_format.encoding
    with open_plain_or_gzipped(path) as binary:
        text = io.TextIOWrapper(binary, encoding=encoding, newline="")
        if len(file_format.separator) == 1:
            yield text
        else:
            yield io.StringIO(text.read().replace(file_format.separator, UNIT_SEPARATOR), newline="")
