"""Large arrays: written chunk by chunk, in memory while small, else in files that are mapped into memory.

The files have no name in their folder, so the system removes them with the process, however it ends. Pages of mapped
files are not counted against the memory of a process once they are released; they are read again when needed.
"""

from __future__ import annotations

import hashlib
import mmap
import tempfile
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import IO

import numpy as np
from numpy.typing import DTypeLike

from aprec_like.files import storage_errors
from aprec_like.out_of_core.scratch import scratch_root
from aprec_like.types import Array

MAX_IN_MEMORY = 64 << 20
"""Bytes of the largest array that stays in memory."""

CHUNK = 1 << 22
"""Elements that are processed at once."""


def slices(length: int, size: int = CHUNK) -> Iterator[slice]:
    """Yield consecutive slices of at most `size` elements that cover `length` elements."""
    for start in range(0, length, size):
        yield slice(start, min(start + size, length))


class ArrayWriter:
    """Writer of a one-dimensional array of unknown length.

    Example:
        >>> writer = ArrayWriter(np.int32)
        >>> writer.append(np.array([1, 2]))
        >>> writer.append(np.array([3]))
        >>> writer.finish()
        array([1, 2, 3], dtype=int32)
    """

    def __init__(self, dtype: DTypeLike) -> None:
        self.dtype = np.dtype(dtype)
        self.length = 0
        self._chunks: list[Array] = []
        self._file: IO[bytes] | None = None
        self._folder = Path()

    def append(self, values: Array) -> None:
        """Append values, converted to the dtype of the array."""
        self._chunks.append(np.array(values, self.dtype))
        self.length += len(values)
        if self._file is None and self.length * self.dtype.itemsize > MAX_IN_MEMORY:
            self._file, self._folder = _open_unnamed()
        if self._file is not None:
            with storage_errors(self._folder):
                for chunk in self._chunks:
                    self._file.write(chunk.data)
            self._chunks.clear()

    def finish(self) -> Array:
        """Return the array."""
        if self._file is None:
            return np.concatenate([np.empty(0, self.dtype), *self._chunks])
        with storage_errors(self._folder):
            self._file.flush()
        return np.asarray(np.memmap(self._file, self.dtype, "r+", shape=(self.length,)))


def empty_array(shape: tuple[int, ...], dtype: DTypeLike) -> Array:
    """Return an array of undefined content, in a mapped file if it is large."""
    size = int(np.prod(shape)) * np.dtype(dtype).itemsize
    if size <= MAX_IN_MEMORY:
        return np.empty(shape, dtype)
    file, folder = _open_unnamed()
    with storage_errors(folder):
        file.truncate(size)
    return np.asarray(np.memmap(file, dtype, "r+", shape=shape))


def stack_arrays(rows: Sequence[Array]) -> Array:
    """Return arrays of equal length as the rows of one, in a mapped file if it is large; one array is not copied."""
    if len(rows) == 1:
        return rows[0][None]
    stacked = empty_array((len(rows), len(rows[0])), np.result_type(*rows))
    for number, row in enumerate(rows):
        stacked[number] = row
    release(stacked, *rows)
    return stacked


def map_file(file: IO[bytes], dtype: DTypeLike, shape: tuple[int, ...], start: int) -> Array:
    """Return an array in an open file, mapped if it is large; changes of it do not reach the file."""
    if np.prod(shape) * np.dtype(dtype).itemsize <= MAX_IN_MEMORY:
        file.seek(start)
        return np.fromfile(file, dtype, int(np.prod(shape))).reshape(shape)
    return np.asarray(np.memmap(file, dtype, "c", start, shape))


def map_array(array: Array, function: Callable[[Array], Array], dtype: DTypeLike) -> Array:
    """Return `function` of an array, which is called with one chunk after another."""
    writer = ArrayWriter(dtype)
    for chunk in slices(len(array)):
        writer.append(function(array[chunk]))
        release(array)
    return writer.finish()


def take(array: Array, positions: Array) -> Array:
    """Return the elements of an array at (n,) positions; pages of a mapped array are released after each chunk."""
    if len(positions) > CHUNK:
        return map_array(positions, lambda some: take(array, some), array.dtype)
    taken = array[positions]
    release(array)
    return taken


def release(*arrays: Array | None) -> None:
    """Tell the system that the pages of mapped arrays are not needed now; has no effect on other arrays."""
    for array in arrays:
        base: object = array
        while isinstance(base, np.ndarray):
            if isinstance(base, np.memmap) and (mapped := getattr(base, "_mmap", None)) is not None:
                mapped.madvise(mmap.MADV_DONTNEED)
                break
            base = base.base


def select_kth(array: Array, k: int) -> np.number:
    """Return the k-th smallest element, from 0, of an array of int64 or float64 without copying the array.

    Four passes count the elements by 16 bits each, from the highest.

    Example:
        >>> select_kth(np.array([2.5, -1.0, 7.0]), 1)
        np.float64(2.5)
    """
    prefix, mask = np.uint64(0), np.uint64(0)
    for shift in (48, 32, 16, 0):
        counts = np.zeros(1 << 16, np.int64)
        for chunk in slices(len(array)):
            keys = _ordered_keys(array[chunk])
            keys = keys[(keys & mask) == prefix]
            counts += np.bincount(((keys >> np.uint64(shift)) & np.uint64(0xFFFF)).astype(np.int64), minlength=1 << 16)
            release(array)
        ends = np.cumsum(counts)
        digit = int(np.searchsorted(ends, k, side="right"))
        k -= int(ends[digit] - counts[digit])
        prefix |= np.uint64(digit) << np.uint64(shift)
        mask |= np.uint64(0xFFFF) << np.uint64(shift)
    for chunk in slices(len(array)):
        found = np.flatnonzero(_ordered_keys(array[chunk]) == prefix)
        if len(found):
            return array[chunk][found[0]]
    raise ValueError(f"select_kth needs k below the number of elements. Received: {k} of {len(array)}")


def digest_arrays(*arrays: Array) -> str:
    """Return the sha256 of integer arrays, independent of their dtype and of the byte order of the machine."""
    sha256 = hashlib.sha256()
    for array in arrays:
        sha256.update(np.array([array.size], "<i8").tobytes())
        for chunk in slices(len(array)):
            sha256.update(np.ascontiguousarray(array[chunk], "<i8").data)
            release(array)
    return sha256.hexdigest()


def _ordered_keys(values: Array) -> Array:
    """Return unsigned numbers in the order of the values."""
    if values.dtype != np.float64:
        return values.astype(np.int64).view(np.uint64) ^ np.uint64(1 << 63)
    bits = (np.asarray(values) + 0.0).view(np.int64)  # -0.0 becomes 0.0
    return np.where(bits < 0, ~bits, bits ^ np.int64(-(1 << 63))).view(np.uint64)


def _open_unnamed() -> tuple[IO[bytes], Path]:
    """Open a file without a name in the scratch folder."""
    folder = scratch_root()
    with storage_errors(folder):
        return tempfile.TemporaryFile(dir=folder), folder
