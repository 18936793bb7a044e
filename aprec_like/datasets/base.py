"""What a dataset is: settings that say where interactions come from, and one method that loads them."""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass
from pathlib import Path

from aprec_like.interactions import Interactions


@dataclass(frozen=True)
class Sizes:
    """The published numbers of a dataset, known before it is on disk."""

    users: int
    items: int
    interactions: int


class Dataset(ABC):
    """Where interactions come from. Subclasses are frozen dataclasses."""

    @abstractmethod
    def load(self, data_dir: Path) -> Interactions:
        """Read the dataset from `data_dir`, or from where it can be had; raises `InputError` if that fails."""

    @abstractmethod
    def is_on_disk(self, data_dir: Path) -> bool:
        """Whether `load` would need no network."""

    @property
    def sizes(self) -> Sizes | None:
        """The pinned numbers, where the dataset has a published version."""
        return None
