"""Files that are written whole or not at all: to a part file first, flushed to disk, then moved into place."""

from __future__ import annotations

import contextlib
import hashlib
import os
import shutil
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from aprec_like.errors import InputError

PART_PREFIX = ".part-"
"""What the names of part files start with; a process that is killed leaves one behind."""


class StorageError(InputError):
    """A file could not be written or removed: the disk is full, or the folder is not ours to write."""


@contextmanager
def storage_errors(path: Path) -> Iterator[None]:
    """Turn the system's refusal to write `path` into a `StorageError`."""
    try:
        yield
    except OSError as error:
        raise StorageError(f"{path}: cannot be written: {error.strerror or error}") from error


@contextmanager
def part_file(path: Path) -> Iterator[Path]:
    """An empty file beside `path`, whose folder is made if need be; removed in the end unless it was moved away."""
    path.parent.mkdir(parents=True, exist_ok=True)
    descriptor, name = tempfile.mkstemp(prefix=PART_PREFIX, suffix=f"-{path.name}", dir=path.parent)
    os.close(descriptor)
    part = Path(name)
    try:
        yield part
    finally:
        with contextlib.suppress(OSError):
            part.unlink(missing_ok=True)


def move_into_place(part: Path, path: Path) -> None:
    """Make a part file the file `path`, such that a crash of the machine leaves the old or the new one."""
    part.chmod(0o644)
    with part.open("rb") as file:
        os.fsync(file.fileno())
    part.replace(path)
    with contextlib.suppress(OSError):  # some file systems can't flush a folder; the file itself is safe
        folder = os.open(path.parent, os.O_RDONLY)
        try:
            os.fsync(folder)
        finally:
            os.close(folder)


@contextmanager
def replacing(path: Path) -> Iterator[Path]:
    """A part file that becomes `path` if the block ends well; raises `StorageError`."""
    with storage_errors(path), part_file(path) as part:
        yield part
        move_into_place(part, path)


def remove_folder(path: Path) -> None:
    """Remove a folder and what is in it, if it is there; raises `StorageError`."""
    with storage_errors(path), contextlib.suppress(FileNotFoundError):
        shutil.rmtree(path)


def remove_parts(folder: Path) -> None:
    """Remove what killed processes left behind, in a folder and those in it; nobody else may be writing there."""
    with storage_errors(folder):
        for part in folder.rglob(f"{PART_PREFIX}*"):
            part.unlink(missing_ok=True)


def sha256_of(path: Path) -> str:
    """Sha256 of a file's bytes."""
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()
