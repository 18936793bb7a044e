"""Text files of whole numbers, plain or gzipped: `user item` lines, or one line per user, both oldest first."""

from __future__ import annotations

import contextlib
import csv
import io
import re
import zlib
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pandas as pd
from typing_extensions import override

from aprec_like.datasets.format_hints import separator_hint
from aprec_like.datasets.local_files import check_is_text, open_plain_or_gzipped
from aprec_like.datasets.user_file import UserFile
from aprec_like.errors import InputError
from aprec_like.interactions import Histories, Interactions
from aprec_like.types import Array

BYTE_ORDER_MARK = b"\xef\xbb\xbf"
MAX_LINE = 1 << 20
"""Number of bytes of a line that are looked at."""
LINE_OF_ITEMS = re.compile(rb"\s*\d+(\s+\d+){2,}\s*")


@dataclass(frozen=True)
class TextFile(UserFile):
    """Text file with one `user item` pair of whole numbers per line, oldest first within a user.

    Users and items are numbered in the order of their ids.

    Args:
        path: path of the file, as for every `UserFile`.
        num_items: size of the catalogue, if it has items that do not occur in the file; item ids are then 1 to
            `num_items`. By default the catalogue consists of the distinct items of the file.
    """

    num_items: int | None = None

    def __post_init__(self) -> None:
        if self.num_items is not None and self.num_items < 1:
            raise ValueError(f"TextFile needs num_items of at least 1. Received: num_items={self.num_items}")

    @override
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


@dataclass(frozen=True)
class SequenceFile(UserFile):
    """Text file with one line of whole numbers per user: the user, then the items, oldest first.

    The format of the data of S3-Rec and its successors: `user item item item ...`.
    """

    @override
    def _read(self, path: Path) -> Interactions:
        check_is_text(path)
        lines = read_sequences(path)
        lines = Histories(lines.items, np.unique(lines.offsets))  # without blank lines
        users = lines.items[lines.offsets[:-1]]
        if len(lines) == 0 or (lines.lengths < 2).any():
            shown = f"user {users[np.argmax(lines.lengths < 2)]} without items" if len(lines) else "no numbers"
            raise InputError(f"{path}: every line must be `user item item ...`. Received: {shown}")
        distinct, counts = np.unique(users, return_counts=True)
        if (counts > 1).any():
            raise InputError(f"{path}: must have one line per user. Received: user {distinct[counts > 1][0]} twice")
        is_item = np.ones(len(lines.items), bool)
        is_item[lines.offsets[:-1]] = False
        return Interactions.from_ids(np.repeat(users, lines.lengths - 1), lines.items[is_item])


def has_sequences(path: Path, num_lines: int = 1_000) -> bool:
    """Return whether one of the first lines of a text file has more than two fields, as in a `SequenceFile`."""
    check_is_text(path)
    with contextlib.suppress(OSError, EOFError, zlib.error), open_plain_or_gzipped(path) as file:
        return any(len(file.readline(MAX_LINE).split()) > 2 for _ in range(num_lines))
    return False


def read_sequences(path: Path) -> Histories:
    """Read the whole numbers of a text file, one sequence per line."""
    data = _read_bytes(path)
    try:
        items = np.array(data.split(), np.int64)
    except (ValueError, OverflowError) as error:
        raise InputError(f"{path}: must contain only whole numbers: {error}") from error
    characters = np.frombuffer(data.rstrip() + b"\n", np.uint8)
    is_space = np.isin(characters, np.frombuffer(b" \t\r\n", np.uint8))
    starts = np.flatnonzero(~is_space & np.append(True, is_space[:-1]))
    line_ends = np.flatnonzero(characters == ord("\n"))
    return Histories(items, np.append(0, np.searchsorted(starts, line_ends)))


def read_pairs(path: Path) -> tuple[Array, Array]:
    """Read the two columns of a file of whole-number pairs as int64 arrays; blank lines are skipped."""
    check_is_text(path)
    content = _read_bytes(path)
    # pandas would accept 1.0 and 1e3 as whole numbers.
    if content.translate(None, delete=b"+-0123456789 \t\r\n"):
        raise _error_of_first_bad_line(path)
    try:
        # The third column reveals lines with too many fields, which pandas would otherwise truncate.
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
        raise _error_of_first_bad_line(path) from error
    if len(frame) == 0 or frame["extra"].notna().any():
        raise _error_of_first_bad_line(path)
    return frame["user"].to_numpy(), frame["item"].to_numpy()


def _read_bytes(path: Path) -> bytes:
    try:
        with open_plain_or_gzipped(path) as file:
            return file.read().removeprefix(BYTE_ORDER_MARK)
    except (OSError, EOFError, zlib.error) as error:
        raise InputError(f"{path}: cannot be read: {getattr(error, 'strerror', None) or error}") from error


def _error_of_first_bad_line(path: Path) -> InputError:
    """Return an error with the first line that is not a pair of whole numbers; slow, so used only after a failure."""
    pair = re.compile(rb"\s*[+-]?\d{1,18}\s+[+-]?\d{1,18}\s*")
    is_empty = True
    with open_plain_or_gzipped(path) as file:
        for number, line in enumerate(file, start=1):
            line = line.removeprefix(BYTE_ORDER_MARK) if number == 1 else line
            if line.strip():
                is_empty = False
                if not pair.fullmatch(line):
                    shown = line.strip()[:60].decode("utf-8", "backslashreplace")
                    sequence_hint = "; SequenceFile reads lines of a user and its items"
                    hint = sequence_hint if LINE_OF_ITEMS.fullmatch(line) else separator_hint(shown)
                    return InputError(
                        f"{path}:{number}: must be `user item`, two whole numbers. Received: {shown!r}{hint}"
                    )
    return InputError(f"{path}: is empty" if is_empty else f"{path}: is not a text file of `user item` lines")
