"""Lock of a results folder: one run command writes to it at a time, together with its workers.

Not `filelock`: its release unlocks the file for all processes that share the descriptor, while here a folder stays
locked until the last worker, which inherits the descriptor, is gone. Its descriptor is not public, it does not name the
holder, and without `flock` it falls back to a lock by existence, which a killed run would leave behind.
"""

from __future__ import annotations

import contextlib
import errno
import json
import os
import socket
import sys
import time
from datetime import UTC, datetime
from pathlib import Path

from aprec_like.errors import InputError
from aprec_like.files import StorageError, open_without_links, storage_errors

try:
    import fcntl
except ImportError:  # a system without flock
    fcntl = None  # type: ignore[assignment]

SECONDS_TO_WAIT = 5.0
"""How long to wait for the lock: workers need a moment to exit after their run command was killed."""

UNSUPPORTED = {errno.ENOTSUP, errno.EOPNOTSUPP, errno.ENOLCK, errno.ENOSYS}
"""Errors of file systems without locks."""


class RunLock:
    """Context manager that locks a results folder for this process and those that inherit `descriptor`.

    The operating system releases the lock when the last of these processes has ended, in whatever way, so that the lock
    file of a killed run does not block the next one. The file's content, the holder, is only used in error messages.
    """

    def __init__(self, path: Path) -> None:
        self.path = path
        self.descriptor = -1

    def __enter__(self) -> RunLock:
        with storage_errors(self.path):
            self.path.parent.mkdir(parents=True, exist_ok=True)
            self.descriptor = open_without_links(self.path, os.O_RDWR | os.O_CREAT)
        try:
            self._acquire()
            self._write_holder()
        except BaseException:
            os.close(self.descriptor)
            raise
        return self

    def __exit__(self, *error: object) -> None:
        with contextlib.suppress(OSError):  # a finished run should not publish the name of the machine
            os.ftruncate(self.descriptor, 0)
        os.close(self.descriptor)

    def _acquire(self) -> None:
        deadline = time.monotonic() + SECONDS_TO_WAIT
        while True:
            try:
                if fcntl is None:
                    raise OSError(errno.ENOSYS, "no flock")
                fcntl.flock(self.descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError:
                if time.monotonic() >= deadline:
                    raise InputError(f"{self.path.parent}: is in use by another run ({self._read_holder()})") from None
                time.sleep(0.1)
            except OSError as error:
                if error.errno not in UNSUPPORTED:
                    raise StorageError(f"{self.path}: cannot be locked: {error.strerror}") from error
                print("warning: this file system has no locks; start only one run on a folder", file=sys.stderr)
                return
            else:
                return

    def _write_holder(self) -> None:
        holder = {
            "host": socket.gethostname(),
            "pid": os.getpid(),
            "since": datetime.now(UTC).isoformat(timespec="seconds"),
        }
        with storage_errors(self.path):
            os.ftruncate(self.descriptor, 0)
            os.pwrite(self.descriptor, json.dumps(holder).encode(), 0)

    def _read_holder(self) -> str:
        try:
            found = json.loads(os.pread(self.descriptor, 4096, 0))
            return f"process {found['pid']} on {found['host']}, since {found['since']}"
        except (OSError, ValueError, KeyError, TypeError):
            return "unknown process"
