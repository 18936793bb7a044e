"""Checkpoints: the complete state of a training on disk, from which it goes on as if it had never stopped.

A checkpoint is one uncompressed .npz file: arrays, with a small JSON beside them. Its name holds the sha256 of its
bytes, so that any damage is noticed before anything is used, and it appears by a single move of a file. Arrays are
written some rows at a time and read one after the other: no second copy of a large model is ever in memory.
"""

from __future__ import annotations

import contextlib
import hashlib
import json
import math
import re
import zipfile
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Any, BinaryIO, cast

import numpy as np

from aprec_like.errors import InputError, first_line
from aprec_like.files import move_into_place, part_file, remove_parts, sha256_of, storage_errors
from aprec_like.types import Json

Variables = Mapping[str, Any]
"""Variables of Keras or TensorFlow (`shape`, `numpy()`, slices, `assign()`) by name."""

FORMAT = 1
"""Of the states; another number makes those of earlier versions unfit for use."""
NUM_KEPT = 2
PIECE_NUMBERS = 1 << 22
"""How many numbers of an array are copied at once when it is written."""
FACTS = "facts.json"
STATE_NAME = re.compile(r"state-(\d+)-(\d+)\.[0-9a-f]{64}\.npz")
BEST_NAME = re.compile(r"best-\d+\.[0-9a-f]{64}\.npz")


@dataclass(frozen=True)
class Saved:
    """A checkpoint that was found whole and fit for use: what it says, and the arrays to be restored."""

    facts: Json
    path: Path

    def restore(self, variables: Variables) -> None:
        """Give variables the values they had; all must be there, with their shapes."""
        _restore(self.path, variables)


class Checkpoints:
    """The checkpoints of one training, in a folder of their own: the last two, and the weights of the best epoch.

    Args:
        folder: where they are.
        fingerprint: what the training is of, as plain JSON values; a checkpoint of another one is not used. `None` for
            a training that nobody will resume: it keeps the best weights and nothing else.
        say: called with a line where there is something to say.
    """

    def __init__(self, folder: Path, fingerprint: Json | None, say: Callable[[str], None] = lambda line: None) -> None:
        self.folder, self.fingerprint, self.say = folder, fingerprint, say
        self._last: tuple[int, int] | None = None

    def load(self) -> Saved | None:
        """The newest checkpoint that is whole and of this training; others are said and removed."""
        if self.fingerprint is None or not self.folder.is_dir():
            return None
        remove_parts(self.folder)
        found = _states(self.folder)
        for place, path in found:
            try:
                facts = _read_facts(_verified(path))
                if facts["fingerprint"] != json.loads(json.dumps(self._fingerprint())):
                    raise InputError(f"{path.name} is of other settings, other data or another version")
                if best := facts["state"]["best_weights"]:
                    _verified(self.folder / best)
            except InputError as error:
                self.say(f"a checkpoint can't be used: {error}")
                with storage_errors(path):
                    path.unlink()
            else:
                self._last = place
                return Saved(facts["state"], path)
        if found:
            self.say("no checkpoint can be used; training starts anew")
        return None

    def save(self, state: Json, variables: Variables) -> None:
        """Keep the state at `state["epoch"]` and `state["step"]`, and of the older ones only the last."""
        place = (state["epoch"], state["step"])
        if self.fingerprint is None or place == self._last:
            return
        name = f"state-{place[0]:06}-{place[1]:06}"
        _write(self.folder, name, {"fingerprint": self._fingerprint(), "state": state}, variables)
        self._last = place
        self._prune(state["best_weights"])

    def save_best(self, epoch: int, variables: Variables) -> str:
        """Keep the weights of an epoch; returns the name by which the states from now on refer to them."""
        name = _write(self.folder, f"best-{epoch:06}", {}, variables)
        self._prune(name)
        return name

    def restore_best(self, name: str, variables: Variables) -> None:
        """Give variables the values that were kept under a name."""
        _restore(_verified(self.folder / name), variables)

    def _fingerprint(self) -> Json:
        return {"format": FORMAT, "training": self.fingerprint}

    def _prune(self, best: str | None) -> None:
        """Remove all but the last states, and all weights but these and those that the last states refer to."""
        states = [path for _, path in _states(self.folder)]
        needed = {best}
        for path in states[:NUM_KEPT]:
            with contextlib.suppress(InputError):
                needed.add(_read_facts(path)["state"]["best_weights"])
        weights = [path for path in self.folder.iterdir() if BEST_NAME.fullmatch(path.name)]
        with storage_errors(self.folder):
            for path in states[NUM_KEPT:] + [path for path in weights if path.name not in needed]:
                path.unlink()


