"""Staging of tables: their rows, read in chunks, checked and converted, as one table of a database."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path

import duckdb
import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from aprec_like.datasets.format_hints import header_hint
from aprec_like.datasets.tables.columns import Columns, IdColumn, RatingColumn, TimeColumn, unused_time
from aprec_like.datasets.tables.progress import RowProgress
from aprec_like.datasets.tables.sources import TableSource
from aprec_like.errors import InputError, first_line
from aprec_like.types import Array


class StagedTable:
    """The rows of all sources, staged in the table `staged` of a database.

    Columns of `staged`: `number` of the row, `user`, `item`, and where they exist `time`, `rating` and `unused_time`.
    """

    def __init__(self, sources: Sequence[TableSource], columns: Columns) -> None:
        self.sources = sources
        all_names = [source.column_names() for source in sources]
        for source, names in zip(sources, all_names, strict=True):
            _check_columns(source.path, columns, names)
        unused = unused_time(columns, all_names[0])
        self.user, self.item = (
            IdColumn(name, [source.types([name])[0] for source in sources]) for name in (columns.user, columns.item)
        )
        self.time = TimeColumn(columns.timestamp, columns.time_unit) if columns.timestamp else None
        self.rating = RatingColumn(columns.rating) if columns.rating else None
        # The order of an unused column of timestamps is checked, whatever their unit.
        self.unused_time = TimeColumn(unused, "ns") if unused and all(unused in names for names in all_names) else None
        self.num_rows = 0
        self._starts: list[int] = []

    @property
    def ids(self) -> Mapping[str, IdColumn]:
        """The columns of ids by their name in `staged`."""
        return {"user": self.user, "item": self.item}

    @property
    def numbers(self) -> Mapping[str, TimeColumn | RatingColumn]:
        """The columns of numbers by their name in `staged`."""
        columns = {"time": self.time, "rating": self.rating, "unused_time": self.unused_time}
        return {name: column for name, column in columns.items() if column is not None}

    def location(self, row: int) -> str:
        """Return file and line of a row of `staged`."""
        number = int(np.searchsorted(self._starts, row, side="right")) - 1
        return self.sources[number].location(row - self._starts[number])

    def stage(self, connection: duckdb.DuckDBPyConnection) -> None:
        """Read, check and convert all rows."""
        ids = ", ".join(f"{name} {_SQL_TYPES[column.type]}" for name, column in self.ids.items())
        numbers = "".join(f", {name} DOUBLE" for name in self.numbers)
        connection.execute(f"CREATE TABLE staged (number BIGINT, {ids}{numbers})")
        names = [column.name for column in (*self.ids.values(), *self.numbers.values())]
        with RowProgress("reading", len(self.sources)) as progress:
            for source in self.sources:
                self._starts.append(self.num_rows)
                for chunk in source.chunks(names):
                    connection.register("chunk", self._convert(chunk))
                    connection.execute("INSERT INTO staged SELECT * FROM chunk")
                    self.num_rows += len(chunk)
                    progress.update(self.num_rows, len(self._starts))
        if self.num_rows == 0:
            raise InputError(f"{self.sources[0].path}: has no interactions")

    def _convert(self, chunk: pa.Table) -> pa.Table:
        converted: dict[str, object] = {"number": self.num_rows + np.arange(len(chunk))}
        if self.time:
            converted["time"] = self._convert_numbers(self.time, chunk, "a number or an ISO 8601 date")
        for name, column in self.ids.items():
            converted[name] = self._convert_column(column, chunk)
            self._check_is_valid(column.name, chunk, pc.is_null(converted[name]).to_numpy(), "an id")
        if self.rating:
            converted["rating"] = self._convert_numbers(self.rating, chunk, "a number")
        if self.unused_time:
            converted["unused_time"] = self._convert_unused(self.unused_time, chunk)
        order = ["number", *self.ids, *self.numbers]
        return pa.table({name: converted[name] for name in order})

    def _convert_column(self, column: IdColumn | TimeColumn | RatingColumn, chunk: pa.Table) -> object:
        try:
            return column.convert(chunk[column.name])
        except (ValueError, TypeError, OverflowError, pa.ArrowException) as error:
            raise InputError(f"{self.location(self.num_rows)}: {column.name}: {first_line(error)}") from error

    def _convert_numbers(self, column: TimeColumn | RatingColumn, chunk: pa.Table, expected: str) -> Array:
        numbers = np.asarray(self._convert_column(column, chunk))
        self._check_is_valid(column.name, chunk, np.isnan(numbers), expected)
        return numbers

    def _check_is_valid(self, name: str, chunk: pa.Table, is_wrong: Array, expected: str) -> None:
        if is_wrong.any():
            row = int(np.argmax(is_wrong))
            place, received = self.location(self.num_rows + row), chunk[name][row].as_py()
            raise InputError(f"{place}: {name} must be {expected}. Received: {received!r}")

    def _convert_unused(self, column: TimeColumn, chunk: pa.Table) -> Array:
        try:
            return column.convert(chunk[column.name])
        except ValueError:
            return np.full(len(chunk), np.nan)  # no timestamps after all


_SQL_TYPES = {pa.int64(): "BIGINT", pa.uint64(): "UBIGINT", pa.string(): "VARCHAR"}


def _check_columns(path: Path, columns: Columns, names: list[str]) -> None:
    for name in columns.names:
        if names.count(name) != 1:
            problem = "has no column" if name not in names else "has more than one column"
            raise InputError(f"{path}: {problem} {name!r}; it has {', '.join(names)}{header_hint(path, names)}")
