"""Conversion of table columns to interactions: ids of any type, timestamps as numbers or dates, no missing values."""

from __future__ import annotations

from collections.abc import Callable, Sequence
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


def interactions_from(
    table: pa.Table, columns: Columns, location_of_row: Callable[[int], str], ignored_time: str | None = None
) -> Interactions:
    """Convert a table to interactions.

    Args:
        table: with at least the named columns.
        columns: names of the columns.
        location_of_row: returns file and line of a row, for errors.
        ignored_time: a column of timestamps that is not used; rows that contradict it are refused.
    """
    if len(table) == 0:
        raise InputError(f"{location_of_row(0)}: has no interactions")

    def column(name: str, convert: Callable[[pa.ChunkedArray], Array], expected: str) -> Array:
        values = table[name]
        try:
            converted = convert(values)
        except (ValueError, TypeError, OverflowError, pa.ArrowException) as error:
            raise InputError(f"{location_of_row(0)}: {name}: {first_line(error)}") from error
        is_wrong = pd.isna(converted)
        if is_wrong.any():
            row = int(np.argmax(is_wrong))
            raise InputError(f"{location_of_row(row)}: {name} must be {expected}. Received: {values[row].as_py()!r}")
        return converted

    def ids(name: str) -> Array:
        converted = column(name, _as_ids, "an id")
        if (row := _row_of_padded_twin(table[name])) is not None:
            shown = table[name][row].as_py()
            raise InputError(
                f"{location_of_row(row)}: {name} {shown!r} and {shown.strip()!r} differ in white space alone; remove "
                "it from the file"
            )
        return converted

    timestamp, rating = columns.timestamp, columns.rating
    times = column(timestamp, _as_seconds, "a number or an ISO 8601 date") if timestamp else None
    if timestamp and times is not None and _is_number(table[timestamp]):
        times = _in_seconds(times, columns.time_unit, f"{location_of_row(0)}: {timestamp}")
    users = ids(columns.user)
    if ignored_time is not None:
        _check_order(users, table[ignored_time], ignored_time, location_of_row)
    ratings = column(rating, _as_numbers, "a number") if rating else None
    return Interactions.from_ids(users, ids(columns.item), times, ratings)


def _row_of_padded_twin(values: pa.ChunkedArray) -> int | None:
    """Return the first row whose id has white space around it and occurs without it too; `None` if there is none."""
    if not (pa.types.is_string(values.type) or pa.types.is_large_string(values.type)):
        return None
    trimmed = pc.utf8_trim_whitespace(values)
    is_padded = pc.not_equal(trimmed, values)
    if not pc.any(is_padded).as_py():
        return None
    is_twin = pc.and_(is_padded, pc.is_in(trimmed, value_set=pc.unique(values)))
    row = pc.index(is_twin, True).as_py()
    return None if row < 0 else int(row)


def _is_number(values: pa.ChunkedArray) -> bool:
    """Return whether timestamps are numbers rather than dates."""
    return not pa.types.is_temporal(values.type) and not np.isnan(_as_numbers(values)).all()


def _in_seconds(times: Array, unit: str, place: str) -> Array:
    """Convert numbers of a unit to seconds; whole seconds stay whole numbers."""
    if unit == "s" and np.median(np.abs(times)) >= MAX_SECONDS:
        size = float(np.median(np.abs(times)))
        likely = next((name for name, factor in TIME_UNITS.items() if size / factor < MAX_SECONDS), "ns")
        year = 1970 + size / (365.2425 * 86_400)
        raise InputError(
            f"{place} must be in seconds. Received: {times[0]} (about the year {year:,.0f}); name the unit: "
            f"time_unit={likely!r}"
        )
    return times if unit == "s" else times / TIME_UNITS[unit]


def _check_order(users: Array, values: pa.ChunkedArray, name: str, location_of_row: Callable[[int], str]) -> None:
    """Refuse rows that are not in the order of a column of timestamps which was not named."""
    try:
        times = _as_seconds(values)
    except ValueError:
        return  # no timestamps after all
    order = np.argsort(pd.factorize(users)[0], kind="stable")
    is_wrong = (np.diff(times[order]) < 0) & (users[order][1:] == users[order][:-1])
    if is_wrong.any():
        raise InputError(
            f"{location_of_row(int(order[1:][is_wrong].min()))}: is earlier than a row above it of the same user, by "
            f"the column {name!r}, which is not used; name it: timestamp={name!r}"
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
