"""Reading of tables of any size: checked in chunks, then numbered and sorted by DuckDB within the memory budget."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path

import duckdb
import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from aprec_like.datasets.tables.columns import Columns, IdColumn, RatingColumn, TimeColumn, unused_time
from aprec_like.datasets.tables.progress import RowProgress
from aprec_like.datasets.tables.sources import TableSource
from aprec_like.errors import InputError, first_line
from aprec_like.files import StorageError
from aprec_like.interactions import Interactions, offsets_from_lengths
from aprec_like.out_of_core import SCRATCH_VARIABLE, ArrayWriter, memory_budget, scratch_folder
from aprec_like.types import Array

SCRATCH_FACTOR = 3
"""Scratch space in sizes of the unpacked tables: their rows, the sorted rows, and the arrays made of them."""
DATABASE_SHARE = 0.4
"""Of the memory budget; the rest is for Python, TensorFlow, the ids, and the chunks in flight."""
BATCH_ROWS = 1 << 18
"""Sorted rows that are taken from DuckDB at once."""


def read_tables(sources: Sequence[TableSource], columns: Columns) -> Interactions:
    """Read interactions from tables with the same columns, which count as one in their order.

    Users and items are numbered in the order of their ids. The interactions of a user are sorted by timestamp; ties,
    and interactions without timestamps, keep the order of the rows.

    Raises:
        InputError: for a table without these columns, and for the first row that is no interaction.
        StorageError: if the scratch disk is too small.
    """
    table = _Table(sources, columns)
    needed = SCRATCH_FACTOR * sum(source.unpacked_bytes() for source in sources)
    with scratch_folder(needed) as folder, _connect(folder) as connection:
        table.stage(connection)
        users, items = (_number_ids(connection, name, table) for name in ("user", "item"))
        return _sort(connection, table, users, items)


class _Table:
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
            raise InputError(f"{path}: {problem} {name!r}; it has {', '.join(names)}")


@contextmanager
def _connect(folder: Path) -> Iterator[duckdb.DuckDBPyConnection]:
    """Open a database in memory that spills to a folder; raises `StorageError` if the budget or the disk is full."""
    limit = int(DATABASE_SHARE * memory_budget())
    with duckdb.connect(":memory:") as connection:
        connection.execute("SET enable_progress_bar = false")
        connection.execute(f"SET memory_limit = '{limit}B'")
        connection.execute("SET temp_directory = ?", [str(folder)])
        try:
            yield connection
        except (duckdb.OutOfMemoryException, duckdb.IOException) as error:
            raise StorageError(
                f"{folder}: sorting the data failed: {first_line(error)}; make room on this disk, name a folder on "
                f"another with {SCRATCH_VARIABLE}, or raise --memory"
            ) from error


def _id_expression(column: IdColumn, name: str) -> str:
    """Return the SQL of an id: strings that are all whole numbers are numbers."""
    return name if column.is_text or not pa.types.is_string(column.type) else f"{name}::BIGINT"


def _number_ids(connection: duckdb.DuckDBPyConnection, name: str, table: _Table) -> Array:
    """Create the table `<name>_ids` of distinct ids in ascending order, whose row numbers are the numbers of ids.

    Returns:
        The distinct ids.
    """
    column = table.ids[name]
    connection.execute(
        f"CREATE TABLE {name}_ids AS SELECT {_id_expression(column, name)} AS id, count(*) AS count "
        "FROM staged GROUP BY id ORDER BY id"
    )
    ids = connection.sql(f"SELECT id FROM {name}_ids").to_arrow_table()["id"]
    if not column.is_text:
        numbers: Array = ids.to_numpy()
        return numbers.astype(np.int64) if numbers[-1] <= np.iinfo(np.int64).max else numbers
    _check_white_space(connection, name, table, ids)
    return np.asarray(ids.to_numpy(), object)


def _check_white_space(connection: duckdb.DuckDBPyConnection, name: str, table: _Table, ids: pa.ChunkedArray) -> None:
    """Refuse ids of white space alone, and ids that occur with and without white space around them."""
    trimmed = pc.utf8_trim_whitespace(ids)
    is_padded = pc.not_equal(trimmed, ids)
    if not pc.any(is_padded).as_py():
        return
    connection.register("padded", pa.table({"id": ids.filter(is_padded), "trimmed": trimmed.filter(is_padded)}))
    blank = "SELECT id FROM padded WHERE trimmed = ''"
    twins = f"SELECT id FROM padded WHERE trimmed IN (SELECT id FROM {name}_ids)"
    for wrong in (blank, twins):
        found = connection.execute(f"SELECT arg_min({name}, number), min(number) FROM staged WHERE {name} IN ({wrong})")
        shown, row = found.fetchall()[0]
        if row is not None and wrong == blank:
            raise InputError(f"{table.location(row)}: {table.ids[name].name} must be an id. Received: {shown!r}")
        if row is not None:
            raise InputError(
                f"{table.location(row)}: {table.ids[name].name} {shown!r} and {shown.strip()!r} differ in white space "
                "alone; remove it from the file"
            )


def _sort(connection: duckdb.DuckDBPyConnection, table: _Table, users: Array, items: Array) -> Interactions:
    """Return the interactions in the order of users, time and rows."""
    lengths = connection.sql("SELECT count FROM user_ids").fetchnumpy()["count"]
    is_whole = table.time is not None and table.time.is_whole
    dtypes = {"item": np.int32, "time": np.int64 if is_whole else np.float64, "rating": np.float64}
    writers = {name: ArrayWriter(dtype) for name, dtype in dtypes.items() if name in ("item", *table.numbers)}
    order = _OrderCheck(table) if table.unused_time else None
    with RowProgress("sorting", table.num_rows) as progress:
        for batch in _sorted_batches(connection, table):
            for name, writer in writers.items():
                writer.append(batch[name].to_numpy())
            if order is not None:
                order.check(batch)
            progress.update(writers["item"].length, writers["item"].length)
    if order is not None:
        order.finish()
    arrays = {name: writer.finish() for name, writer in writers.items()}
    return Interactions(
        items=arrays["item"],
        offsets=offsets_from_lengths(np.asarray(lengths, np.int64)),
        user_ids=users,
        item_ids=items,
        timestamps=arrays.get("time"),
        ratings=arrays.get("rating"),
    )


def _sorted_batches(connection: duckdb.DuckDBPyConnection, table: _Table) -> Iterator[pa.RecordBatch]:
    """Yield the rows with numbers instead of ids, sorted."""
    numbers = "".join(f", staged.{name}" for name in table.numbers)
    order = "user_ids.rowid, time, number" if table.time else "user_ids.rowid, number"
    joins = " ".join(
        f"JOIN {name}_ids ON {_id_expression(column, f'staged.{name}')} = {name}_ids.id"
        for name, column in table.ids.items()
    )
    query = (
        f"SELECT user_ids.rowid AS user, item_ids.rowid::INTEGER AS item, number{numbers} FROM staged {joins} "
        f"ORDER BY {order}"
    )
    yield from connection.sql(query).to_arrow_reader(BATCH_ROWS)


class _OrderCheck:
    """Refuses rows that are not in the order of a column of timestamps which was not named."""

    def __init__(self, table: _Table) -> None:
        self._table = table
        self._last = np.array([-1]), np.array([np.nan])
        self._first_wrong: int | None = None

    def check(self, batch: pa.RecordBatch) -> None:
        """Check the next sorted rows."""
        users = np.concatenate([self._last[0], batch["user"].to_numpy()])
        times = np.concatenate([self._last[1], batch["unused_time"].to_numpy()])
        is_wrong = (np.diff(times) < 0) & (users[1:] == users[:-1])
        if is_wrong.any():
            found = int(batch["number"].to_numpy()[is_wrong].min())
            self._first_wrong = found if self._first_wrong is None else min(found, self._first_wrong)
        self._last = users[-1:], times[-1:]

    def finish(self) -> None:
        """Raise `InputError` with the first wrong row, if there is one."""
        if self._first_wrong is not None and self._table.unused_time is not None:
            name = self._table.unused_time.name
            raise InputError(
                f"{self._table.location(self._first_wrong)}: is earlier than a row above it of the same user, by the "
                f"column {name!r}, which is not used; name it: timestamp={name!r}"
            )
