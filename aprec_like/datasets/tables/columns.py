"""Conversion of the columns of a table, chunk by chunk: ids of any type, timestamps as numbers or dates."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.compute as pc

from aprec_like.errors import first_line
from aprec_like.types import Array

WHOLE_NUMBER = r"^(0|-?[1-9][0-9]{0,17})$"
"""Strings that can be converted to whole numbers and back without change; `007` cannot."""

TIME_UNITS = {"s": 1, "ms": 1_000, "us": 1_000_000, "ns": 1_000_000_000}
"""Units of timestamps, with how many of them make a second."""

MAX_SECONDS = 1e11
"""Timestamps above, beyond the year 5000 as seconds, are in a smaller unit."""

TIME_NAMES = ("timestamp", "time", "ts", "date", "datetime", "event_time", "created_at", "unixreviewtime")
"""Lower-case names of columns that hold timestamps."""


@dataclass(frozen=True)
class Columns:
    """Names of the columns of a table.

    Args:
        user: column of user ids.
        item: column of item ids.
        timestamp: column of timestamps, in seconds or as ISO 8601 dates; `None` if the rows are in time order.
        rating: column of ratings; `None` if there are none.
        time_unit: unit of timestamps that are numbers, a key of `TIME_UNITS`.
    """

    user: str
    item: str
    timestamp: str | None = None
    rating: str | None = None
    time_unit: str = "s"

    @property
    def names(self) -> list[str]:
        """Names of the columns that are not `None`."""
        return [name for name in (self.user, self.item, self.timestamp, self.rating) if name is not None]


def unused_time(columns: Columns, names: Sequence[str]) -> str | None:
    """Return the first of the table's columns that holds timestamps by its name, if none was named."""
    if columns.timestamp is not None:
        return None
    return next((name for name in names if name.lower() in TIME_NAMES and name not in columns.names), None)


class IdColumn:
    """Column of ids: whole numbers if all are such, else strings, so that they come back exactly.

    Args:
        name: name of the column.
        types: its types in all files.

    Attributes:
        type: type of the converted ids.
        is_whole: whether all ids so far, where they are strings, can be converted to whole numbers and back.
    """

    def __init__(self, name: str, types: Iterable[pa.DataType]) -> None:
        plain = [each.value_type if pa.types.is_dictionary(each) else each for each in types]
        is_integer = all(map(pa.types.is_integer, plain))
        self.name = name
        self.type = (pa.uint64() if pa.uint64() in plain else pa.int64()) if is_integer else pa.string()
        self.is_whole = True

    @property
    def is_text(self) -> bool:
        """Whether the ids are strings that are not all whole numbers."""
        return bool(pa.types.is_string(self.type)) and not self.is_whole

    def convert(self, values: pa.ChunkedArray) -> pa.ChunkedArray:
        """Convert a chunk; missing ids, among them NaN and empty strings, become null.

        Raises `ValueError` for types that are no ids.
        """
        if pa.types.is_dictionary(values.type):
            values = values.cast(values.type.value_type)
        if pa.types.is_integer(self.type):
            return values.cast(self.type)
        if pa.types.is_floating(values.type):
            values = pc.if_else(pc.is_finite(values), values, None)
        if pa.types.is_nested(values.type):
            raise ValueError(f"ids must be numbers or texts. Received: a column of the type {values.type}")
        try:
            texts = values.cast(pa.string())
        except pa.ArrowException as error:
            raise ValueError(f"ids must be numbers or texts. Received: {values.type}: {first_line(error)}") from error
        texts = pc.if_else(pc.equal(texts, ""), None, texts)
        if self.is_whole and texts.null_count == 0:
            self.is_whole = bool(pc.all(pc.match_substring_regex(texts, WHOLE_NUMBER)).as_py())
        return texts


