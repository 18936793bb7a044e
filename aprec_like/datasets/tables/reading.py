"""Reading of tables of any size: checked in chunks, then numbered and sorted by DuckDB within the memory budget."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

import duckdb
import numpy as np
import pyarrow as pa

from aprec_like.datasets.tables.columns import Columns
from aprec_like.datasets.tables.interrupts import interrupt_on_signal
from aprec_like.datasets.tables.numbering import BATCH_ROWS, id_expression, number_ids
from aprec_like.datasets.tables.progress import RowProgress
from aprec_like.datasets.tables.sources import TableSource
from aprec_like.datasets.tables.staging import StagedTable
from aprec_like.errors import InputError, first_line
from aprec_like.files import StorageError
from aprec_like.interactions import Interactions, offsets_from_lengths
from aprec_like.out_of_core import SCRATCH_VARIABLE, ArrayWriter, Ids, memory_budget, scratch_folder

SCRATCH_FACTOR = 3
"""Scratch space in sizes of the unpacked tables: their rows, the sorted rows, and the arrays made of them."""
DATABASE_SHARE = 0.4
"""Of the memory budget; the rest is for Python, TensorFlow, the ids, and the chunks in flight."""


def read_tables(sources: Sequence[TableSource], columns: Columns) -> Interactions:
    """Read interactions from tables with the same columns, which count as one in their order.

    Users and items are numbered in the order of their ids. The interactions of a user are sorted by timestamp; ties,
    and interactions without timestamps, keep the order of the rows.

    Raises:
        InputError: for a table without these columns, and for the first row that is no interaction.
        StorageError: if the scratch disk is too small.
    """
    table = StagedTable(sources, columns)
    needed = SCRATCH_FACTOR * sum(source.unpacked_bytes() for source in sources)
    with scratch_folder(needed) as folder, _connect(folder) as connection:
        table.stage(connection)
        users, items = (number_ids(connection, name, table) for name in ("user", "item"))
        return _sort(connection, table, users, items)


@contextmanager
def _connect(folder: Path) -> Iterator[duckdb.DuckDBPyConnection]:
    """Open a database in memory that spills to a folder; raises `StorageError` if the budget or the disk is full."""
    limit = int(DATABASE_SHARE * memory_budget())
    with duckdb.connect(":memory:") as connection:
        connection.execute("SET enable_progress_bar = false")
        connection.execute(f"SET memory_limit = '{limit}B'")
        connection.execute("SET temp_directory = ?", [str(folder)])
        try:
            with interrupt_on_signal(connection):
                yield connection
        except (duckdb.OutOfMemoryException, duckdb.IOException) as error:
            raise StorageError(
                f"{folder}: sorting the data failed: {first_line(error)}; make room on this disk, name a folder on "
                f"another with {SCRATCH_VARIABLE}, or raise --memory"
            ) from error


def _sort(connection: duckdb.DuckDBPyConnection, table: StagedTable, users: Ids, items: Ids) -> Interactions:
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


def _sorted_batches(connection: duckdb.DuckDBPyConnection, table: StagedTable) -> Iterator[pa.RecordBatch]:
    """Yield the rows with numbers instead of ids, sorted."""
    numbers = "".join(f", staged.{name}" for name in table.numbers)
    order = "user_ids.rowid, time, number" if table.time else "user_ids.rowid, number"
    joins = " ".join(
        f"JOIN {name}_ids ON {id_expression(column, f'staged.{name}')} = {name}_ids.id"
        for name, column in table.ids.items()
    )
    query = (
        f"SELECT user_ids.rowid AS user, item_ids.rowid::INTEGER AS item, number{numbers} FROM staged {joins} "
        f"ORDER BY {order}"
    )
    yield from connection.sql(query).to_arrow_reader(BATCH_ROWS)


class _OrderCheck:
    """Refuses rows that are not in the order of a column of timestamps which was not named."""

    def __init__(self, table: StagedTable) -> None:
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
