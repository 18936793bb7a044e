"""Checkpoints: the complete state of a training on disk, to resume it with bit-identical results.

A checkpoint is one uncompressed .npz file of arrays and a JSON document. Its name holds the sha256 of its content,
which is verified before use, and it is moved into place atomically. Arrays are written in chunks of rows and read one
at a time, so that a large model is never copied in memory.
"""

from __future__ import annotations

import contextlib
import hashlib
import json
import math
import re
import shutil
import zipfile
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Any, BinaryIO, cast

import numpy as np

from aprec_like.errors import InputError, first_line
from aprec_like.files import move_into_place, part_file, remove_part_files, sha256_of, storage_errors
from aprec_like.types import Json

Variables = Mapping[str, Any]
"""Keras or TensorFlow variables (`shape`, `numpy()`, slices, `assign()`) by name."""

FORMAT = 1
"""Version of the checkpoint format; checkpoints of another version are not used."""
NUM_KEPT = 2
"""Number of newest states that are kept."""
CHUNK_ELEMENTS = 1 << 22
"""Maximum number of elements of an array that are copied at once when it is written."""
LIMITS = ("max_epochs", "patience")
"""Settings that say when a training ends; a training may go on with larger ones."""
METADATA_FILE = "facts.json"
STATE_NAME = re.compile(r"state-(\d+)-(\d+)\.[0-9a-f]{64}\.npz")
BEST_NAME = re.compile(r"best-\d+\.[0-9a-f]{64}\.npz")


@dataclass(frozen=True)
class SavedState:
    """A verified checkpoint.

    Args:
        state: the training state, as JSON.
        path: the file with the arrays.
    """

    state: Json
    path: Path

    def restore(self, variables: Variables) -> None:
        """Assign the saved values; names and shapes must match."""
        _restore(self.path, variables)


class Checkpoints:
    """The checkpoints of one training: its two newest states and the weights of its best epoch.

    Args:
        folder: folder of the checkpoints.
        fingerprint: JSON values that identify the training (settings, data, seed); checkpoints with another one are not
            used, except that the limits of the training (`LIMITS`) may differ. `None` for a training that is not
            resumed: only the best weights are saved.
        log: called with a line of text for messages.
    """

    def __init__(self, folder: Path, fingerprint: Json | None, log: Callable[[str], None] = lambda line: None) -> None:
        self.folder, self.fingerprint, self.log = folder, fingerprint, log
        self._last: tuple[int, int] | None = None

    def load(self) -> SavedState | None:
        """Return the newest usable checkpoint of this training, if any; others are logged and removed."""
        if self.fingerprint is None or not self.folder.is_dir():
            return None
        remove_part_files(self.folder)
        found = _states(self.folder)
        for epoch_and_step, path in found:
            try:
                metadata = _read_metadata(_verified(path))
                if not isinstance(metadata.get("state"), dict) or not isinstance(metadata.get("fingerprint"), dict):
                    raise InputError(f"{path.name} holds no state of a training")
                expected = json.loads(json.dumps(self._fingerprint()))
                if without_limits(metadata["fingerprint"]) != without_limits(expected):
                    raise InputError(f"{path.name} belongs to other settings, other data or another version")
                if best := metadata["state"].get("best_weights"):
                    if not BEST_NAME.fullmatch(str(best)):
                        raise InputError(f"{path.name} names no file of best weights: {best}")
                    _verified(self.folder / best)
            except InputError as error:
                self.log(f"ignores a checkpoint: {error}")
                with storage_errors(path):
                    path.unlink()
            else:
                self._last = epoch_and_step
                return SavedState(metadata["state"], path)
        if found:
            self.log("no checkpoint can be used; training starts from the beginning")
        return None

    def save(self, state: Json, variables: Variables) -> None:
        """Save the state at `state["epoch"]` and `state["step"]`, unless it is saved already; removes older ones."""
        epoch, step = state["epoch"], state["step"]
        if self.fingerprint is None or (epoch, step) == self._last:
            return
        name = f"state-{epoch:06}-{step:06}"
        _write(self.folder, name, {"fingerprint": self._fingerprint(), "state": state}, variables)
        self._last = (epoch, step)
        self._prune(state["best_weights"])

    def save_best(self, epoch: int, variables: Variables) -> str:
        """Save the weights of the best epoch; returns the file name for `state["best_weights"]`."""
        name = _write(self.folder, f"best-{epoch:06}", {}, variables)
        self._prune(name)
        return name

    def restore_best(self, name: str, variables: Variables) -> None:
        """Assign the weights that `save_best` saved under a name."""
        _restore(_verified(self.folder / name), variables)

    def _fingerprint(self) -> Json:
        return {"format": FORMAT, "training": self.fingerprint}

    def _prune(self, best: str | None) -> None:
        """Remove old states, and all best weights but `best` and those that the kept states refer to."""
        states = [path for _, path in _states(self.folder)]
        needed = {best}
        for path in states[:NUM_KEPT]:
            with contextlib.suppress(InputError):
                needed.add((_read_metadata(path).get("state") or {}).get("best_weights"))
        weights = [path for path in self.folder.iterdir() if BEST_NAME.fullmatch(path.name)]
        with storage_errors(self.folder):
            for path in states[NUM_KEPT:] + [path for path in weights if path.name not in needed]:
                path.unlink()