class TimeColumn:
    """Column of timestamps: all numbers of one unit, or all dates.

    Attributes:
        is_whole: whether all timestamps so far are whole numbers of seconds.
    """

    def __init__(self, name: str, unit: str) -> None:
        self.name = name
        self.is_whole = unit == "s"
        self._unit = unit
        self._is_number: bool | None = None

    def convert(self, values: pa.ChunkedArray) -> Array:
        """Convert a chunk to float64 seconds; what is no timestamp, or no number among numbers, becomes NaN.

        Raises `ValueError` for types that are no timestamps, and for numbers of a smaller unit than seconds.
        """
        times, is_number = _as_seconds(values)
        if self._is_number is None:
            self._is_number = is_number
        if is_number != self._is_number:
            return np.where(np.isnan(times), 0.0, np.nan) if is_number else np.full(len(times), np.nan)
        if not is_number:
            self.is_whole = False
            return times
        if self._unit == "s" and not np.isnan(times).any():
            _check_is_seconds(times)
            self.is_whole = bool(self.is_whole and (times == np.rint(times)).all() and np.abs(times).max() < 2**53)
        return times / TIME_UNITS[self._unit]


class RatingColumn:
    """Column of ratings, which are numbers."""

    def __init__(self, name: str) -> None:
        self.name = name

    def convert(self, values: pa.ChunkedArray) -> Array:
        """Convert a chunk to float64; what is no finite number becomes NaN."""
        return _as_numbers(values)


def _check_is_seconds(times: Array) -> None:
    is_beyond = np.abs(times) >= MAX_SECONDS
    if not is_beyond.any():
        return
    first, size = times[is_beyond][0], float(np.median(np.abs(times[is_beyond])))
    year = 1970 + first / (365.2425 * 86_400)
    received = f"Received: {first:.15g} (about the year {year:,.0f})"
    if not is_beyond.all():
        raise ValueError(f"must be in seconds. {received} beside {times[~is_beyond][0]:.15g}: use one unit for all")
    likely = next((name for name, factor in TIME_UNITS.items() if size / factor < MAX_SECONDS), "ns")
    raise ValueError(f"must be in seconds. {received}; name the unit: time_unit={likely!r}")


def _as_seconds(values: pa.ChunkedArray) -> tuple[Array, bool]:
    """Convert timestamps to float64, and return whether they are numbers.

    Numbers stay, dates (in UTC by default) become seconds since 1970, others become NaN.
    """
    if pa.types.is_date(values.type) or pa.types.is_timestamp(values.type):
        return _dates_as_seconds(values), False
    if pa.types.is_temporal(values.type) or pa.types.is_nested(values.type) or pa.types.is_binary(values.type):
        raise ValueError(f"timestamps must be numbers or dates. Received: a column of the type {values.type}")
    numbers = _as_numbers(values)
    if not np.isnan(numbers).all():
        return numbers, True
    times = pd.to_datetime(values.cast(pa.string()).to_pandas(), utc=True, errors="coerce", format="ISO8601")
    epoch = pd.Timestamp(0, tz="UTC").as_unit(times.dt.unit)  # in nanoseconds, years before 1678 have no number
    return ((times - epoch) / pd.Timedelta(seconds=1)).to_numpy(np.float64), False


def _dates_as_seconds(dates: pa.ChunkedArray) -> Array:
    """Convert dates of any year to seconds; missing ones become NaN."""
    unit = dates.type.unit if pa.types.is_timestamp(dates.type) else "s"
    per_second = TIME_UNITS[unit]
    counts = dates.cast(pa.timestamp(unit)).cast(pa.int64())
    return counts.to_pandas().to_numpy(np.float64, na_value=np.nan) / per_second


def _as_numbers(values: pa.ChunkedArray) -> Array:
    """Convert values to float64; values that are not finite numbers become NaN."""
    try:
        numbers = pd.to_numeric(values.to_pandas(), errors="coerce").to_numpy(np.float64, na_value=np.nan)
    except (TypeError, OverflowError, pa.ArrowException) as error:
        raise ValueError(f"must be numbers. Received: a column of the type {values.type}") from error
    return np.where(np.isfinite(numbers), numbers, np.nan)
