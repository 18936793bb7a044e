"""Data with a given split: folders in the format of the PyTorch port of gSASRec."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import numpy as np
from typing_extensions import override

from aprec_like.datasets.base import Dataset
from aprec_like.errors import InputError
from aprec_like.interactions import Interactions, offsets_from_lengths
from aprec_like.splits.as_given import TRAIN_LENGTH, VALIDATION_LENGTH
from aprec_like.types import Array


@dataclass(frozen=True)
class PreSplitFolder(Dataset):
    """Folder of the PyTorch port: `train/input.txt`, `val/{input,output}.txt` and `test/{input,output}.txt`.

    A line of an input file has the items of one user, oldest first, and the same line of the output file has the next
    item. Users have no ids in the files; they are numbered from 1 in the order of the lines. Every training sequence is
    a prefix of its user's test sequence, and it is shorter for validation users, which identifies them.
    Use `split=AsGiven()` to keep the split of the folder; other splits use only the sequences.

    Args:
        path: path of the folder, relative to the data folder or absolute.
    """

    path: str

    @override
    def load(self, data_dir: Path) -> Interactions:
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

    @override
    def is_on_disk(self, data_dir: Path) -> bool:
        return (data_dir / self.path).is_dir()


Sequences = tuple[Array, Array]
"""Flat items of all lines, and the offsets of the lines."""


def read_sequences(path: Path) -> Sequences:
    """Read the whole numbers of a text file, one sequence per line."""
    try:
        data = path.read_bytes()
    except OSError as error:
        raise InputError(f"{path}: cannot be read: {error.strerror}") from error
    try:
        items = np.array(data.split(), np.int64)
    except (ValueError, OverflowError) as error:
        raise InputError(f"{path}: must contain only whole numbers: {error}") from error
    characters = np.frombuffer(data.rstrip() + b"\n", np.uint8)
    is_space = np.isin(characters, np.frombuffer(b" \t\r\n", np.uint8))
    starts = np.flatnonzero(~is_space & np.append(True, is_space[:-1]))
    line_ends = np.flatnonzero(characters == ord("\n"))
    return items, np.append(0, np.searchsorted(starts, line_ends))


def _joined(inputs: Sequences, outputs: Sequences) -> Sequences:
    """Append to each input sequence its output, which is one item."""
    lengths = np.diff(inputs[1]) + 1
    offsets = offsets_from_lengths(lengths)
    items = np.empty(offsets[-1], np.int64)
    is_last = np.zeros(offsets[-1], bool)
    is_last[offsets[1:] - 1] = True
    items[is_last], items[~is_last] = outputs[0], inputs[0]
    return items, offsets


def _check_prefix(path: Path, part: Sequences, whole: Sequences, rows: Array) -> None:
    """Raise `InputError` unless every line of `part` is a proper prefix of the sequence of its row in `whole`."""
    lengths = np.diff(part[1])
    is_wrong = lengths >= np.diff(whole[1])[rows]
    positions = np.arange(len(part[0])) - np.repeat(part[1][:-1], lengths)
    compared = np.minimum(np.repeat(whole[1][:-1][rows], lengths) + positions, len(whole[0]) - 1)
    is_different = whole[0][compared] != part[0]
    is_wrong |= np.bincount(np.repeat(np.arange(len(lengths)), lengths), is_different, len(lengths)) > 0
    if is_wrong.any():
        raise InputError(f"{path}:{int(np.argmax(is_wrong)) + 1}: must begin the user's line of test/input.txt")


def _validation_lengths(folder: Path, train_lengths: Array, whole: Sequences) -> Array:
    """Return the (users,) number of items before the validation target, -1 for users without one."""
    inputs, outputs = read_sequences(folder / "val/input.txt"), read_sequences(folder / "val/output.txt")
    known = _joined(inputs, outputs) if len(inputs[1]) == len(outputs[1]) == len(outputs[0]) + 1 else None
    gaps = np.diff(whole[1]) - train_lengths
    rows = np.flatnonzero(gaps > gaps.min())
    num_validation = len(inputs[1]) - 1
    if num_validation == len(train_lengths):
        rows = np.arange(num_validation)
    if known is None or len(rows) != num_validation:
        raise InputError(
            f"{folder}: val/ must have a line for every user with a shorter training sequence. "
            f"Received: {len(rows)} such users, {num_validation} and {len(outputs[0])} lines"
        )
    _check_prefix(folder / "val/input.txt", known, whole, rows)
    lengths = np.full(len(train_lengths), -1)
    lengths[rows] = np.diff(inputs[1])
    if (is_leaked := train_lengths[rows] > lengths[rows]).any():
        line = int(rows[np.argmax(is_leaked)]) + 1
        raise InputError(f"{folder / 'train/input.txt'}:{line}: contains the validation target of its user")
    return lengths
