"""From columns of a table to interactions: ids of any type, times as numbers or dates, nothing missing."""

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
"""Texts that are numbers and nothing more: as a number `007` would be another id."""


@dataclass(frozen=True)
class Columns:
    """The names of a table's columns.

    Args:
        user: ids of users.
        item: ids of items.
        timestamp: seconds, or dates in ISO 8601; `None` where the rows of a user are in time order already.
        rating: numbers; `None` where there are none.
    """

    user: str
    item: str
    timestamp: str | None = None
    rating: str | None = None

    @property
    def names(self) -> list[str]:
        """The columns that are there."""
        return [name for name in (self.user, self.item, self.timestamp, self.rating) if name is not None]


def interactions_from(table: pa.Table, columns: Columns, place_of_row: Callable[[int], str]) -> Interactions:
    """Interactions from a table; `place_of_row` names a row's file and line, for errors."""
    if len(table) == 0:
        raise InputError(f"{place_of_row(0)}: has no interactions")

    def column(name: str, convert: Callable[[pa.ChunkedArray], Array], wanted: str) -> Array:
        values = table[name]
        converted = convert(values)
        is_wrong = pd.isna(converted)
        if is_wrong.any():
            row = int(np.argmax(is_wrong))
            raise InputError(f"{place_of_row(row)}: {name} must be {wanted}. Received: {values[row].as_py()!r}")
        return converted

    time, rating = columns.timestamp, columns.rating
    return Interactions.from_ids(
        users=column(columns.user, _as_ids, "an id"),
        items=column(columns.item, _as_ids, "an id"),
        timestamps=column(time, _as_seconds, "a number or an ISO 8601 date") if time else None,
        ratings=column(rating, _as_numbers, "a number") if rating else None,
    )


def _as_ids(values: pa.ChunkedArray) -> Array:
    """Whole numbers as int64, else texts; `None` where an id is missing."""
    if pa.types.is_integer(values.type) and values.null_count == 0:
        return values.cast(pa.int64(), safe=False).to_numpy()
    texts = values.cast(pa.string())
    if values.null_count == 0 and pc.all(pc.match_substring_regex(texts, WHOLE_NUMBER)).as_py():
        return texts.cast(pa.int64()).to_numpy()
    is_missing = pc.or_kleene(pc.is_null(texts), pc.equal(pc.utf8_trim_whitespace(texts), ""))
    return pc.if_else(is_missing, None, texts).to_numpy().astype(object)


def _as_seconds(values: pa.ChunkedArray) -> Array:
    """Numbers as they are, dates as seconds since 1970 (UTC unless they say otherwise); NaN where it is neither."""
    if pa.types.is_temporal(values.type):
        return _seconds(values.to_pandas())
    numbers = _as_numbers(values)
    if not np.isnan(numbers).all():
        is_whole = np.isfinite(numbers).all() and (numbers == np.rint(numbers)).all()
        return numbers.astype(np.int64) if is_whole and np.abs(numbers).max() < 2**53 else numbers
    return _seconds(values.cast(pa.string()).to_pandas())


def _seconds(dates: pd.Series) -> Array:
    moments = pd.to_datetime(dates, utc=True, errors="coerce", format="ISO8601")
    seconds = (moments - pd.Timestamp(0, tz="UTC")) / pd.Timedelta(seconds=1)
    return seconds.to_numpy(np.float64)


def _as_numbers(values: pa.ChunkedArray) -> Array:
    """Float64; NaN where a value is no finite number."""
    numbers = pd.to_numeric(values.to_pandas(), errors="coerce").to_numpy(np.float64, na_value=np.nan)
    return np.where(np.isfinite(numbers), numbers, np.nan)
