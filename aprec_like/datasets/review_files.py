"""Files of `user item` lines that the repositories of SASRec and BERT4Rec publish."""

from __future__ import annotations

import zlib
from dataclasses import dataclass
from pathlib import Path
from typing import ClassVar

from aprec_like.datasets.base import Dataset, Publication, Sizes
from aprec_like.datasets.cache import load_cached
from aprec_like.datasets.download import cache_dir, fetch_first, fetch_url, find_file, is_pinned
from aprec_like.datasets.text import read_pairs
from aprec_like.errors import InputError
from aprec_like.interactions import Interactions

NO_TERMS = "the publisher states no licence; the reviews are Amazon's or Steam's users', collected for research"


class PublishedText(Dataset):
    """A file of `user item` lines that is fetched where it is not on disk, and verified wherever it comes from."""

    FILE: ClassVar[str]
    URLS: ClassVar[tuple[str, ...]]
    PIN: ClassVar[str]
    PUBLICATION: ClassVar[Publication]

    def load(self, data_dir: Path) -> Interactions:
        """Read, or fetch and read, the file."""
        path = self._find(data_dir) or self._fetch(data_dir)
        return load_cached(path, self, lambda: self._read(path))

    def is_on_disk(self, data_dir: Path) -> bool:
        """Whether the file is in the data folder or was fetched before."""
        return self._find(data_dir) is not None

    @property
    def publication(self) -> Publication:
        """Numbers, source and terms."""
        return self.PUBLICATION

    def _find(self, data_dir: Path) -> Path | None:
        return find_file((self.FILE, f"{self.FILE}.gz"), data_dir)

    def _fetch(self, data_dir: Path) -> Path:
        path = cache_dir() / self.FILE
        fetches = [lambda url=url: fetch_url(url, self.PIN, path) for url in self.URLS]
        remedy = f"put {self.FILE} or {self.FILE}.gz in {data_dir}"
        return fetch_first(fetches, type(self).__name__, self.PUBLICATION.terms, remedy)

    def _read(self, path: Path) -> Interactions:
        try:
            is_right = is_pinned(path, self.PIN)
        except (OSError, EOFError, zlib.error) as error:
            raise InputError(f"{path}: cannot be read: {error}; remove it to fetch it again") from error
        if not is_right:
            raise InputError(
                f"{path}: is not the published file ({self.PIN}); remove it to fetch that, or read it as TextFile"
            )
        return Interactions.from_ids(*read_pairs(path))


@dataclass(frozen=True)
class Steam(PublishedText):
    """Steam reviews as in the BERT4Rec repository: 281,428 users, 13,044 items, 3,488,885 interactions."""

    FILE = "steam.txt"
    URLS = (
        "https://raw.githubusercontent.com/FeiSun/BERT4Rec/master/data/steam.txt",
        "https://raw.githubusercontent.com/asash/BERT4rec_py3_tf2/master/data/steam.txt",
    )
    PIN = "git-blob:d277c3a119f12764dc2822eca9684949a516b244"
    PUBLICATION = Publication(Sizes(281_428, 13_044, 3_488_885), "BERT4Rec repository", "none stated", NO_TERMS)


@dataclass(frozen=True)
class Beauty(PublishedText):
    """Amazon Beauty as in the BERT4Rec repository: 40,226 users, 54,542 items, 353,962 interactions."""

    FILE = "beauty.txt"
    URLS = (
        "https://raw.githubusercontent.com/FeiSun/BERT4Rec/master/data/beauty.txt",
        "https://raw.githubusercontent.com/asash/BERT4rec_py3_tf2/master/data/beauty.txt",
    )
    PIN = "sha256:f480b7a7403852342ffd8f9809bb30697dd669be31813d0e204b698fec86ef49"
    PUBLICATION = Publication(Sizes(40_226, 54_542, 353_962), "BERT4Rec repository", "none stated", NO_TERMS)


@dataclass(frozen=True)
class AmazonVideo(PublishedText):
    """Amazon Video Games as in the SASRec repository: 31,013 users, 23,715 items, 287,107 interactions."""

    FILE = "Video.txt"
    URLS = ("https://raw.githubusercontent.com/kang205/SASRec/master/data/Video.txt",)
    PIN = "sha256:b7376fe24430743f411dc7f567285657b2adb3f74361cc7ba0aee94f3024b651"
    PUBLICATION = Publication(Sizes(31_013, 23_715, 287_107), "SASRec repository", "none stated", NO_TERMS)
