"""Files: atomic writing (to a part file, flushed to disk, then moved into place), and access that follows no link."""

from __future__ import annotations

import contextlib
import errno
import hashlib
import os
import shutil
import stat
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from io import BufferedReader
from pathlib import Path

import psutil

from aprec_like.errors import InputError

PART_PREFIX = ".part-"
"""Prefix of the names of part files; a killed process may leave one behind."""
NO_FOLLOW = getattr(os, "O_NOFOLLOW", 0)
"""Flag of `os.open`: a link is an error instead of being followed; Windows has none."""
NO_BLOCK = getattr(os, "O_NONBLOCK", 0)
"""Flag of `os.open`: a named pipe is opened at once instead of waiting for its other end."""
LINK_REASON = "it is a link; a results folder holds its files itself"


class StorageError(InputError):
    """A file cannot be written or removed, for example because the disk is full or the folder is read-only."""


def cache_dir() -> Path:
    """Return the cache folder, where downloaded files are stored; by default in the user's home folder."""
    home = os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache"
    return Path(home) / "aprec_like"


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
    with part.open("r+b") as file:  # Windows flushes only what is open for writing
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


def open_without_links(path: Path, flags: int) -> int:
    """Open a regular file and return its descriptor; an `OSError` for a link, folder, pipe or device.

    A file that has a second name (a hard link) is refused for writing, which would change what the other name holds.
    """
    try:
        descriptor = os.open(path, flags | NO_FOLLOW | NO_BLOCK | getattr(os, "O_CLOEXEC", 0), 0o644)
    except OSError as error:
        if error.errno in (errno.ELOOP, errno.EMLINK):  # EMLINK on FreeBSD
            raise OSError(errno.ELOOP, LINK_REASON) from error
        raise
    found = os.fstat(descriptor)
    is_written = flags & (os.O_WRONLY | os.O_RDWR)
    if stat.S_ISREG(found.st_mode) and (found.st_nlink <= 1 or not is_written):
        return descriptor
    os.close(descriptor)
    if stat.S_ISDIR(found.st_mode):
        raise IsADirectoryError(errno.EISDIR, os.strerror(errno.EISDIR))
    raise OSError(errno.EINVAL, LINK_REASON if stat.S_ISREG(found.st_mode) else "it is not a regular file")


def open_regular(path: Path) -> BufferedReader:
    """Open a regular file for reading; raises `InputError` for links, and what cannot be read."""
    try:
        descriptor = open_without_links(path, os.O_RDONLY)
    except OSError as error:
        raise InputError(f"{path}: cannot be read: {error.strerror or error}") from error
    file = os.fdopen(descriptor, "rb")
    if os.fstat(descriptor).st_size > psutil.virtual_memory().total:
        file.close()
        raise InputError(f"{path}: cannot be read: it is larger than the memory of this machine")
    return file


def read_regular(path: Path) -> bytes:
    """Return the content of a regular file; raises `InputError` as `open_regular` does."""
    with open_regular(path) as file:
        try:
            return file.read()
        except (OSError, MemoryError) as error:
            reason = error.strerror if isinstance(error, OSError) else "it does not fit into memory"
            raise InputError(f"{path}: cannot be read: {reason}") from error


def refuse_links(folder: Path) -> None:
    """Raise `InputError` if a folder holds a link, through which files elsewhere could be written or removed."""
    for parent, folders, files in os.walk(folder):
        for name in (*folders, *files):
            refuse_link(Path(parent, name))


def refuse_link(path: Path) -> None:
    """Raise `InputError` if a path is a link."""
    if path.is_symlink():
        raise InputError(f"{path}: cannot be used: {LINK_REASON}")
