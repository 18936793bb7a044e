"""Reads and writes the file formats of a results folder: JSON, Parquet, CSV, text.

Writes are atomic; reading a missing or damaged file, or a link, raises `InputError`.
"""

from __future__ import annotations

import contextlib
import hashlib
import io
import json
from collections.abc import Iterable, Iterator
from io import BufferedReader
from pathlib import Path

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet

from aprec_like.errors import InputError, first_line
from aprec_like.files import atomic_write, open_regular, read_regular
from aprec_like.types import Json

CHECKSUM = "checksum"
KIND = "kind"


def read_json(path: Path) -> Json:
    """Read a JSON object."""
    return parse_json(path, read_regular(path))


def parse_json(path: Path, data: bytes) -> Json:
    """Return the JSON object in the content of a file; `path` is for errors."""
    try:
        value = json.loads(data.decode("utf-8"), parse_constant=_refuse_constant)
    except (ValueError, RecursionError) as error:
        raise InputError(f"{path}: is damaged: {first_line(error)}") from error
    if not isinstance(value, dict):
        raise InputError(f"{path}: must hold a JSON object. Received: {type(value).__name__}")
    return value


def _refuse_constant(name: str) -> None:
    raise ValueError(f"{name} is not a number")


def write_json(path: Path, value: Json) -> None:
    """Write a JSON object; numbers are not rounded."""
    write_text(path, json.dumps(value, indent=2, ensure_ascii=False, allow_nan=False) + "\n")


def read_sealed_json(path: Path, kind: str) -> Json:
    """Read a JSON object that `write_sealed_json` wrote; verify its checksum, and that it is of this kind.

    Files of earlier versions do not say their kind.
    """
    value = read_json(path)
    if value.pop(CHECKSUM, None) != _checksum(value):
        raise InputError(f"{path}: is damaged: its checksum does not match its content")
    if (found := value.pop(KIND, kind)) != kind:
        raise InputError(f"{path}: is damaged: it holds the {found} of a run instead of its {kind}")
    return value


def write_sealed_json(path: Path, kind: str, value: Json) -> None:
    """Write a JSON object with its kind and a checksum of all other entries."""
    sealed = {KIND: kind, **value}
    write_json(path, sealed | {CHECKSUM: _checksum(sealed)})


def _checksum(value: Json) -> str:
    """Return the sha256 of an object's content, independent of order and layout."""
    return hashlib.sha256(json.dumps(value, sort_keys=True).encode()).hexdigest()


def write_text(path: Path, text: str) -> None:
    """Write a text file as UTF-8."""
    write_bytes(path, text.encode())


def write_bytes(path: Path, data: bytes) -> None:
    """Write a file."""
    with atomic_write(path) as part:
        part.write_bytes(data)


ENCODINGS = {"i": "DELTA_BINARY_PACKED", "f4": "BYTE_STREAM_SPLIT"}
"""Parquet encodings by the start of a column's dtype; other columns, whose values repeat, are written as dictionaries.
Ids grow from row to row and scores share their exponents, so these halve a table of results without changing a bit."""


def write_parquet(path: Path, frames: pd.DataFrame | Iterable[pd.DataFrame]) -> None:
    """Write a table, or consecutive rows of it one after another, as Parquet."""
    if isinstance(frames, pd.DataFrame):
        frames = [frames]
    with atomic_write(path) as part, contextlib.ExitStack() as stack:
        writer = None
        for frame in frames:
            table = pa.Table.from_pandas(frame, writer.schema if writer else None, preserve_index=False)
            writer = writer or stack.enter_context(_open_parquet(part, frame, table.schema))
            writer.write_table(table)
        stack.close()  # before the file is moved into place


def _open_parquet(path: Path, frame: pd.DataFrame, schema: pa.Schema) -> pa.parquet.ParquetWriter:
    """Open a Parquet file for rows like those of `frame`."""
    found = {name: _encoding(frame[name].dtype) for name in frame}
    encodings = {name: encoding for name, encoding in found.items() if encoding}
    others = [name for name in found if name not in encodings]
    return pa.parquet.ParquetWriter(
        path, schema, compression="zstd", use_dictionary=others or False, column_encoding=encodings or None
    )


def _encoding(dtype: object) -> str | None:
    code = dtype.str.lstrip("<>=|") if isinstance(dtype, np.dtype) else ""
    return next((encoding for start, encoding in ENCODINGS.items() if code.startswith(start)), None)


def parse_parquet(path: Path, data: bytes) -> pd.DataFrame:
    """Return the table in the content of a Parquet file; `path` is for errors."""
    try:
        return pd.read_parquet(io.BytesIO(data))
    except (OSError, ValueError, TypeError, MemoryError, pa.ArrowException) as error:
        raise InputError(f"{path}: is damaged: {first_line(error)}") from error


@contextlib.contextmanager
def open_parquet(path: Path, file: BufferedReader) -> Iterator[pa.parquet.ParquetFile]:
    """Open a Parquet file to read parts of it; raises `InputError` where it is damaged, also in the block.

    Args:
        path: of the file, for errors.
        file: the open file.
    """
    try:
        with pa.parquet.ParquetFile(file) as table:
            names = table.schema_arrow.names
            if len(set(names)) < len(names):
                raise InputError(f"{path}: is damaged: two columns have the same name")
            yield table
    except InputError:
        raise
    except (OSError, ValueError, TypeError, MemoryError, pa.ArrowException) as error:
        raise InputError(f"{path}: is damaged: {first_line(error)}") from error


def parse_csv(path: Path, data: bytes) -> pd.DataFrame:
    """Return the table in the content of a CSV file; `path` is for errors."""
    try:
        return pd.read_csv(io.BytesIO(data))
    except (ValueError, OverflowError, MemoryError) as error:
        raise InputError(f"{path}: is damaged: {first_line(error)}") from error


def digest_file(path: Path) -> str:
    """Return the sha256 of the bytes of a regular file; raises `InputError` if it cannot be read."""
    with open_regular(path) as file:
        return digest_open_file(path, file)


def digest_open_file(path: Path, file: BufferedReader) -> str:
    """Return the sha256 of the rest of an open file; `path` is for errors."""
    try:
        return hashlib.file_digest(file, "sha256").hexdigest()
    except OSError as error:
        raise InputError(f"{path}: cannot be read: {error.strerror}") from error
