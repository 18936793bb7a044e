"""Reads and writes the file formats of a results folder: JSON, Parquet, text, figures.

Writes are atomic; reading a missing or damaged file raises `InputError`.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable
from pathlib import Path

import pandas as pd
import pyarrow as pa

from aprec_like.errors import InputError, first_line
from aprec_like.files import atomic_write
from aprec_like.types import Json

CHECKSUM = "checksum"


def read_json(path: Path) -> Json:
    """Read a JSON object."""
    try:
        value = json.loads(path.read_text("utf-8"))
    except OSError as error:
        raise InputError(f"{path}: cannot be read: {error.strerror}") from error
    except (ValueError, RecursionError) as error:
        raise InputError(f"{path}: is damaged: {first_line(error)}") from error
    if not isinstance(value, dict):
        raise InputError(f"{path}: must hold a JSON object. Received: {type(value).__name__}")
    return value


def write_json(path: Path, value: Json) -> None:
    """Write a JSON object; numbers are not rounded."""
    write_text(path, json.dumps(value, indent=2, ensure_ascii=False, allow_nan=False) + "\n")


def read_json_with_checksum(path: Path) -> Json:
    """Read a JSON object that `write_json_with_checksum` wrote, and verify its checksum."""
    value = read_json(path)
    if value.pop(CHECKSUM, None) != _checksum(value):
        raise InputError(f"{path}: is damaged: its checksum does not match its content")
    return value


def write_json_with_checksum(path: Path, value: Json) -> None:
    """Write a JSON object with a checksum of its other entries."""
    write_json(path, value | {CHECKSUM: _checksum(value)})


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


def write_figure(path: Path, save: Callable[[Path], None]) -> None:
    """Write a figure; `save` writes it to the path that it gets."""
    with atomic_write(path) as part:
        save(part)


def write_parquet(path: Path, frame: pd.DataFrame) -> None:
    """Write a table as Parquet."""
    with atomic_write(path) as part:
        frame.to_parquet(part, index=False)


def read_parquet(path: Path) -> pd.DataFrame:
    """Read a Parquet table."""
    try:
        return pd.read_parquet(path)
    except (OSError, ValueError, pa.ArrowException) as error:
        raise InputError(f"{path}: is damaged: {first_line(error)}") from error
