"""Interface of datasets: frozen dataclasses of settings with a method that loads the interactions."""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass
from pathlib import Path

from aprec_like.interactions import Interactions


@dataclass(frozen=True)
class Sizes:
    """Number of users, items and interactions of a dataset."""

    users: int
    items: int
    interactions: int


@dataclass(frozen=True)
class Publication:
    """Facts about a published dataset that are known before it is on disk.

    Args:
        sizes: published sizes; files that are verified by checksum have them.
        source: publisher of the dataset.
        licence: licence in a few words.
        terms: terms of use in full, printed when the dataset is downloaded.
    """

    sizes: Sizes
    source: str
    licence: str
    terms: str


class Dataset(ABC):
    """Source of interactions. Subclasses are frozen dataclasses."""

    @abstractmethod
    def load(self, data_dir: Path) -> Interactions:
        """Read the dataset from `data_dir`, or download it; raises `InputError` if that fails."""

    @abstractmethod
    def is_on_disk(self, data_dir: Path) -> bool:
        """Return whether `load` needs no network."""

    @property
    def publication(self) -> Publication | None:
        """Sizes, source and terms of a published dataset; `None` for other datasets."""
        return None

    @property
    def notes(self) -> tuple[str, ...]:
        """Remarks for readers of results on this dataset, stored in dataset.json."""
        return ()
