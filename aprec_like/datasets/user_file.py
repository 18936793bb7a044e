"""Base class of datasets that are files of the user."""

from __future__ import annotations

from abc import abstractmethod
from dataclasses import dataclass
from pathlib import Path

from typing_extensions import override

from aprec_like.datasets.base import Dataset
from aprec_like.datasets.cache import load_cached
from aprec_like.datasets.local_files import find_plain_or_gzipped
from aprec_like.errors import InputError
from aprec_like.interactions import Interactions


@dataclass(frozen=True)
class UserFile(Dataset):
    """File of the user, plain or gzipped.

    Args:
        path: path of the file, relative to the data folder or absolute; `NAME.gz` is found for `NAME`.
    """

    path: str

    @override
    def load(self, data_dir: Path) -> Interactions:
        path = find_plain_or_gzipped(data_dir / self.path)
        if path is None:
            missing = data_dir / self.path
            raise InputError(f"{missing} (or .gz) does not exist; put the file there or name another data folder")
        return load_cached(path, self, lambda: self._read(path))

    @override
    def is_on_disk(self, data_dir: Path) -> bool:
        return find_plain_or_gzipped(data_dir / self.path) is not None

    @abstractmethod
    def _read(self, path: Path) -> Interactions:
        """Read the file."""
