"""Interactions once read or drawn, kept as arrays: the second load takes a fraction of the first.

A cache file is named by everything that its content depends on (the bytes of the source, or the library that draws; the
dataset's settings; and the code that reads or draws), so it never has to be told apart from an old one. Zip's checksums
show damage; what is damaged, or can't be written, is made again.
"""

from __future__ import annotations

import contextlib
import hashlib
import tempfile
import zipfile
from collections.abc import Callable, Mapping
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np

from aprec_like import interactions as interactions_module
from aprec_like.datasets.download import cache_dir
from aprec_like.errors import InputError
from aprec_like.files import sha256_of
from aprec_like.interactions import Interactions
from aprec_like.types import Array

COLUMN_FIELDS = ("user_columns", "item_columns")


def load_cached(source: Path, settings: object, read: Callable[[], Interactions]) -> Interactions:
    """What `read` makes of the file `source` with a dataset's `settings`, from the cache if it is there."""
    try:
        digest = sha256_of(source)
    except OSError as error:
        raise InputError(f"{source}: cannot be read: {error.strerror}") from error
    return _kept(f"{digest} {settings!r}", read)


def draw_cached(settings: object, draw: Callable[[], Interactions]) -> Interactions:
    """What `draw` draws with a dataset's `settings`, from the cache if it is there.

    NumPy's version is part of the name: another one may draw other numbers from the same seed.
    """
    return _kept(f"NumPy {np.__version__} {settings!r}", draw)


def _kept(origin: str, make: Callable[[], Interactions]) -> Interactions:
    key = hashlib.sha256(f"{origin} {_digest_of_code()}".encode()).hexdigest()
    path = cache_dir() / "read" / f"{key}.npz"
    with contextlib.suppress(OSError, ValueError, KeyError, EOFError, zipfile.BadZipFile):
        return _load(path)
    interactions = make()
    with contextlib.suppress(OSError):
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
    packed: dict[str, Array] = {}
    for name, array in arrays.items():
        packed |= {f"{name}/text": _packed(array)} if array.dtype == object else {name: array}
    path.parent.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=path.parent) as folder:
        part = Path(folder) / path.name
        np.savez(part, allow_pickle=False, **packed)
        part.replace(path)


def _load(path: Path) -> Interactions:
    fields: dict[str, Any] = {name: {} for name in COLUMN_FIELDS}
    with np.load(path, allow_pickle=False) as stored:
        for name in stored.files:
            is_text = name.endswith("/text")
            array = _unpacked(stored[name]) if is_text else stored[name]
            field, _, column = name.removesuffix("/text").partition("/")
            if column:
                fields[field][column] = array
            else:
                fields[field] = array
    return Interactions(**fields)


def _packed(texts: Array) -> Array:
    """Texts as one array of bytes, NUL after each; NumPy itself would pickle them. No id or title holds a NUL."""
    if wrong := [text for text in texts if not isinstance(text, str)]:
        raise TypeError(f"An array of objects must hold texts, to be the same when it is read. Received: {wrong[0]!r}")
    return np.frombuffer("\0".join([*texts, ""]).encode(), np.uint8)


def _unpacked(data: Array) -> Array:
    return np.array(data.tobytes().decode().split("\0")[:-1], object)


@cache
def _digest_of_code() -> str:
    files = [Path(interactions_module.__file__), *sorted(Path(__file__).parent.glob("*.py"))]
    return hashlib.sha256(b"".join(file.read_bytes() for file in files)).hexdigest()
