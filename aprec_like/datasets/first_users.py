"""First users of another dataset, as a small sample with the whole catalogue."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import numpy as np
from typing_extensions import override

from aprec_like.datasets.base import Dataset
from aprec_like.datasets.cache import filter_cached
from aprec_like.filters import Filter
from aprec_like.interactions import Interactions


@dataclass(frozen=True)
class FirstUsers(Dataset):
    """First `num_users` users of another dataset after its filters; the catalogue does not change."""

    dataset: Dataset
    filters: tuple[Filter, ...] = ()
    num_users: int = 1_000

    @override
    def load(self, data_dir: Path) -> Interactions:
        interactions = filter_cached(self.dataset.load(data_dir), self.filters)
        return interactions.select_users(np.arange(min(self.num_users, interactions.num_users)))

    @override
    def is_on_disk(self, data_dir: Path) -> bool:
        return self.dataset.is_on_disk(data_dir)
