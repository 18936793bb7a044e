"""Conversion of table columns to interactions: ids of any type, timestamps as numbers or dates, no missing values."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.compute as pc

from aprec_like.errors import InputError, first_line
from aprec_like.interactions import Interactions
from aprec_like.types import Array

WHOLE_NUMBER = r"^(0|-?[1-9][0-9]{0,17})$"
"""Strings that can be converted to whole numbers and back without change; `007` cannot."""
MAX_INT64 = np.iinfo(np.int64).max
"""Larger whole numbers stay unsigned."""


@dataclass(frozen=True)
class Columns:
    """Names of the columns of a table.

    Args:
        user: column of user ids.
        item: column of item ids.
        timestamp: column of timestamps, in seconds or as ISO 8601 dates; `None` if the rows are in time order.
        rating: column of ratings; `None` if there are none.
    """

    user: str
    item: str
    timestamp: str | None = None
    rating: str | None = None

    @property
    def names(self) -> list[str]:
        """Names of the columns that are not `None`."""
        return [name for name in (self.user, self.item, self.timestamp, self.rating) if name is not None]


def interactions_from(table: pa.Table, columns: Columns, location_of_row: Callable[[int], str]) -> Interactions:
    """Convert a table to interactions; `location_of_row` returns file and line of a row, for errors."""
    if len(table) == 0:
        raise InputError(f"{location_of_row(0)}: has no interactions")

    def column(name: str, convert: Callable[[pa.ChunkedArray], Array], expected: str) -> Array:
        values = table[name]
        try:
            converted = convert(values)
        except ValueError as error:
            raise InputError(f"{location_of_row(0)}: {name}: {first_line(error)}") from error
        is_wrong = pd.isna(converted)
        if is_wrong.any():
            row = int(np.argmax(is_wrong))
            raise InputError(f"{location_of_row(row)}: {name} must be {expected}. Received: {values[row].as_py()!r}")
        return converted

    timestamp, rating = columns.timestamp, columns.rating
    return Interactions.from_ids(
        users=column(columns.user, _as_ids, "an id"),
        items=column(columns.item, _as_ids, "an id"),
        timestamps=column(timestamp, _as_seconds, "a number or an ISO 8601 date") if timestamp else None,
        ratings=column(rating, _as_numbers, "a number") if rating else None,
    )


def _as_ids(values: pa.ChunkedArray) -> Array:
    """Convert ids to whole numbers if all are such, else to strings, so that they come back exactly.

    Missing ids, among them NaN, become `None`. Raises `ValueError` for types that are no ids.
    """
    if pa.types.is_dictionary(values.type):
        values = values.cast(values.type.value_type)
    if pa.types.is_integer(values.type) and values.null_count == 0:
        ids = values.to_numpy()
        return ids.astype(np.int64) if ids.size == 0 or ids.max() <= MAX_INT64 else ids
    if pa.types.is_floating(values.type):
        values = pc.if_else(pc.is_finite(values), values, None)
    if pa.types.is_nested(values.type):
        raise ValueError(f"ids must be numbers or texts. Received: a column of the type {values.type}")
    try:
        texts = values.cast(pa.string())
    except pa.ArrowException as error:
        raise ValueError(f"ids must be numbers or texts. Received: {values.type}: {first_line(error)}") from error
    if values.null_count == 0 and pc.all(pc.match_substring_regex(texts, WHOLE_NUMBER)).as_py():
        return texts.cast(pa.int64()).to_numpy()
    is_missing = pc.or_kleene(pc.is_null(texts), pc.equal(pc.utf8_trim_whitespace(texts), ""))
    return pc.if_else(is_missing, None, texts).to_numpy().astype(object)


def _as_seconds(values: pa.ChunkedArray) -> Array:
    """Convert timestamps: numbers stay, dates (in UTC by default) become seconds since 1970, others become NaN."""
    if pa.types.is_date(values.type) or pa.types.is_timestamp(values.type):
        return _dates_as_seconds(values)
    if pa.types.is_temporal(values.type) or pa.types.is_nested(values.type) or pa.types.is_binary(values.type):
        raise ValueError(f"timestamps must be numbers or dates. Received: a column of the type {values.type}")
    numbers = _as_numbers(values)
    if not np.isnan(numbers).all():
        is_whole = np.isfinite(numbers).all() and (numbers == np.rint(numbers)).all()
        return numbers.astype(np.int64) if is_whole and np.abs(numbers).max() < 2**53 else numbers
    times = pd.to_datetime(values.cast(pa.string()).to_pandas(), utc=True, errors="coerce", format="ISO8601")
    epoch = pd.Timestamp(0, tz="UTC").as_unit(times.dt.unit)  # in nanoseconds, years before 1678 have no number
    return ((times - epoch) / pd.Timedelta(seconds=1)).to_numpy(np.float64)


def _dates_as_seconds(dates: pa.ChunkedArray) -> Array:
    """Convert dates of any year to seconds; missing ones become NaN."""
    unit = dates.type.unit if pa.types.is_timestamp(dates.type) else "s"
    per_second = {"s": 1, "ms": 1_000, "us": 1_000_000, "ns": 1_000_000_000}[unit]
    counts = dates.cast(pa.timestamp(unit)).cast(pa.int64())
    return counts.to_pandas().to_numpy(np.float64, na_value=np.nan) / per_second


def _as_numbers(values: pa.ChunkedArray) -> Array:
    """Convert values to float64; values that are not finite numbers become NaN."""
    try:
        numbers = pd.to_numeric(values.to_pandas(), errors="coerce").to_numpy(np.float64, na_value=np.nan)
    except (TypeError, OverflowError, pa.ArrowException) as error:
        raise ValueError(f"must be numbers. Received: a column of the type {values.type}") from error
    return np.where(np.isfinite(numbers), numbers, np.nan)
