"""Data with a given split: folders in the format of the PyTorch port of gSASRec."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import numpy as np
from typing_extensions import override

from aprec_like.datasets.base import Dataset
from aprec_like.datasets.local_files import missing_error, search_folders
from aprec_like.datasets.text import read_sequences
from aprec_like.errors import InputError
from aprec_like.interactions import Histories, Interactions, offsets_from_lengths
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
        path: path of the folder: absolute, or relative to the data folder, the recipe's folder or the current folder.
    """

    path: str

    @override
    def load(self, data_dir: Path) -> Interactions:
        folder = self._find(data_dir)
        if folder is None:
            raise missing_error(self.path, data_dir, kind="folder")
        train, test = read_sequences(folder / "train/input.txt"), read_sequences(folder / "test/input.txt")
        targets = read_sequences(folder / "test/output.txt")
        if not len(train) == len(test) == len(targets) or not (targets.lengths == 1).all():
            raise InputError(f"{folder}: train/input.txt, test/input.txt and test/output.txt must have a line per user")
        sequences = _append(test, targets)
        _check_prefix(folder / "train/input.txt", train, sequences, np.arange(len(train)))
        item_ids, items = np.unique(sequences.items, return_inverse=True)
        return Interactions(
            items=items.astype(np.int32),
            offsets=sequences.offsets,
            item_ids=item_ids,
            user_ids=np.arange(1, len(train) + 1),
            user_columns={
                TRAIN_LENGTH: train.lengths,
                VALIDATION_LENGTH: _validation_lengths(folder, train.lengths, sequences),
            },
        )

    @override
    def is_on_disk(self, data_dir: Path) -> bool:
        return self._find(data_dir) is not None

    def _find(self, data_dir: Path) -> Path | None:
        found = (folder / self.path for folder in search_folders(data_dir))
        return next((path for path in found if path.is_dir()), None)


def _append(inputs: Histories, outputs: Histories) -> Histories:
    """Append to each input sequence its output, which is one item."""
    offsets = offsets_from_lengths(inputs.lengths + 1)
    items = np.empty(offsets[-1], np.int64)
    is_output = np.zeros(offsets[-1], bool)
    is_output[offsets[1:] - 1] = True
    items[is_output], items[~is_output] = outputs.items, inputs.items
    return Histories(items, offsets)


def _check_prefix(path: Path, parts: Histories, sequences: Histories, rows: Array) -> None:
    """Raise `InputError` unless every line of `parts` is a proper prefix of the sequence of its row."""
    is_wrong = parts.lengths >= sequences.lengths[rows]
    positions = np.arange(len(parts.items)) - np.repeat(parts.offsets[:-1], parts.lengths)
    compared = np.repeat(sequences.offsets[:-1][rows], parts.lengths) + positions
    is_different = sequences.items[np.minimum(compared, len(sequences.items) - 1)] != parts.items
    is_wrong |= np.bincount(parts.rows, is_different, len(parts)) > 0
    if is_wrong.any():
        raise InputError(f"{path}:{int(np.argmax(is_wrong)) + 1}: must begin the user's line of test/input.txt")


def _validation_lengths(folder: Path, train_lengths: Array, sequences: Histories) -> Array:
    """Return the (users,) number of items before the validation target, -1 for users without one."""
    inputs, targets = read_sequences(folder / "val/input.txt"), read_sequences(folder / "val/output.txt")
    num_removed = sequences.lengths - train_lengths
    is_validation = num_removed > num_removed.min()
    rows = np.arange(len(inputs)) if len(inputs) == len(train_lengths) else np.flatnonzero(is_validation)
    if not len(rows) == len(inputs) == len(targets) == len(targets.items):
        raise InputError(
            f"{folder}: val/ must have a line for every user with a shorter training sequence. "
            f"Received: {len(rows)} such users, {len(inputs)} and {len(targets.items)} lines"
        )
    _check_prefix(folder / "val/input.txt", _append(inputs, targets), sequences, rows)
    lengths = np.full(len(train_lengths), -1)
    lengths[rows] = inputs.lengths
    if (is_leaked := train_lengths[rows] > lengths[rows]).any():
        line = int(rows[np.argmax(is_leaked)]) + 1
        raise InputError(f"{folder / 'train/input.txt'}:{line}: contains the validation target of its user")
    return lengths
