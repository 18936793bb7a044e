"""Access to files on disk that may be gzipped."""

from __future__ import annotations

import gzip
import io
from pathlib import Path


def find_plain_or_gzipped(path: Path) -> Path | None:
    """Return `path`, or `path` with `.gz` appended, whichever is a file; `None` if neither is."""
    return next((found for found in (path, path.with_name(f"{path.name}.gz")) if found.is_file()), None)


def open_plain_or_gzipped(path: Path) -> io.BufferedReader | gzip.GzipFile:
    """Open a file for reading bytes, decompressed if its name ends in `.gz`."""
    return gzip.open(path) if path.suffix == ".gz" else path.open("rb")
