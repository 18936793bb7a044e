"""Numbering of ids: the distinct ids of a staged table in ascending order."""

from __future__ import annotations

import duckdb
import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from aprec_like.datasets.tables.columns import IdColumn
from aprec_like.datasets.tables.staging import StagedTable
from aprec_like.errors import InputError
from aprec_like.out_of_core import Ids, StringArray, StringWriter, slices
from aprec_like.types import Array

BATCH_ROWS = 1 << 18
"""Rows that are taken from DuckDB at once."""


def id_expression(column: IdColumn, name: str) -> str:
    """Return the SQL of an id: strings that are all whole numbers are numbers."""
    return name if column.is_text or not pa.types.is_string(column.type) else f"{name}::BIGINT"


def number_ids(connection: duckdb.DuckDBPyConnection, name: str, table: StagedTable) -> Ids:
    """Create the table `<name>_ids` of distinct ids in ascending order, whose row numbers are the numbers of ids.

    Returns:
        The distinct ids.
    """
    column = table.ids[name]
    connection.execute(
        f"CREATE TABLE {name}_ids AS SELECT {id_expression(column, name)} AS id, count(*) AS count "
        "FROM staged GROUP BY id ORDER BY id"
    )
    batches = connection.sql(f"SELECT id FROM {name}_ids").to_arrow_reader(BATCH_ROWS)
    if not column.is_text:
        numbers: Array = batches.read_all()["id"].to_numpy()
        return numbers.astype(np.int64) if numbers[-1] <= np.iinfo(np.int64).max else numbers
    ids = StringWriter()
    for batch in batches:
        ids.append(batch["id"])
    written = ids.finish()
    _check_white_space(connection, name, table, written)
    return written


def _check_white_space(connection: duckdb.DuckDBPyConnection, name: str, table: StagedTable, ids: StringArray) -> None:
    """Refuse ids of white space alone, and ids that occur with and without white space around them."""
    connection.execute("CREATE OR REPLACE TABLE padded (id VARCHAR, trimmed VARCHAR)")
    for rows in slices(len(ids), BATCH_ROWS):
        some = ids[rows].to_arrow()
        trimmed = pc.utf8_trim_whitespace(some)
        is_padded = pc.not_equal(trimmed, some)
        if pc.any(is_padded).as_py():
            connection.register("batch", pa.table({"id": some.filter(is_padded), "trimmed": trimmed.filter(is_padded)}))
            connection.execute("INSERT INTO padded SELECT * FROM batch")
    if connection.sql("SELECT count(*) FROM padded").fetchall() == [(0,)]:
        return
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