def has_checkpoint(folder: Path) -> bool:
    """Return whether a folder holds a state to resume from."""
    return folder.is_dir() and bool(_states(folder))


def remove_checkpoints(folder: Path) -> None:
    """Remove the states and best weights in a folder, and no other files."""
    if folder.is_dir():
        with storage_errors(folder):
            for path in folder.iterdir():
                if STATE_NAME.fullmatch(path.name) or BEST_NAME.fullmatch(path.name):
                    path.unlink()


def copy_checkpoints(folder: Path, target: Path) -> None:
    """Copy the states and best weights in a folder, and no files that are being written."""
    for path in folder.iterdir():
        if STATE_NAME.fullmatch(path.name) or BEST_NAME.fullmatch(path.name):
            shutil.copyfile(path, target / path.name)


def remove_older_states(folder: Path) -> None:
    """Remove all states in a folder but the newest."""
    if folder.is_dir():
        with storage_errors(folder):
            for _, path in _states(folder)[1:]:
                path.unlink()


def without_limits(value: Any) -> Any:
    """Return nested settings without the limits of trainings."""
    if isinstance(value, dict):
        return {key: without_limits(item) for key, item in value.items() if key not in LIMITS}
    return [without_limits(item) for item in value] if isinstance(value, list) else value


def _states(folder: Path) -> list[tuple[tuple[int, int], Path]]:
    """List (epoch, step) and file of every state in a folder, newest first."""
    matches = [(STATE_NAME.fullmatch(path.name), path) for path in folder.iterdir()]
    return sorted((((int(match[1]), int(match[2])), path) for match, path in matches if match), reverse=True)


class _HashingWriter:
    """A file without `seek`, so that `ZipFile` writes it in one pass and its sha256 is known at the end."""

    def __init__(self, file: BinaryIO) -> None:
        self.file, self.sha256 = file, hashlib.sha256()

    def write(self, data: bytes) -> int:
        self.sha256.update(data)
        return self.file.write(data)

    def flush(self) -> None:
        self.file.flush()


def _write(folder: Path, name: str, metadata: Json, variables: Variables) -> str:
    """Write an archive; returns its file name."""
    planned = folder / f"{name}.npz"
    with storage_errors(planned), part_file(planned) as part:
        with part.open("wb") as file:
            writer = _HashingWriter(file)
            with zipfile.ZipFile(cast(BinaryIO, writer), "w") as archive:
                archive.writestr(_entry(METADATA_FILE), json.dumps(metadata, allow_nan=False))
                for key, variable in variables.items():
                    with archive.open(_entry(f"{key}.npy"), "w", force_zip64=True) as target:
                        _write_array(target, variable)
        path = folder / f"{name}.{writer.sha256.hexdigest()}.npz"
        move_into_place(part, path)
    return path.name


def _write_array(target: IO[bytes], variable: Any) -> None:
    """Write a variable in the .npy format, in chunks of rows."""
    shape = tuple(variable.shape)
    if math.prod(shape) <= CHUNK_ELEMENTS:
        np.lib.format.write_array(target, np.asarray(variable.numpy()), allow_pickle=False)
        return
    num_rows = max(1, CHUNK_ELEMENTS // math.prod(shape[1:]))
    for start in range(0, shape[0], num_rows):
        chunk = np.asarray(variable[start : start + num_rows])
        if start == 0:
            descr = np.lib.format.dtype_to_descr(chunk.dtype)
            np.lib.format.write_array_header_1_0(target, {"descr": descr, "fortran_order": False, "shape": shape})
        target.write(chunk.data)


def _entry(name: str) -> zipfile.ZipInfo:
    """Make a zip entry without a timestamp, so that equal states are equal files."""
    return zipfile.ZipInfo(name)


def _verified(path: Path) -> Path:
    """Return the path; raises `InputError` if the content does not match the sha256 in its name."""
    try:
        if sha256_of(path) != path.name.split(".")[1]:
            raise InputError(f"{path.name} is damaged")
    except OSError as error:
        raise InputError(f"{path.name} cannot be read: {error.strerror}") from error
    return path


def _read_metadata(path: Path) -> Json:
    try:
        with zipfile.ZipFile(path) as archive:
            return json.loads(archive.read(METADATA_FILE))
    except (OSError, ValueError, KeyError, zipfile.BadZipFile) as error:
        raise InputError(f"{path.name} is damaged: {first_line(error)}") from error


def _restore(path: Path, variables: Variables) -> None:
    with zipfile.ZipFile(path) as archive:
        names = set(archive.namelist()) - {METADATA_FILE}
        if names != {f"{key}.npy" for key in variables}:
            raise InputError(f"{path}: its arrays are not those of this model; --fresh trains it again")
        for key, variable in variables.items():
            with archive.open(f"{key}.npy") as source:
                array = np.lib.format.read_array(source, allow_pickle=False)
            if array.shape != tuple(variable.shape):
                raise InputError(f"{path}: {key} has another shape in this model; --fresh trains it again")
            variable.assign(array)
