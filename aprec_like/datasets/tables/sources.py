"""Files with a table each, read in chunks of bounded size."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from urllib.parse import unquote

import pyarrow as pa
import pyarrow.parquet
from typing_extensions import override

from aprec_like.errors import InputError, first_line

CHUNK_ROWS = 1 << 19
"""Rows of a Parquet file that are read at once."""


class TableSource(ABC):
    """File with a table. Subclasses are frozen dataclasses."""

    path: Path

    @abstractmethod
    def column_names(self) -> list[str]:
        """Return the names of the columns, in the order of the file."""

    @abstractmethod
    def types(self, names: Sequence[str]) -> list[pa.DataType]:
        """Return the types of columns."""

    @abstractmethod
    def chunks(self, names: Sequence[str]) -> Iterator[pa.Table]:
        """Yield consecutive rows of the named columns; raises `InputError` if the file is damaged."""

    @abstractmethod
    def location(self, row: int) -> str:
        """Return the place of a row, from 0, for errors."""

    @abstractmethod
    def unpacked_bytes(self) -> int:
        """Estimate the size of the table without compression."""


@dataclass(frozen=True)
class ParquetSource(TableSource):
    """Parquet file.

    Args:
        path: path of the file.
        partitions: columns that have one value for the whole file, named by its folders (`day=2024-01-01`).
    """

    path: Path
    partitions: Mapping[str, str] = field(default_factory=dict)

    @override
    def column_names(self) -> list[str]:
        names: list[str] = self._schema().names
        return names + [name for name in self.partitions if name not in names]

    @override
    def types(self, names: Sequence[str]) -> list[pa.DataType]:
        schema = self._schema()
        return [schema.field(name).type if name in schema.names else pa.string() for name in names]

    @override
    def chunks(self, names: Sequence[str]) -> Iterator[pa.Table]:
        try:
            with pa.parquet.ParquetFile(self.path) as file:
                stored = [name for name in names if name in file.schema_arrow.names]
                for batch in file.iter_batches(CHUNK_ROWS, columns=stored):
                    columns = {
                        name: batch[name] if name in stored else pa.repeat(self.partitions[name], len(batch))
                        for name in names
                    }
                    yield pa.table(columns)
        except (OSError, pa.ArrowException) as error:
            raise self._damaged(error) from error

    @override
    def location(self, row: int) -> str:
        return f"{self.path}: row {row + 1}"

    @override
    def unpacked_bytes(self) -> int:
        metadata = pa.parquet.read_metadata(self.path)
        return sum(metadata.row_group(group).total_byte_size for group in range(metadata.num_row_groups))

    def _schema(self) -> pa.Schema:
        try:
            return pa.parquet.read_schema(self.path)
        except (OSError, pa.ArrowException) as error:
            raise self._damaged(error) from error

    def _damaged(self, error: Exception) -> InputError:
        return InputError(f"{self.path}: is not a Parquet file, or damaged: {first_line(error)}")


def parquet_files(folder: Path) -> list[Path]:
    """Return the Parquet files of a folder and its subfolders in the order of their paths, without hidden ones."""
    found = sorted(folder.rglob("*.parquet"))
    return [path for path in found if not any(part.startswith((".", "_")) for part in path.relative_to(folder).parts)]


def partitions_of(path: Path) -> dict[str, str]:
    """Return the columns that the folders of a partitioned table name.

    Example:
        >>> partitions_of(Path("events/country=nl/day=1/a.parquet"))
        {'country': 'nl', 'day': '1'}
    """
    pairs = [part.split("=", 1) for part in path.parts[:-1] if "=" in part]
    return {name: unquote(value) for name, value in pairs}
