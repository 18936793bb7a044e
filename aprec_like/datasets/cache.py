"""Cache of loaded interactions as NumPy arrays, which makes the second load of a dataset faster.

The name of a cache file is a digest of everything that its content depends on: the bytes of the source file (or the
version of NumPy, for simulated data), the settings of the dataset, and the code that reads or simulates it. Outdated
files are therefore never read. Checksums of the zip format detect damage; a damaged file is replaced.
"""

from __future__ import annotations

import contextlib
import hashlib
import zipfile
from collections.abc import Callable, Mapping
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np

from aprec_like import interactions as interactions_module
from aprec_like.datasets.download import cache_dir
from aprec_like.errors import InputError
from aprec_like.files import StorageError, atomic_write, sha256_of
from aprec_like.interactions import Interactions
from aprec_like.types import Array

COLUMN_FIELDS = ("user_columns", "item_columns")
TEXT_SUFFIX = "/text"


def load_cached(source: Path, settings: object, read: Callable[[], Interactions]) -> Interactions:
    """Return the interactions that `read` reads from `source` with the dataset's `settings`, cached."""
    try:
        digest = sha256_of(source)
    except OSError as error:
        raise InputError(f"{source}: cannot be read: {error.strerror}") from error
    return _load_or_make(f"{digest} {settings!r}", read)


def simulate_cached(settings: object, simulate: Callable[[], Interactions]) -> Interactions:
    """Return the interactions that `simulate` samples with the dataset's `settings`, cached.

    The key includes the version of NumPy: another one may sample other numbers from the same seed.
    """
    return _load_or_make(f"NumPy {np.__version__} {settings!r}", simulate)


def _load_or_make(origin: str, make: Callable[[], Interactions]) -> Interactions:
    """Load the interactions of an origin from the cache, or make and store them."""
    key = hashlib.sha256(f"{origin} {_code_digest()}".encode()).hexdigest()
    path = cache_dir() / "read" / f"{key}.npz"
    with contextlib.suppress(OSError, ValueError, KeyError, EOFError, zipfile.BadZipFile):
        return _load(path)
    interactions = make()
    with contextlib.suppress(StorageError):  # a cache that cannot be written is not needed
        _save(interactions, path)
    return interactions


def _save(interactions: Interactions, path: Path) -> None:
    arrays: dict[str, Array] = {}
    for name in Interactions.__dataclass_fields__:
        value = getattr(interactions, name)
        if isinstance(value, Mapping):
            arrays |= {f"{name}/{column}": array for column, array in value.items()}
        elif value is not None:
            arrays[name] = value
    stored: dict[str, Array] = {}
    for name, array in arrays.items():
        stored |= {f"{name}{TEXT_SUFFIX}": _encode_texts(array)} if array.dtype == object else {name: array}
    with atomic_write(path) as part:
        np.savez(part, allow_pickle=False, **stored)


def _load(path: Path) -> Interactions:
    fields: dict[str, Any] = {name: {} for name in COLUMN_FIELDS}
    with np.load(path, allow_pickle=False) as stored:
        for name in stored.files:
            array = _decode_texts(stored[name]) if name.endswith(TEXT_SUFFIX) else stored[name]
            field, _, column = name.removesuffix(TEXT_SUFFIX).partition("/")
            if column:
                fields[field][column] = array
            else:
                fields[field] = array
    return Interactions(**fields)


def _encode_texts(texts: Array) -> Array:
    """Encode strings as one array of bytes, each followed by NUL, which no id or title contains; NumPy would pickle."""
    if wrong := [text for text in texts if not isinstance(text, str)]:
        raise TypeError(f"An array of objects must contain strings to be cached. Received: {wrong[0]!r}")
    return np.frombuffer("\0".join([*texts, ""]).encode(), np.uint8)


def _decode_texts(data: Array) -> Array:
    return np.array(data.tobytes().decode().split("\0")[:-1], object)


def code_files() -> list[Path]:
    """Return the source files that the content of cache files depends on."""
    return [Path(interactions_module.__file__), *sorted(Path(__file__).parent.rglob("*.py"))]


@cache
def _code_digest() -> str:
    return hashlib.sha256(b"".join(file.read_bytes() for file in code_files())).hexdigest()
