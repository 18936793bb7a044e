"""File of named arrays that are mapped into memory, verified before they are used.

Layout: the sha256 of the rest, the length of the header in 8 bytes, the header (JSON: dtype, shape and start of every
array), then the arrays, each at a multiple of 64 bytes. Strings are stored as UTF-8 with their offsets.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterator, Mapping
from pathlib import Path

import numpy as np

from aprec_like.files import atomic_write
from aprec_like.out_of_core.arrays import map_file, release, slices
from aprec_like.out_of_core.known_digests import recall_digest, remember_digest
from aprec_like.out_of_core.strings import Ids, StringArray
from aprec_like.types import Array

ALIGNMENT = 64
"""Of the start of an array in its file, which TensorFlow needs to share its memory."""
DIGEST_BYTES = 32
TEXT_SUFFIX, OFFSETS_SUFFIX = "/text", "/offsets"
CHUNK_BYTES = 1 << 24


def save_arrays(path: Path, arrays: Mapping[str, Ids]) -> None:
    """Write named arrays of numbers or strings to a file, atomically; raises `StorageError`."""
    stored = _encode(arrays)
    header = _header(stored)
    with atomic_write(path) as part, part.open("w+b") as file:
        sha256 = hashlib.sha256()
        file.write(bytes(DIGEST_BYTES))
        for piece in _pieces(header, stored):
            sha256.update(piece)
            file.write(piece)
        file.seek(0)
        file.write(sha256.digest())
        file.flush()
    remember_digest(path, sha256.hexdigest())


def digest_named(arrays: Mapping[str, Ids]) -> str:
    """Return the sha256 of names and contents of arrays, that which `save_arrays` writes."""
    stored, sha256 = _encode(arrays), hashlib.sha256()
    for piece in _pieces(_header(stored), stored):
        sha256.update(piece)
    return sha256.hexdigest()


def load_arrays(path: Path) -> dict[str, Ids]:
    """Map the arrays of a file; raises an exception of any kind if it is damaged."""
    with path.open("rb") as file:
        expected = file.read(DIGEST_BYTES).hex()
        if recall_digest(path) != expected:
            if hashlib.file_digest(file, "sha256").hexdigest() != expected:
                raise ValueError("the checksum does not match the content")
            remember_digest(path, expected)
        file.seek(DIGEST_BYTES)
        length = int.from_bytes(file.read(8), "little")
        header = json.loads(file.read(length))
        arrays = {
            name: map_file(file, np.dtype(dtype), tuple(shape), start) for name, (dtype, shape, start) in header.items()
        }
    strings = {
        name.removesuffix(TEXT_SUFFIX): StringArray(array, arrays[name.removesuffix(TEXT_SUFFIX) + OFFSETS_SUFFIX])
        for name, array in arrays.items()
        if name.endswith(TEXT_SUFFIX)
    }
    return strings | {name: array for name, array in arrays.items() if not name.endswith((TEXT_SUFFIX, OFFSETS_SUFFIX))}


def _encode(arrays: Mapping[str, Ids]) -> dict[str, Array]:
    """Return the arrays with strings as two arrays, of bytes and of offsets; NumPy would pickle them."""
    stored: dict[str, Array] = {}
    for name, array in arrays.items():
        if isinstance(array, StringArray):
            used = array.without_unused()
            stored |= {name + TEXT_SUFFIX: used.data, name + OFFSETS_SUFFIX: used.offsets}
        elif array.dtype == object:
            stored |= _encode({name: StringArray.from_objects(array)})
        else:
            stored[name] = array
    return stored


def _header(arrays: Mapping[str, Array]) -> bytes:
    """Return the header, padded to the start of the first array."""
    room = _aligned(DIGEST_BYTES + 8 + sum(len(json.dumps(name)) + 128 for name in arrays))
    start, entries = room, {}
    for name, array in arrays.items():
        entries[name] = (array.dtype.str, array.shape, start)
        start = _aligned(start + array.nbytes)
    return json.dumps(entries).encode().ljust(room - DIGEST_BYTES - 8)


def _pieces(header: bytes, arrays: Mapping[str, Array]) -> Iterator[bytes | memoryview]:
    """Yield the content of the file after the checksum."""
    yield len(header).to_bytes(8, "little")
    yield header
    for array in arrays.values():
        flat = np.ascontiguousarray(array).reshape(-1)
        for chunk in slices(len(flat), max(1, CHUNK_BYTES // array.dtype.itemsize)):
            yield flat[chunk].tobytes()
            release(array)
        yield bytes(_aligned(array.nbytes) - array.nbytes)


def _aligned(position: int) -> int:
    return -(-position // ALIGNMENT) * ALIGNMENT
