"""Text files of `user item` lines, in time order within each user, plain or gzipped."""

from __future__ import annotations

import csv
import gzip
import io
import re
import zlib
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import BinaryIO

import numpy as np
import pandas as pd

from aprec_like.datasets.base import Dataset
from aprec_like.datasets.cache import load_cached
from aprec_like.errors import InputError
from aprec_like.interactions import Interactions
from aprec_like.types import Array

BYTE_ORDER_MARK = b"\xef\xbb\xbf"


@dataclass(frozen=True)
class TextFile(Dataset):
    """The user's own data: one `user item` pair of whole numbers per line, oldest first within a user.

    Args:
        path: the file, relative to the data folder or absolute; `NAME.gz` is found for `NAME`.
        num_items: the size of the catalogue if it is larger than the items that occur; the item ids are
            then 1 to `num_items`. By default the catalogue is the distinct items of the file.
    """

    path: str
    num_items: int | None = None

    def __post_init__(self) -> None:
        if self.num_items is not None and self.num_items < 1:
            raise ValueError(f"TextFile needs num_items of at least 1. Received: num_items={self.num_items}")

    def load(self, data_dir: Path) -> Interactions:
        """Read the file; users and items are numbered in the order of their ids."""
        path = find_plain_or_gzipped(data_dir / self.path)
        if path is None:
            raise InputError(
                f"{data_dir / self.path} (or .gz) does not exist; put the file there or name another data folder"
            )
        return load_cached(path, self, lambda: self._read(path))

    def is_on_disk(self, data_dir: Path) -> bool:
        """Whether the file exists."""
        return find_plain_or_gzipped(data_dir / self.path) is not None

    def _read(self, path: Path) -> Interactions:
        users, items = read_pairs(path)
        if self.num_items is None:
            return Interactions.from_ids(users, items)
        if items.min() < 1 or items.max() > self.num_items:
            is_outside = (items < 1) | (items > self.num_items)
            raise InputError(
                f"{path}: item ids must lie between 1 and num_items={self.num_items}. Received: {items[is_outside][0]}"
            )
        return Interactions.from_ids(users, items, item_ids=np.arange(1, self.num_items + 1))


def find_plain_or_gzipped(path: Path) -> Path | None:
    """`path`, or `path` with `.gz` added, if it is a file."""
    return next((found for found in (path, path.with_name(path.name + ".gz")) if found.is_file()), None)


def read_pairs(path: Path) -> tuple[Array, Array]:
    """The two columns of a file of whole-number pairs as int64 arrays; blank lines are skipped."""
    try:
        with _open(path) as file:
            content = file.read().removeprefix(BYTE_ORDER_MARK)
    except (OSError, EOFError, zlib.error) as error:
        raise InputError(f"{path}: cannot be read: {error}") from error
    # The reader would take 1.0 or 1e3 for whole numbers.
    if content.translate(None, delete=b"+-0123456789 \t\r\n"):
        raise _explain(path)
    try:
        # A third column is asked for so that a line with too many fields is seen rather than cut.
        frame = pd.read_csv(
            io.BytesIO(content),
            sep=r"\s+",
            header=None,
            names=["user", "item", "extra"],
            dtype={"user": "int64", "item": "int64", "extra": "str"},
            quoting=csv.QUOTE_NONE,
            na_filter=True,
        )
    except (ValueError, OverflowError) as error:
        raise _explain(path) from error
    if len(frame) == 0 or frame["extra"].notna().any():
        raise _explain(path)
    return frame["user"].to_numpy(), frame["item"].to_numpy()


def _explain(path: Path) -> InputError:
    """Find the first line that is not a pair of whole numbers. Reads line by line: only after a failure."""
    pair = re.compile(rb"\s*[+-]?\d{1,18}\s+[+-]?\d{1,18}\s*")
    is_empty = True
    for number, line in enumerate(_lines(path), start=1):
        line = line.removeprefix(BYTE_ORDER_MARK) if number == 1 else line
        if line.strip():
            is_empty = False
            if not pair.fullmatch(line):
                shown = line.strip()[:60].decode("utf-8", "backslashreplace")
                return InputError(f"{path}:{number}: must be `user item`, two whole numbers. Received: {shown!r}")
    return InputError(f"{path}: is empty" if is_empty else f"{path}: is not a text file of `user item` lines")


def _lines(path: Path) -> Iterator[bytes]:
    with _open(path) as file:
        yield from file


def _open(path: Path) -> BinaryIO:
    return gzip.open(path) if path.suffix == ".gz" else path.open("rb")  # type: ignore[return-value]
