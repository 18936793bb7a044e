"""Base class of published datasets, which are downloaded if they are not on disk."""

from __future__ import annotations

from abc import abstractmethod
from pathlib import Path
from typing import ClassVar

from typing_extensions import override

from aprec_like.datasets.base import Dataset
from aprec_like.datasets.cache import load_cached
from aprec_like.datasets.download import find_file
from aprec_like.datasets.local_files import check_unpacked_size
from aprec_like.interactions import Interactions


class PublishedDataset(Dataset):
    """Dataset that is read from a file in the data folder or the cache folder, and downloaded if there is none.

    Attributes:
        FILES: names of files that the dataset can be read from, in order of preference.
    """

    FILES: ClassVar[tuple[str, ...]]

    @override
    def load(self, data_dir: Path) -> Interactions:
        path = find_file(self.FILES, data_dir) or self._fetch(data_dir)

        def read() -> Interactions:
            check_unpacked_size(path)
            return self._read_verified(path)

        return load_cached([path], self, read)

    @override
    def is_on_disk(self, data_dir: Path) -> bool:
        return find_file(self.FILES, data_dir) is not None

    @abstractmethod
    def _fetch(self, data_dir: Path) -> Path:
        """Download a file to the cache folder; `data_dir` is named in the error if that fails."""

    @abstractmethod
    def _read_verified(self, path: Path) -> Interactions:
        """Read a file; raises `InputError` if its content is not the published one."""
