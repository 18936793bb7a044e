"""Tables with one row per interaction: CSV, Parquet, and the atomic files of RecBole."""

from __future__ import annotations

import codecs
from abc import abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import ClassVar

from typing_extensions import override

from aprec_like.datasets.cache import load_cached
from aprec_like.datasets.local_files import find_file, missing_error, search_folders
from aprec_like.datasets.tables.columns import TIME_UNITS, Columns
from aprec_like.datasets.tables.reading import read_tables
from aprec_like.datasets.tables.sources import ParquetSource, TableSource, parquet_files, partitions_of
from aprec_like.datasets.tables.text_source import TextFormat, TextSource
from aprec_like.datasets.titles import with_titles
from aprec_like.datasets.user_file import UserFile
from aprec_like.errors import InputError
from aprec_like.interactions import Interactions
from aprec_like.settings import OMIT_DEFAULT


@dataclass(frozen=True)
class TableFile(UserFile):
    """Table with one row per interaction. Ids may be numbers or strings; all outputs show them unchanged.

    The interactions of a user are sorted by `timestamp`, ties in the order of the file; without a timestamp they keep
    the order of the file. Files of any size are read: what does not fit into the memory budget is sorted on disk.

    Args:
        path: path of the file, as for every `UserFile`, or a pattern such as `events/*.csv.gz` for several files with
            the same columns; they count as one in the order of their paths.
        user: name of the column of user ids.
        item: name of the column of item ids.
        timestamp: name of the column of timestamps, numbers or ISO 8601 dates.
        rating: name of the column of ratings.
        time_unit: unit of timestamps that are numbers: "s", "ms", "us" or "ns".
        titles: path of a CSV, TSV or Parquet file with the titles of items, in the columns `item` and "title".
    """

    KIND: ClassVar[str] = "file"

    user: str
    item: str
    timestamp: str | None = None
    rating: str | None = None
    time_unit: str = field(default="s", kw_only=True, metadata=OMIT_DEFAULT)
    titles: str | None = field(default=None, kw_only=True, metadata=OMIT_DEFAULT)

    def __post_init__(self) -> None:
        names = self.columns.names
        if repeated := [name for name in names if names.count(name) > 1]:
            raise ValueError(f"{type(self).__name__} needs different columns. Received: {repeated[0]!r} twice")
        if self.time_unit not in TIME_UNITS:
            known = ", ".join(TIME_UNITS)
            raise ValueError(f"{type(self).__name__} needs a time_unit of {known}. Received: {self.time_unit!r}")

    @property
    def columns(self) -> Columns:
        """Names of the columns."""
        return Columns(self.user, self.item, self.timestamp, self.rating, self.time_unit)

    @override
    def load(self, data_dir: Path) -> Interactions:
        paths = self._find_all(data_dir)
        if not paths:
            raise missing_error(self.path, data_dir, self.KIND)
        if self.titles is None:
            return load_cached(paths, self, lambda: self._read_all(paths))
        titles = find_file(self.titles, data_dir)
        if titles is None:
            raise missing_error(self.titles, data_dir)
        return load_cached([*paths, titles], self, lambda: with_titles(self._read_all(paths), titles, self.item))

    @override
    def is_on_disk(self, data_dir: Path) -> bool:
        return bool(self._find_all(data_dir))

    @override
    def _read(self, path: Path) -> Interactions:
        return self._read_all([path])

    def _read_all(self, paths: Sequence[Path]) -> Interactions:
        sources = [self._source(path) for path in paths]
        return read_tables(sources, self._columns(sources[0]))

    def _find_all(self, data_dir: Path) -> list[Path]:
        """Return the file, or the files of a pattern in the order of their paths."""
        if (found := self._find(data_dir)) is not None:
            return [found]
        is_pattern = any(character in self.path for character in "*?[")
        root = Path(Path(self.path).anchor)
        folders = [root] if root.parts else search_folders(data_dir) if is_pattern else []
        pattern = str(Path(self.path).relative_to(root))
        matches = (sorted(filter(Path.is_file, folder.glob(pattern))) for folder in folders if is_pattern)
        return next((paths for paths in matches if paths), [])

    @abstractmethod
    def _source(self, path: Path) -> TableSource:
        """Return the table of a file."""

    def _columns(self, source: TableSource) -> Columns:
        """Return the columns to read, where `source` is the first file."""
        return self.columns

    @property
    @override
    def notes(self) -> tuple[str, ...]:
        return () if self.timestamp else ("no timestamps: the rows of a user are taken to be in the order of time",)


@dataclass(frozen=True)
class CSVFile(TableFile):
    """Text file of separated columns, plain or gzipped.

    Args:
        separator: characters between columns; with more than one, such as `::`, quotes have no meaning.
        header: names of the columns, for a file without a header line.
        encoding: encoding of the text, such as "latin-1" or "utf-16".
    """

    separator: str = ","
    header: tuple[str, ...] = ()
    encoding: str = field(default="utf-8", kw_only=True, metadata=OMIT_DEFAULT)

    def __post_init__(self) -> None:
        super().__post_init__()
        if not self.separator:
            raise ValueError("CSVFile needs a separator. Received: ''")
        try:
            codecs.lookup(self.encoding)
        except LookupError as error:
            raise ValueError(f"CSVFile needs an encoding that Python knows. Received: {self.encoding!r}") from error

    @override
    def _source(self, path: Path) -> TableSource:
        return TextSource(path, TextFormat(self.separator, self.header, encoding=self.encoding))


@dataclass(frozen=True)
class ParquetFile(TableFile):
    """Parquet file."""

    @override
    def _source(self, path: Path) -> TableSource:
        return ParquetSource(path, partitions_of(path))


@dataclass(frozen=True)
class ParquetFolder(ParquetFile):
    """Folder of Parquet files with the same columns, in subfolders too; they count as one in the order of their paths.

    Folders named `column=value`, as Spark and others partition tables, are columns. Hidden files are skipped.
    """

    KIND = "folder of Parquet files"

    @override
    def _find_all(self, data_dir: Path) -> list[Path]:
        folders = (folder / self.path for folder in search_folders(data_dir))
        return next((found for folder in folders if (found := parquet_files(folder))), [])


@dataclass(frozen=True)
class AtomicFile(TableFile):
    """Atomic file of RecBole, `NAME.inter`: columns separated by tabs, with a header of `name:type` fields.

    The default columns `timestamp` and `rating` are optional; columns with other names must exist.
    """

    user: str = "user_id"
    item: str = "item_id"
    timestamp: str | None = "timestamp"
    rating: str | None = "rating"

    @override
    def _source(self, path: Path) -> TableSource:
        return TextSource(path, TextFormat("\t", is_quoted=False))

    @override
    def _columns(self, source: TableSource) -> Columns:
        typed = {name.partition(":")[0]: name for name in source.column_names()}
        times = [name for name in typed if "time" in name.lower()]
        if self.timestamp == "timestamp" and times and "timestamp" not in typed:
            raise InputError(
                f"{source.path}: has no column 'timestamp' but {', '.join(times)}; name it, or timestamp=None"
            )
        timestamp, rating = (
            typed.get(name, None if name == default else name) if name else None
            for name, default in ((self.timestamp, "timestamp"), (self.rating, "rating"))
        )
        user, item = typed.get(self.user, self.user), typed.get(self.item, self.item)
        return Columns(user, item, timestamp, rating, self.time_unit)
