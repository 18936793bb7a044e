"""Conversion of table columns to interactions: ids of any type, timestamps as numbers or dates, no missing values."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.compute as pc

from aprec_like.errors import InputError
from aprec_like.interactions import Interactions
from aprec_like.types import Array

WHOLE_NUMBER = r"^(0|-?[1-9][0-9]{0,17})$"
"""Strings that can be converted to whole numbers and back without change; `007` cannot."""


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
        converted = convert(values)
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
    """Convert ids to int64 if all are whole numbers, else to strings; missing ids become `None`."""
    if pa.types.is_integer(values.type) and values.null_count == 0:
        return values.cast(pa.int64(), safe=False).to_numpy()
    texts = values.cast(pa.string())
    if values.null_count == 0 and pc.all(pc.match_substring_regex(texts, WHOLE_NUMBER)).as_py():
        return texts.cast(pa.int64()).to_numpy()
    is_missing = pc.or_kleene(pc.is_null(texts), pc.equal(pc.utf8_trim_whitespace(texts), ""))
    return pc.if_else(is_missing, None, texts).to_numpy().astype(object)


def _as_seconds(values: pa.ChunkedArray) -> Array:
    """Convert timestamps: numbers stay, dates (in UTC by default) become seconds since 1970, others become NaN."""
    if pa.types.is_temporal(values.type):
        return _dates_as_seconds(values.to_pandas())
    numbers = _as_numbers(values)
    if not np.isnan(numbers).all():
        is_whole = np.isfinite(numbers).all() and (numbers == np.rint(numbers)).all()
        return numbers.astype(np.int64) if is_whole and np.abs(numbers).max() < 2**53 else numbers
    return _dates_as_seconds(values.cast(pa.string()).to_pandas())


def _dates_as_seconds(dates: pd.Series) -> Array:
    times = pd.to_datetime(dates, utc=True, errors="coerce", format="ISO8601")
    seconds = (times - pd.Timestamp(0, tz="UTC")) / pd.Timedelta(seconds=1)
    return seconds.to_numpy(np.float64)


def _as_numbers(values: pa.ChunkedArray) -> Array:
    """Convert values to float64; values that are not finite numbers become NaN."""
    numbers = pd.to_numeric(values.to_pandas(), errors="coerce").to_numpy(np.float64, na_value=np.nan)
    return np.where(np.isfinite(numbers), numbers, np.nan)
