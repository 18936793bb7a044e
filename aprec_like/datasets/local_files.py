"""Access to files on disk: where they are looked for, plain or gzipped, and whether they are text."""

from __future__ import annotations

import gzip
import io
import zlib
from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from pathlib import Path

import psutil

from aprec_like.errors import InputError, first_line

RECIPE_FOLDER: ContextVar[Path | None] = ContextVar("RECIPE_FOLDER", default=None)
"""Folder of the recipe that was loaded last, in which files are looked for too; set when a recipe is loaded."""

MAX_GZIP_RATIO = 1_032
"""Largest factor by which gzip makes data smaller."""
CHUNK_BYTES = 1 << 20
MAX_REASON = 300
"""Number of characters of another library's error that are shown."""

UTF16_MARKS = (b"\xff\xfe", b"\xfe\xff")


def search_folders(data_dir: Path) -> list[Path]:
    """Return where a relative path is looked for: the data folder, beside the recipe, the current folder."""
    beside = RECIPE_FOLDER.get()
    folders = [data_dir, *([] if beside is None else [beside]), Path()]
    return list({folder.resolve(): folder for folder in reversed(folders)}.values())[::-1]


def find_file(path: str, data_dir: Path) -> Path | None:
    """Return the first file of this path, plain or gzipped, in the folders to look in; `None` if there is none."""
    found = (find_plain_or_gzipped(folder / path) for folder in search_folders(data_dir))
    return next((each for each in found if each is not None), None)


def missing_error(path: str, data_dir: Path, kind: str = "file") -> InputError:
    """Return the error of a path that is nowhere, with all places and what to do."""
    places = [Path(path)] if Path(path).is_absolute() else [folder / path for folder in search_folders(data_dir)]
    named = ", ".join(str(place.absolute()) for place in places)
    return InputError(
        f"{path}: there is no such {kind}; looked for {named}{' (or .gz)' if kind == 'file' else ''}; put it beside "
        "the recipe, or name its folder with --data DIR"
    )


def check_is_text(path: Path, remedy: str = "save it as UTF-8") -> None:
    """Refuse a file that is empty, or UTF-16 by its first bytes; `remedy` says what to do about that."""
    try:
        with open_plain_or_gzipped(path) as file:
            start = file.read(2)
    except (OSError, EOFError, zlib.error) as error:
        raise InputError(f"{path}: cannot be read: {getattr(error, 'strerror', None) or error}") from error
    if not start:
        raise InputError(f"{path}: is empty")
    if start in UTF16_MARKS:
        raise InputError(f"{path}: is UTF-16 text; {remedy}")


def find_plain_or_gzipped(path: Path) -> Path | None:
    """Return `path`, or `path` with `.gz` appended, whichever is a file; `None` if neither is."""
    return next((found for found in (path, path.with_name(f"{path.name}.gz")) if found.is_file()), None)


def open_plain_or_gzipped(path: Path) -> io.BufferedReader | gzip.GzipFile:
    """Open a file for reading bytes, decompressed if its name ends in `.gz`."""
    return gzip.open(path) if path.suffix == ".gz" else path.open("rb")


@contextmanager
def reading(path: Path) -> Iterator[None]:
    """Turn whatever goes wrong while a data file is read within the block into an `InputError` of one line.

    A file from outside may make every library that parses it raise anything; readers raise better errors if they can.
    """
    try:
        yield
    except InputError:
        raise
    except MemoryError as error:
        raise InputError(f"{path}: needs more memory than this machine has free") from error
    except Exception as error:
        reason = f"{type(error).__name__}: {first_line(error)}"[:MAX_REASON]
        raise InputError(f"{path}: cannot be read: {reason}") from error


def check_unpacked_size(path: Path) -> None:
    """Refuse a gzipped file whose content does not fit into memory, before anything of it is kept there."""
    limit = psutil.virtual_memory().available
    if path.suffix != ".gz" or path.stat().st_size * MAX_GZIP_RATIO <= limit:
        return
    size = 0
    with gzip.open(path) as file:
        while num_read := len(file.read(CHUNK_BYTES)):
            size += num_read
            if size > limit:
                raise InputError(
                    f"{path}: unpacks to more than {limit / 2**30:.1f} GiB, the free memory of this machine"
                )
