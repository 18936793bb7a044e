"""Scratch folders on disk: checked for free space, removed after use, and after a kill by the next process."""

from __future__ import annotations

import os
import shutil
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from aprec_like.files import StorageError, cache_dir

try:
    import fcntl
except ImportError:  # a system without flock, where folders of killed processes stay
    fcntl = None  # type: ignore[assignment]

SCRATCH_VARIABLE = "APREC_LIKE_SCRATCH"
"""Environment variable that names the parent of scratch folders."""

LOCK_NAME = "lock"
"""File of a scratch folder that its process holds locked; the system releases the lock of a killed process."""


def scratch_root() -> Path:
    """Return the parent of scratch folders: the variable APREC_LIKE_SCRATCH, else in the cache folder.

    The system's folder for temporary files takes its place if the cache folder cannot be written.
    """
    named = os.environ.get(SCRATCH_VARIABLE)
    folder = Path(named) if named else cache_dir() / "scratch"
    try:
        folder.mkdir(parents=True, exist_ok=True)
        if os.access(folder, os.W_OK):
            return folder
        reason = "Permission denied"
    except OSError as error:
        reason = error.strerror or str(error)
    if named:
        raise StorageError(f"{folder}: cannot be written: {reason}; {SCRATCH_VARIABLE} names the scratch folder")
    return Path(tempfile.gettempdir())


@contextmanager
def scratch_folder(needed: int) -> Iterator[Path]:
    """Create a scratch folder for about `needed` bytes, which is removed after the block; raises `StorageError`.

    Folders of processes that were killed are removed first.
    """
    root = scratch_root()
    with _locked(root / ".aprec_like-scratch"):
        _remove_abandoned(root)
        check_free(root, needed)
        folder = Path(tempfile.mkdtemp(prefix="aprec_like-", dir=root))
        lock = _open_lock(folder / LOCK_NAME)
    try:
        yield folder
    finally:
        shutil.rmtree(folder, ignore_errors=True)
        os.close(lock)


def check_free(folder: Path, needed: int) -> None:
    """Raise `StorageError` unless the disk of a folder has about `needed` bytes free."""
    free = shutil.disk_usage(folder).free
    if needed > free:
        raise StorageError(
            f"{folder}: sorting the data needs about {needed / 2**30:.1f} GiB of scratch space, and "
            f"{free / 2**30:.1f} GiB are free; make room, or name a folder on another disk with {SCRATCH_VARIABLE}"
        )


def _open_lock(path: Path) -> int:
    descriptor = os.open(path, os.O_RDWR | os.O_CREAT, 0o644)
    try:
        if fcntl is not None:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError:
        os.close(descriptor)
        raise
    return descriptor


@contextmanager
def _locked(path: Path) -> Iterator[None]:
    """Hold a lock file; keeps a new folder from being taken for an abandoned one before it is locked."""
    descriptor = os.open(path, os.O_RDWR | os.O_CREAT, 0o644)
    try:
        if fcntl is not None:
            fcntl.flock(descriptor, fcntl.LOCK_EX)
        yield
    finally:
        os.close(descriptor)


def _remove_abandoned(root: Path) -> None:
    """Remove the scratch folders whose process is gone."""
    for folder in root.glob("aprec_like-*") if fcntl is not None else ():
        try:
            os.close(_open_lock(folder / LOCK_NAME))
        except OSError:
            continue  # in use, or of another user
        shutil.rmtree(folder, ignore_errors=True)
