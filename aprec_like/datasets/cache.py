"""Cache of loaded interactions as NumPy arrays, which makes the second load of a dataset faster.

The name of a cache file is a digest of everything that its content depends on: the bytes of the source file (or the
version of NumPy, for simulated data), the settings of the dataset, and the code that reads or simulates it. Outdated
files are therefore never read. A cache file begins with the sha256 of the rest, which is verified before anything of it
is used; a damaged file is replaced.
"""

from __future__ import annotations

import contextlib
import hashlib
from collections.abc import Callable, Mapping
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np

from aprec_like import interactions as interactions_module
from aprec_like.datasets.download import cache_dir
from aprec_like.datasets.local_files import reading
from aprec_like.errors import InputError
from aprec_like.files import StorageError, atomic_write, sha256_of
from aprec_like.interactions import Interactions
from aprec_like.types import Array

COLUMN_FIELDS = ("user_columns", "item_columns")
TEXT_SUFFIX, LENGTHS_SUFFIX = "/text", "/lengths"
DIGEST_BYTES = 32


def load_cached(source: Path, settings: object, read: Callable[[], Interactions]) -> Interactions:
    """Return the interactions that `read` reads from `source` with the dataset's `settings`, cached."""
    try:
        digest = sha256_of(source)
    except OSError as error:
        raise InputError(f"{source}: cannot be read: {error.strerror}") from error

    def read_safely() -> Interactions:
        with reading(source):
            return read()

    return _load_or_make(f"{digest} {settings!r}", read_safely)


def simulate_cached(settings: object, simulate: Callable[[], Interactions]) -> Interactions:
    """Return the interactions that `simulate` samples with the dataset's `settings`, cached.

    The key includes the version of NumPy: another one may sample other numbers from the same seed.
    """
    return _load_or_make(f"NumPy {np.__version__} {settings!r}", simulate)


def _load_or_make(origin: str, make: Callable[[], Interactions]) -> Interactions:
    """Load the interactions of an origin from the cache, or make and store them."""
    key = hashlib.sha256(f"{origin} {_code_digest()}".encode()).hexdigest()
    path = cache_dir() / "read" / f"{key}.npz"
    with contextlib.suppress(Exception):  # whatever is wrong with a cache file, its content can be made again
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
        stored |= _encode_texts(name, array) if array.dtype == object else {name: array}
    with atomic_write(path) as part, part.open("w+b") as file:
        file.write(bytes(DIGEST_BYTES))
        np.savez(file, allow_pickle=False, **stored)
        file.seek(DIGEST_BYTES)
        digest = hashlib.file_digest(file, "sha256").digest()
        file.seek(0)
        file.write(digest)


def _load(path: Path) -> Interactions:
    """Load a cache file; raises an exception of any kind if it is damaged."""
    with path.open("rb") as file:
        digest = file.read(DIGEST_BYTES)
        if hashlib.file_digest(file, "sha256").digest() != digest:
            raise ValueError("the checksum does not match the content")
        file.seek(DIGEST_BYTES)
        with np.load(file, allow_pickle=False) as stored:
            arrays = {name: stored[name] for name in stored.files}
    fields: dict[str, Any] = {name: {} for name in COLUMN_FIELDS}
    for name, array in arrays.items():
        if name.endswith(LENGTHS_SUFFIX):
            continue
        is_text, plain = name.endswith(TEXT_SUFFIX), name.removesuffix(TEXT_SUFFIX)
        value = _decode_texts(array, arrays[plain + LENGTHS_SUFFIX]) if is_text else array
        field, _, column = plain.partition("/")
        if column:
            fields[field][column] = value
        else:
            fields[field] = value
    return Interactions(**fields)


def _encode_texts(name: str, texts: Array) -> dict[str, Array]:
    """Encode strings as one array of bytes and one of their lengths, in bytes; NumPy would pickle them."""
    if wrong := [text for text in texts if not isinstance(text, str)]:
        raise TypeError(f"An array of objects must contain strings to be cached. Received: {wrong[0]!r}")
    encoded = [text.encode("utf-8", "surrogatepass") for text in texts]
    return {
        name + TEXT_SUFFIX: np.frombuffer(b"".join(encoded), np.uint8),
        name + LENGTHS_SUFFIX: np.array([len(text) for text in encoded], np.int64),
    }


def _decode_texts(data: Array, lengths: Array) -> Array:
    content, ends = data.tobytes(), np.cumsum(lengths).tolist()
    texts = np.empty(len(lengths), object)
    texts[:] = [
        content[start:end].decode("utf-8", "surrogatepass") for start, end in zip([0, *ends], ends, strict=False)
    ]
    return texts


def code_files() -> list[Path]:
    """Return the source files that the content of cache files depends on."""
    return [Path(interactions_module.__file__), *sorted(Path(__file__).parent.rglob("*.py"))]


@cache
def _code_digest() -> str:
    return hashlib.sha256(b"".join(file.read_bytes() for file in code_files())).hexdigest()
