"""Arrays of strings, such as ids and titles, without Python objects: UTF-8 bytes and offsets, mapped if they are large.

A Python string takes about 70 bytes, and millions of them are slow to make. These take their bytes and 8 more, in
files of the scratch or cache folder once they are many. Python strings are made of the elements that are asked for.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, overload

import numpy as np
import pandas as pd
import pyarrow as pa

from aprec_like.out_of_core.arrays import ArrayWriter, map_array, release, slices
from aprec_like.types import Array

CHUNK_STRINGS = 1 << 18
"""Strings that are copied at once."""


@dataclass(frozen=True, eq=False)
class StringArray:
    """One-dimensional array of strings.

    Indexing works as for a NumPy array of objects; rows are not counted from the end. `np.asarray` makes such an array.

    Args:
        data: (bytes,) uint8, the strings as UTF-8.
        offsets: (n + 1,) int64; string i is `data[offsets[i]:offsets[i + 1]]`. The first offset may be above 0.

    Example:
        >>> ids = StringArray.from_objects(np.array(["ann", "bob", "eve"], object))
        >>> ids[1], ids[[2, 0]].tolist()
        ('bob', ['eve', 'ann'])
    """

    data: Array
    offsets: Array

    @classmethod
    def from_objects(cls, strings: Array) -> StringArray:
        """Create the array from Python strings; raises `TypeError` if there is anything else."""
        if wrong := [each for each in strings if not isinstance(each, str)]:
            raise TypeError(f"An array of objects must contain strings to be cached. Received: {wrong[0]!r}")
        encoded = [text.encode("utf-8", "surrogatepass") for text in strings]
        lengths = np.array([len(text) for text in encoded], np.int64)
        return cls(np.frombuffer(b"".join(encoded), np.uint8), np.concatenate([[0], np.cumsum(lengths)]))

    def __len__(self) -> int:
        return len(self.offsets) - 1

    @property
    def shape(self) -> tuple[int]:
        """(n,) of n strings."""
        return (len(self),)

    @overload
    def __getitem__(self, index: int | np.integer[Any]) -> str: ...

    @overload
    def __getitem__(self, index: slice | Array | list[int]) -> StringArray: ...

    def __getitem__(self, index: int | np.integer[Any] | slice | Array | list[int]) -> str | StringArray:
        if isinstance(index, (int, np.integer)):
            start, end = self.offsets[index], self.offsets[index + 1]
            return self.data[start:end].tobytes().decode("utf-8", "surrogatepass")
        if isinstance(index, slice):
            start, stop, step = index.indices(len(self))
            if step != 1:
                raise IndexError(f"StringArray needs slices with a step of 1. Received: {step}")
            return StringArray(self.data, self.offsets[start : max(start, stop) + 1])
        rows = np.asarray(index)
        return self._take(np.flatnonzero(rows) if rows.dtype == bool else rows)

    def _take(self, rows: Array) -> StringArray:
        writer, strings = StringWriter(), self.to_arrow()
        for chunk in slices(len(rows), CHUNK_STRINGS):
            writer.append(strings.take(pa.array(rows[chunk])))
            release(self.data, self.offsets)
        return writer.finish()

    def __iter__(self) -> Iterator[str]:
        return iter(self.tolist())

    def __array__(self, dtype: object = None, copy: bool | None = None) -> Array:
        strings = np.empty(len(self), object)
        strings[:] = self.tolist()
        return strings

    def tolist(self) -> list[str]:
        """Return Python strings."""
        start, end = int(self.offsets[0]), int(self.offsets[-1])
        content, ends = self.data[start:end].tobytes(), (self.offsets - start).tolist()
        return [content[first:last].decode("utf-8", "surrogatepass") for first, last in itertools.pairwise(ends)]

    def without_unused(self) -> StringArray:
        """Return the same strings without bytes before the first and after the last of them."""
        start, end = self.offsets[0], self.offsets[-1]
        return StringArray(self.data[start:end], map_array(self.offsets, lambda offsets: offsets - start, np.int64))

    def to_arrow(self) -> pa.LargeStringArray:
        """Return an Arrow array that shares the memory."""
        offsets, data = (pa.py_buffer(np.ascontiguousarray(each)) for each in (self.offsets, self.data))
        return pa.LargeStringArray.from_buffers(len(self), offsets, data)


class StringWriter:
    """Writer of an array of strings of unknown length."""

    def __init__(self) -> None:
        self._data, self._offsets = ArrayWriter(np.uint8), ArrayWriter(np.int64)
        self._offsets.append(np.zeros(1, np.int64))

    def append(self, strings: pa.Array) -> None:
        """Append an Arrow array of strings without nulls."""
        strings = strings.cast(pa.large_string())
        _, offsets, data = strings.buffers()
        ends = np.frombuffer(offsets, np.int64)[strings.offset : strings.offset + len(strings) + 1]
        self._offsets.append(ends[1:] - ends[0] + self._data.length)
        if data is not None:
            self._data.append(np.frombuffer(data, np.uint8)[ends[0] : ends[-1]])

    def finish(self) -> StringArray:
        """Return the array."""
        return StringArray(self._data.finish(), self._offsets.finish())


Ids = Array | StringArray
"""Ids or other values, one per user or item."""


def to_series(values: Ids) -> pd.Series:
    """Return a column of a table; strings share the memory."""
    return values.to_arrow().to_pandas() if isinstance(values, StringArray) else pd.Series(values)
