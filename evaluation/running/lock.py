"""One writer: a results folder is locked by the run that works in it, and by the processes of its models."""

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
from aprec_like.files import StorageError, storage_errors

try:
    import fcntl
except ImportError:  # a system without flock
    fcntl = None  # type: ignore[assignment]

SECONDS_TO_WAIT = 5.0
"""How long the processes of a run that was killed may take to notice."""

UNSUPPORTED = {errno.ENOTSUP, errno.EOPNOTSUPP, errno.ENOLCK, errno.ENOSYS}


class RunLock:
    """The lock of a results folder, held from `with` to its end, and by every process that is given its descriptor.

    The system frees it when the last of them ends, however it ends, so that the file of a dead run is no obstacle. Its
    content is only for the message.
    """

    def __init__(self, path: Path) -> None:
        self.path = path
        self.descriptor = -1

    def __enter__(self) -> RunLock:
        with storage_errors(self.path):
            self.path.parent.mkdir(parents=True, exist_ok=True)
            self.descriptor = os.open(self.path, os.O_RDWR | os.O_CREAT, 0o644)
        try:
            self._acquire()
            self._sign()
        except BaseException:
            os.close(self.descriptor)
            raise
        return self

    def __exit__(self, *error: object) -> None:
        with contextlib.suppress(OSError):  # the name of a machine is nobody's business once the run is over
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
                    raise InputError(f"{self.path.parent}: another run works here ({self._holder()})") from None
                time.sleep(0.1)
            except OSError as error:
                if error.errno not in UNSUPPORTED:
                    raise StorageError(f"{self.path}: cannot be locked: {error.strerror}") from error
                print("warning: this file system has no locks; start only one run on a folder", file=sys.stderr)
                return
            else:
                return

    def _sign(self) -> None:
        holder = {
            "host": socket.gethostname(),
            "pid": os.getpid(),
            "since": datetime.now(UTC).isoformat(timespec="seconds"),
        }
        with storage_errors(self.path):
            os.ftruncate(self.descriptor, 0)
            os.pwrite(self.descriptor, json.dumps(holder).encode(), 0)

    def _holder(self) -> str:
        try:
            found = json.loads(os.pread(self.descriptor, 4096, 0))
            return f"process {found['pid']} on {found['host']}, since {found['since']}"
        except (OSError, ValueError, KeyError, TypeError):
            return "its name can't be read"
