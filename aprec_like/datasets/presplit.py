"""Data that comes split already: the folders of the PyTorch port of gSASRec."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import numpy as np

from aprec_like.datasets.base import Dataset
from aprec_like.errors import InputError
from aprec_like.interactions import Interactions, offsets_from_lengths
from aprec_like.splits.as_given import TRAIN_LENGTH, VALIDATION_LENGTH
from aprec_like.types import Array


@dataclass(frozen=True)
class PreSplitFolder(Dataset):
    """A folder of the PyTorch port: `train/input.txt`, `val/{input,output}.txt` and `test/{input,output}.txt`.

    A line of an input file holds the items of one user, oldest first, and the same line of the output file the next
    one. Users have no names there: they are numbered from 1 in the order of the lines. Every training sequence begins
    its user's test sequence; who the validation users are follows from whose training sequence is cut shorter.
    Use it with `split=AsGiven()` to keep the folder's own split; with another split only the sequences count.

    Args:
        path: the folder, relative to the data folder or absolute.
    """

    path: str

    def load(self, data_dir: Path) -> Interactions:
        """Read the folder."""
        folder = data_dir / self.path
        if not folder.is_dir():
            raise InputError(f"{folder} does not exist; put the folder there or name another data folder")
        train, test = read_sequences(folder / "train/input.txt"), read_sequences(folder / "test/input.txt")
        last = read_sequences(folder / "test/output.txt")
        if not len(train[1]) == len(test[1]) == len(last[1]) or not (np.diff(last[1]) == 1).all():
            raise InputError(f"{folder}: train/input.txt, test/input.txt and test/output.txt must have a line per user")
        whole = _joined(test, last)
        train_lengths = np.diff(train[1])
        _check_prefix(folder / "train/input.txt", train, whole, np.arange(len(train_lengths)))
        item_ids, items = np.unique(whole[0], return_inverse=True)
        return Interactions(
            items=items.astype(np.int32),
            offsets=whole[1],
            item_ids=item_ids,
            user_ids=np.arange(1, len(train_lengths) + 1),
            user_columns={
                TRAIN_LENGTH: train_lengths,
                VALIDATION_LENGTH: _validation_lengths(folder, train_lengths, whole),
            },
        )

    def is_on_disk(self, data_dir: Path) -> bool:
        """Whether the folder exists."""
        return (data_dir / self.path).is_dir()


Sequences = tuple[Array, Array]
"""Flat items, and the offsets of the lines."""


def read_sequences(path: Path) -> Sequences:
    """The whole numbers of a text file, and how many stand on each line."""
    try:
        data = path.read_bytes()
    except OSError as error:
        raise InputError(f"{path}: cannot be read: {error.strerror}") from error
    try:
        items = np.array(data.split(), np.int64)
    except (ValueError, OverflowError) as error:
        raise InputError(f"{path}: must hold whole numbers only: {error}") from error
    characters = np.frombuffer(data.rstrip() + b"\n", np.uint8)
    is_space = np.isin(characters, np.frombuffer(b" \t\r\n", np.uint8))
    starts = np.flatnonzero(~is_space & np.append(True, is_space[:-1]))
    line_ends = np.flatnonzero(characters == ord("\n"))
    return items, np.append(0, np.searchsorted(starts, line_ends))


def _joined(inputs: Sequences, outputs: Sequences) -> Sequences:
    """Each input followed by its output."""
    lengths = np.diff(inputs[1]) + 1
    offsets = offsets_from_lengths(lengths)
    items = np.empty(offsets[-1], np.int64)
    is_last = np.zeros(offsets[-1], bool)
    is_last[offsets[1:] - 1] = True
    items[is_last], items[~is_last] = outputs[0], inputs[0]
    return items, offsets


def _check_prefix(path: Path, part: Sequences, whole: Sequences, rows: Array) -> None:
    """Every line of `part` must begin the sequence of its row in `whole`."""
    lengths, room = np.diff(part[1]), np.diff(whole[1])[rows]
    is_wrong = lengths >= room
    positions = np.arange(len(part[0])) - np.repeat(part[1][:-1], lengths)
    at = np.minimum(np.repeat(whole[1][:-1][rows], lengths) + positions, len(whole[0]) - 1)
    is_other = whole[0][at] != part[0]
    is_wrong |= np.bincount(np.repeat(np.arange(len(lengths)), lengths), is_other, len(lengths)) > 0
    if is_wrong.any():
        raise InputError(f"{path}:{int(np.argmax(is_wrong)) + 1}: must begin the user's line of test/input.txt")


def _validation_lengths(folder: Path, train_lengths: Array, whole: Sequences) -> Array:
    inputs, outputs = read_sequences(folder / "val/input.txt"), read_sequences(folder / "val/output.txt")
    known = _joined(inputs, outputs) if len(inputs[1]) == len(outputs[1]) == len(outputs[0]) + 1 else None
    gaps = np.diff(whole[1]) - train_lengths
    rows = np.flatnonzero(gaps > gaps.min())
    num_validation = len(inputs[1]) - 1
    if num_validation == len(train_lengths):
        rows = np.arange(num_validation)
    if known is None or len(rows) != num_validation:
        raise InputError(
            f"{folder}: val/ must have a line for every user whose training sequence is cut shorter. "
            f"Received: {len(rows)} such users, {num_validation} and {len(outputs[0])} lines"
        )
    _check_prefix(folder / "val/input.txt", known, whole, rows)
    lengths = np.full(len(train_lengths), -1)
    lengths[rows] = np.diff(inputs[1])
    if (is_told := train_lengths[rows] > lengths[rows]).any():
        line = int(rows[np.argmax(is_told)]) + 1
        raise InputError(f"{folder / 'train/input.txt'}:{line}: holds the validation target of its user")
    return lengths
