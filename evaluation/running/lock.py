"""Lock of a results folder: one run command writes to it at a time, together with its workers.

Two locks of the operating system are held, on the lock file and on the folder itself: the first also works on network
file systems, the second does not end when someone deletes the lock file. Where the file system has no locks, a file
with the name of the holder stands for them; it is created by one process only, also if two hosts try at once.

Not `filelock`: its release unlocks the file for all processes that share the descriptor, while here a folder stays
locked until the last worker, which inherits the descriptors, is gone. Its descriptor is not public, it does not name
the holder, and without `flock` it falls back to a lock by existence, which a killed run would leave behind.
"""

from __future__ import annotations

import contextlib
import errno
import json
import os
import socket
import sys
import time
from collections.abc import Sequence
from datetime import UTC, datetime
from pathlib import Path

import psutil

from aprec_like.errors import InputError
from aprec_like.files import StorageError, open_without_links, read_regular, storage_errors
from aprec_like.types import Json

try:
    import fcntl
except ImportError:  # a system without flock
    fcntl = None  # type: ignore[assignment]

SECONDS_TO_WAIT = 5.0
"""How long to wait for the lock: workers need a moment to exit after their run command was killed."""

UNSUPPORTED = {errno.ENOTSUP, errno.EOPNOTSUPP, errno.ENOLCK, errno.ENOSYS, errno.EBADF}
"""Errors of file systems without locks; EBADF: NFS locks no folder, which can't be opened for writing."""

HOLDER_NAME = ".lock-holder"
"""Name of the file that stands for a lock where the file system has none."""


class RunLock:
    """Context manager that locks a results folder for this process and those that inherit `descriptors`.

    The operating system releases the locks when the last of these processes has ended, in whatever way, so that the
    lock file of a killed run does not block the next one. The file's content, the holder, is only for error messages.
    """

    def __init__(self, path: Path) -> None:
        self.path = path
        self.descriptors: list[int] = []
        self.holder_path: Path | None = None

    def __enter__(self) -> RunLock:
        with storage_errors(self.path):
            self.path.parent.mkdir(parents=True, exist_ok=True)
            self.descriptors = [open_without_links(self.path, os.O_RDWR | os.O_CREAT)]
            if fcntl is not None:  # Windows cannot open folders
                self.descriptors.append(os.open(self.path.parent, os.O_RDONLY))
        try:
            if self._acquire(self.descriptors[0]):
                self._acquire(self.descriptors[1])
            else:
                self._create_holder_file()
            self._write_holder()
        except BaseException:
            self._close()
            raise
        return self

    def __exit__(self, *error: object) -> None:
        with contextlib.suppress(OSError):  # a finished run should not publish the name of the machine
            os.ftruncate(self.descriptors[0], 0)
        if self.holder_path:
            self.holder_path.unlink(missing_ok=True)
        self._close()

    @property
    def inherited_descriptors(self) -> Sequence[int]:
        """Descriptors that workers inherit, so that the lock lasts as long as they; none where a file replaces it."""
        return () if self.holder_path else self.descriptors

    def _close(self) -> None:
        for descriptor in self.descriptors:
            os.close(descriptor)

    def _acquire(self, descriptor: int) -> bool:
        """Lock an open file or folder; returns False if the file system has no such locks."""
        deadline = time.monotonic() + SECONDS_TO_WAIT
        while True:
            try:
                if fcntl is None:
                    raise OSError(errno.ENOSYS, "no flock")
                fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError:
                if time.monotonic() >= deadline:
                    holder = _describe_holder(self._read_holder())
                    raise InputError(f"{self.path.parent}: is in use by another run ({holder})") from None
                time.sleep(0.1)
            except OSError as error:
                if error.errno not in UNSUPPORTED:
                    raise StorageError(f"{self.path}: cannot be locked: {error.strerror}") from error
                return False
            else:
                return True

    def _create_holder_file(self) -> None:
        """Create a file in place of a lock; one that exists is replaced only if its process, of this host, is gone."""
        path = self.path.with_name(HOLDER_NAME)
        for _ in range(2):
            try:
                with storage_errors(path), path.open("x", encoding="utf-8") as file:
                    json.dump(_this_process(), file)
            except StorageError as error:
                if not isinstance(error.__cause__, FileExistsError):
                    raise
                holder = _read_json(path)
                if not _is_gone(holder):
                    raise InputError(
                        f"{self.path.parent}: is in use by another run ({_describe_holder(holder)}); this file system "
                        f"has no locks: if that process is gone, remove {path}"
                    ) from error
                path.unlink(missing_ok=True)
            else:
                self.holder_path = path
                print(f"this file system has no locks; {path.name} keeps other runs out instead", file=sys.stderr)
                return
        raise InputError(f"{self.path.parent}: is in use by another run, which started at the same time")

    def _write_holder(self) -> None:
        with storage_errors(self.path):
            os.ftruncate(self.descriptors[0], 0)
            os.lseek(self.descriptors[0], 0, os.SEEK_SET)  # Windows has no pwrite
            os.write(self.descriptors[0], json.dumps(_this_process()).encode())

    def _read_holder(self) -> Json:
        try:
            os.lseek(self.descriptors[0], 0, os.SEEK_SET)
            found = json.loads(os.read(self.descriptors[0], 4096))
        except (OSError, ValueError, RecursionError):
            return {}
        return found if isinstance(found, dict) else {}


def _this_process() -> Json:
    now = datetime.now(UTC).isoformat(timespec="seconds")
    return {"host": socket.gethostname(), "boot": _boot(), "pid": os.getpid(), "since": now}


def _boot() -> str:
    """Return what identifies the boot of this machine, so that process numbers of an earlier one do not count."""
    path = Path("/proc/sys/kernel/random/boot_id")
    return path.read_text().strip() if path.exists() else ""


def _read_json(path: Path) -> Json:
    try:
        found = json.loads(read_regular(path))
    except (InputError, ValueError, RecursionError):
        return {}
    return found if isinstance(found, dict) else {}


def _is_gone(holder: Json) -> bool:
    """Return whether a holder was a process of this host that has ended."""
    pid = holder.get("pid")
    if holder.get("host") != socket.gethostname() or not isinstance(pid, int):
        return False
    return holder.get("boot") != _boot() or not psutil.pid_exists(pid)


def _describe_holder(holder: Json) -> str:
    if not {"pid", "host", "since"} <= set(holder):
        return "unknown process"
    return f"process {holder['pid']} on {holder['host']}, since {holder['since']}"
