"""Text files of separated columns, read in chunks."""

from __future__ import annotations

import codecs
import contextlib
import csv
import io
import zlib
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TextIO

import pyarrow as pa
import pyarrow.csv
from typing_extensions import override

from aprec_like.datasets.local_files import check_is_text, open_plain_or_gzipped
from aprec_like.datasets.tables.sources import TableSource
from aprec_like.errors import InputError, first_line

UNIT_SEPARATOR = "\x1f"
"""ASCII's separator of fields, which takes the place of separators of several characters."""
MAX_LINE = 1 << 24
"""Largest number of characters of a line."""
BLOCK_BYTES = 1 << 24
"""Bytes of text that are parsed at once."""
USUAL_GZIP_RATIO = 8


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


@dataclass(frozen=True)
class TextSource(TableSource):
    """Text file of separated columns; all fields are read as strings, which keeps ids unchanged."""

    path: Path
    file_format: TextFormat

    @override
    def column_names(self) -> list[str]:
        return list(self.file_format.header) or read_header(self.path, self.file_format)

    @override
    def types(self, names: Sequence[str]) -> list[pa.DataType]:
        return [pa.string()] * len(names)

    @override
    def chunks(self, names: Sequence[str]) -> Iterator[pa.Table]:
        file_format = self.file_format
        try:
            with pa.csv.open_csv(
                _ConvertedText(self.path, file_format) if file_format.is_converted else self.path,
                read_options=pa.csv.ReadOptions(
                    column_names=list(file_format.header) or None, block_size=max(BLOCK_BYTES, MAX_LINE)
                ),
                parse_options=pa.csv.ParseOptions(
                    delimiter=file_format.delimiter,
                    quote_char='"' if file_format.has_quotes else False,
                    newlines_in_values=file_format.has_quotes,
                ),
                convert_options=pa.csv.ConvertOptions(
                    include_columns=list(names), column_types=dict.fromkeys(names, pa.string())
                ),
            ) as reader:
                for batch in reader:
                    yield pa.Table.from_batches([batch])
        except (OSError, EOFError, zlib.error) as error:
            raise InputError(f"{self.path}: cannot be read: {first_line(error)}") from error
        except pa.ArrowException as error:
            raise _error_of_first_bad_line(self.path, file_format, error) from error

    @override
    def location(self, row: int) -> str:
        """Return file and line on which a row of the table ends; blank lines are not rows."""
        number = -1 if self.file_format.header else -2
        with contextlib.suppress(UnicodeDecodeError, csv.Error):  # elsewhere in the file, or in unused columns
            for line, fields in _records(self.path, self.file_format):
                number += bool(fields)
                if number == row:
                    return f"{self.path}:{line}"
        return f"{self.path}: row {row + 1}"

    @override
    def unpacked_bytes(self) -> int:
        return self.path.stat().st_size * (USUAL_GZIP_RATIO if self.path.suffix == ".gz" else 1)


class _ConvertedText(io.RawIOBase):
    """Binary file of a text in UTF-8, with one character between columns; converts as much as is read."""

    def __init__(self, path: Path, file_format: TextFormat) -> None:
        self._text = open_text(path, file_format)
        self._separators = file_format.separator, file_format.delimiter
        self._converted = b""

    @override
    def readable(self) -> bool:
        return True

    @override
    def readinto(self, buffer: bytearray | memoryview) -> int:  # type: ignore[override]
        if not self._converted:
            # To the end of a line, so that no separator is cut.
            text = self._text.read(len(buffer)) + self._text.readline(MAX_LINE)
            self._converted = text.replace(*self._separators).encode()
        num_bytes = min(len(buffer), len(self._converted))
        buffer[:num_bytes] = self._converted[:num_bytes]
        self._converted = self._converted[num_bytes:]
        return num_bytes

    @override
    def close(self) -> None:
        self._text.close()
        super().close()


def read_header(path: Path, file_format: TextFormat) -> list[str]:
    """Read the column names in the first line of a table."""
    if file_format.encoding == "utf-8":
        check_is_text(path, "name it: CSVFile(..., encoding='utf-16'), or save it as UTF-8")
    try:
        with open_text(path, file_format) as file:
            return next(csv.reader(_lines(path, file, file_format), delimiter=file_format.delimiter), [])
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


def _records(path: Path, file_format: TextFormat) -> Iterator[tuple[int, list[str]]]:
    """Iterate over the records of a file: number of the last line of the record, and its fields."""
    with open_text(path, file_format) as file:
        reader = csv.reader(
            _lines(path, file, file_format),
            delimiter=file_format.delimiter,
            quoting=csv.QUOTE_MINIMAL if file_format.has_quotes else csv.QUOTE_NONE,
        )
        for fields in reader:
            yield reader.line_num, fields


def _lines(path: Path, file: TextIO, file_format: TextFormat) -> Iterator[str]:
    """Iterate over the lines, with one character between columns; a file may be one line of many gigabytes."""
    while line := file.readline(MAX_LINE):
        if len(line) == MAX_LINE:
            raise InputError(f"{path}: has a line of more than {MAX_LINE:,} characters")
        yield line.replace(file_format.separator, file_format.delimiter)


def open_text(path: Path, file_format: TextFormat) -> TextIO:
    """Open a file, plain or gzipped, as text."""
    encoding = "utf-8-sig" if file_format.encoding == "utf-8" else file_format.encoding
    return io.TextIOWrapper(open_plain_or_gzipped(path), encoding=encoding, newline="")
