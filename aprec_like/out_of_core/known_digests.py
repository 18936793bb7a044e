"""Digests of large files, remembered while a file has the same size and times, so that it is not read again."""

from __future__ import annotations

import contextlib
import hashlib
import json
from pathlib import Path

from aprec_like.files import StorageError, atomic_write, cache_dir, sha256_of

MIN_BYTES = 64 << 20
"""Smaller files are read whenever their digest is needed."""


def known_sha256(path: Path) -> str:
    """Return the sha256 of a file; that of a large file is remembered while size, times and place stay the same."""
    known = recall_digest(path)
    if known is None:
        known = sha256_of(path)
        remember_digest(path, known)
    return known


def recall_digest(path: Path) -> str | None:
    """Return the digest that was remembered for a file, `None` if there is none or the file may have changed."""
    try:
        stored = json.loads(_memory_of(path).read_text())
        return str(stored["digest"]) if stored["state"] == _state(path) else None
    except (OSError, ValueError, KeyError, TypeError):
        return None


def remember_digest(path: Path, digest: str) -> None:
    """Remember the digest of a large file."""
    if path.stat().st_size >= MIN_BYTES:
        with contextlib.suppress(StorageError), atomic_write(_memory_of(path)) as part:
            part.write_text(json.dumps({"state": _state(path), "digest": digest}))


def _state(path: Path) -> list[int]:
    """Return what changes with the content of a file; nobody can set the time of the last change (ctime) back."""
    found = path.stat()
    return [found.st_size, found.st_mtime_ns, found.st_ctime_ns, found.st_ino, found.st_dev]


def _memory_of(path: Path) -> Path:
    return cache_dir() / "digests" / f"{hashlib.sha256(str(path.resolve()).encode()).hexdigest()}.json"
