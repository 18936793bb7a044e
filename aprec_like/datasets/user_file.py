"""Base class of datasets that are files of the user."""

from __future__ import annotations

from abc import abstractmethod
from dataclasses import dataclass
from pathlib import Path

from typing_extensions import override

from aprec_like.datasets.base import Dataset
from aprec_like.datasets.cache import load_cached
from aprec_like.datasets.local_files import check_unpacked_size, find_file, missing_error
from aprec_like.interactions import Interactions


@dataclass(frozen=True)
class UserFile(Dataset):
    """File of the user, plain or gzipped.

    Args:
        path: path of the file: absolute, or relative to the data folder, the recipe's folder or the current folder, in
            this order; `NAME.gz` is found for `NAME`.
    """

    path: str

    @override
    def load(self, data_dir: Path) -> Interactions:
        path = self._find(data_dir)
        if path is None:
            raise missing_error(self.path, data_dir)
        return load_cached([path], self, lambda: self._read_whole(path))

    def _read_whole(self, path: Path) -> Interactions:
        check_unpacked_size(path)
        return self._read(path)

    @override
    def is_on_disk(self, data_dir: Path) -> bool:
        return self._find(data_dir) is not None

    def _find(self, data_dir: Path) -> Path | None:
        return find_file(self.path, data_dir)

    @abstractmethod
    def _read(self, path: Path) -> Interactions:
        """Read the file."""
