"""The first users of another dataset: a small sample with the whole catalogue."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import numpy as np

from aprec_like.datasets.base import Dataset
from aprec_like.filters import Filter, apply_filters
from aprec_like.interactions import Interactions


@dataclass(frozen=True)
class FirstUsers(Dataset):
    """The first users of another dataset, after its filters; the catalogue stays as it is."""

    dataset: Dataset
    filters: tuple[Filter, ...] = ()
    num_users: int = 1_000

    def load(self, data_dir: Path) -> Interactions:
        """Read the dataset and keep the first users."""
        whole = apply_filters(self.dataset.load(data_dir), self.filters)
        users = np.arange(min(self.num_users, whole.num_users))
        return whole.select_users(users)

    def is_on_disk(self, data_dir: Path) -> bool:
        """Whether the whole dataset is."""
        return self.dataset.is_on_disk(data_dir)
