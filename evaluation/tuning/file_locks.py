"""Locks on files that the operating system releases when their process ends, in whatever way."""

from __future__ import annotations

import errno
import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from aprec_like.files import StorageError, open_without_links, storage_errors

try:
    import fcntl
except ImportError:  # a system without flock
    fcntl = None  # type: ignore[assignment]


@contextmanager
def exclusive(path: Path) -> Iterator[None]:
    """Hold the lock on a file within the block; waits for other processes."""
    descriptor = _open(path)
    try:
        _flock(path, descriptor, is_waiting=True)
        yield
    finally:
        os.close(descriptor)


def try_lock(path: Path) -> int | None:
    """Lock a file and return its descriptor, or `None` if another process holds the lock.

    The lock ends when this process, and those that inherit the descriptor, have closed it or ended.
    """
    descriptor = _open(path)
    try:
        is_locked = _flock(path, descriptor, is_waiting=False)
    except BaseException:
        os.close(descriptor)
        raise
    if is_locked:
        return descriptor
    os.close(descriptor)
    return None


def _open(path: Path) -> int:
    with storage_errors(path):
        path.parent.mkdir(parents=True, exist_ok=True)
        return open_without_links(path, os.O_RDWR | os.O_CREAT)


def _flock(path: Path, descriptor: int, *, is_waiting: bool) -> bool:
    try:
        if fcntl is None:
            raise OSError(errno.ENOSYS, "no flock")
        fcntl.flock(descriptor, fcntl.LOCK_EX | (0 if is_waiting else fcntl.LOCK_NB))
    except BlockingIOError:
        return False
    except OSError as error:
        raise StorageError(
            f"{path}: cannot be locked: {error.strerror}; a study needs a file system with locks (--results DIR)"
        ) from error
    return True
