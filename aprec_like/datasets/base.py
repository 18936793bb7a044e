"""What a dataset is: settings that say where interactions come from, and one method that loads them."""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass
from pathlib import Path

from aprec_like.interactions import Interactions


@dataclass(frozen=True)
class Sizes:
    """The numbers of a dataset."""

    users: int
    items: int
    interactions: int


@dataclass(frozen=True)
class Publication:
    """What is known of a published dataset before it is on disk.

    Args:
        sizes: its numbers as published; files that come pinned by checksum must have them.
        source: who publishes it and where.
        licence: what its publisher allows, in a few words.
        terms: the same in full, said when it is fetched.
    """

    sizes: Sizes
    source: str
    licence: str
    terms: str


class Dataset(ABC):
    """Where interactions come from. Subclasses are frozen dataclasses."""

    @abstractmethod
    def load(self, data_dir: Path) -> Interactions:
        """Read the dataset from `data_dir`, or from where it can be had; raises `InputError` if that fails."""

    @abstractmethod
    def is_on_disk(self, data_dir: Path) -> bool:
        """Whether `load` would need no network."""

    @property
    def publication(self) -> Publication | None:
        """Numbers, source and terms, where the dataset has a published version."""
        return None

    @property
    def notes(self) -> tuple[str, ...]:
        """What a reader of results on this dataset has to know; stands in dataset.json."""
        return ()
