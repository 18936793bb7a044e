"""Atomic writing of files: to a part file first, flushed to disk, then moved into place."""

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
"""Prefix of the names of part files; a killed process may leave one behind."""


class StorageError(InputError):
    """A file cannot be written or removed, for example because the disk is full or the folder is read-only."""


@contextmanager
def storage_errors(path: Path) -> Iterator[None]:
    """Raise `StorageError` instead of an `OSError` within the block, which writes `path`."""
    try:
        yield
    except OSError as error:
        raise StorageError(f"{path}: cannot be written: {error.strerror or error}") from error


@contextmanager
def part_file(path: Path) -> Iterator[Path]:
    """Create an empty file in the folder of `path`; it is removed after the block unless it was moved.

    The folder is created if it does not exist.
    """
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
    """Rename a part file to `path`; after a crash of the machine `path` is the old or the new file."""
    part.chmod(0o644)
    with part.open("rb") as file:
        os.fsync(file.fileno())
    part.replace(path)
    with contextlib.suppress(OSError):  # some file systems cannot flush a folder; the file itself is flushed
        folder = os.open(path.parent, os.O_RDONLY)
        try:
            os.fsync(folder)
        finally:
            os.close(folder)


@contextmanager
def atomic_write(path: Path) -> Iterator[Path]:
    """Create a part file that becomes `path` if the block succeeds; raises `StorageError`."""
    with storage_errors(path), part_file(path) as part:
        yield part
        move_into_place(part, path)


def remove_folder(path: Path) -> None:
    """Remove a folder with its content, if it exists; raises `StorageError`."""
    with storage_errors(path), contextlib.suppress(FileNotFoundError):
        shutil.rmtree(path)


def remove_part_files(folder: Path) -> None:
    """Remove part files of killed processes in a folder and its subfolders, where no other process may write."""
    with storage_errors(folder):
        for part in folder.rglob(f"{PART_PREFIX}*"):
            part.unlink(missing_ok=True)


def sha256_of(path: Path) -> str:
    """Return the sha256 of the bytes of a file."""
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()