def has_checkpoint(folder: Path) -> bool:
    """Whether there is a state in a folder from which a training could go on."""
    return folder.is_dir() and bool(_states(folder))


def remove_checkpoints(folder: Path) -> None:
    """Remove the states and best weights in a folder; everything else stays."""
    if folder.is_dir():
        with storage_errors(folder):
            for path in folder.iterdir():
                if STATE_NAME.fullmatch(path.name) or BEST_NAME.fullmatch(path.name):
                    path.unlink()


def _states(folder: Path) -> list[tuple[tuple[int, int], Path]]:
    """Epoch and step, and the file, of every state in a folder; newest first."""
    matches = [(STATE_NAME.fullmatch(path.name), path) for path in folder.iterdir()]
    return sorted((((int(match[1]), int(match[2])), path) for match, path in matches if match), reverse=True)


class _HashingWriter:
    """What a zip file is written to; it can't go back in the file, so the sha256 is known when the end is written."""

    def __init__(self, file: BinaryIO) -> None:
        self.file, self.sha256 = file, hashlib.sha256()

    def write(self, data: bytes) -> int:
        self.sha256.update(data)
        return self.file.write(data)

    def flush(self) -> None:
        self.file.flush()


def _write(folder: Path, name: str, facts: Json, variables: Variables) -> str:
    """Write an archive; returns the name of its file."""
    planned = folder / f"{name}.npz"
    with storage_errors(planned), part_file(planned) as part:
        with part.open("wb") as file:
            writer = _HashingWriter(file)
            with zipfile.ZipFile(cast(BinaryIO, writer), "w") as archive:
                archive.writestr(_entry(FACTS), json.dumps(facts, allow_nan=False))
                for key, variable in variables.items():
                    with archive.open(_entry(f"{key}.npy"), "w", force_zip64=True) as target:
                        _write_array(target, variable)
        path = folder / f"{name}.{writer.sha256.hexdigest()}.npz"
        move_into_place(part, path)
    return path.name


def _write_array(target: IO[bytes], variable: Any) -> None:
    """The file that NumPy would write of a variable."""
    shape = tuple(variable.shape)
    if math.prod(shape) <= PIECE_NUMBERS:
        np.lib.format.write_array(target, np.asarray(variable.numpy()), allow_pickle=False)
        return
    num_rows = max(1, PIECE_NUMBERS // math.prod(shape[1:]))
    for start in range(0, shape[0], num_rows):
        piece = np.asarray(variable[start : start + num_rows])
        if start == 0:
            descr = np.lib.format.dtype_to_descr(piece.dtype)
            np.lib.format.write_array_header_1_0(target, {"descr": descr, "fortran_order": False, "shape": shape})
        target.write(piece.data)


def _entry(name: str) -> zipfile.ZipInfo:
    """An entry without the time of day: equal states are equal files."""
    return zipfile.ZipInfo(name)


def _verified(path: Path) -> Path:
    """The path of an archive whose bytes are what its name says."""
    try:
        if sha256_of(path) != path.name.split(".")[1]:
            raise InputError(f"{path.name} is damaged")
    except OSError as error:
        raise InputError(f"{path.name} cannot be read: {error.strerror}") from error
    return path


def _read_facts(path: Path) -> Json:
    try:
        with zipfile.ZipFile(path) as archive:
            return json.loads(archive.read(FACTS))
    except (OSError, ValueError, KeyError, zipfile.BadZipFile) as error:
        raise InputError(f"{path.name} is damaged: {first_line(error)}") from error


def _restore(path: Path, variables: Variables) -> None:
    with zipfile.ZipFile(path) as archive:
        names = set(archive.namelist()) - {FACTS}
        if names != {f"{key}.npy" for key in variables}:
            raise InputError(f"{path}: holds other arrays than this model has; --fresh trains it again")
        for key, variable in variables.items():
            with archive.open(f"{key}.npy") as source:
                array = np.lib.format.read_array(source, allow_pickle=False)
            if array.shape != tuple(variable.shape):
                raise InputError(f"{path}: {key} has another shape than this model's; --fresh trains it again")
            variable.assign(array)
