"""Review datasets as published in the repositories of SASRec and BERT4Rec: files of `user item` lines."""

from __future__ import annotations

import zlib
from dataclasses import dataclass
from pathlib import Path
from typing import ClassVar

from typing_extensions import override

from aprec_like.datasets.base import Publication, Sizes
from aprec_like.datasets.download import fetch_from_any, fetch_url, has_checksum
from aprec_like.datasets.published import PublishedDataset
from aprec_like.datasets.text import read_pairs
from aprec_like.errors import InputError
from aprec_like.files import cache_dir
from aprec_like.interactions import Interactions

NO_TERMS = "the publisher states no licence; the reviews are Amazon's or Steam's users', collected for research"


class ReviewFile(PublishedDataset):
    """Published file of `user item` lines, verified by its checksum even if it was not downloaded by this library.

    Attributes:
        FILES: name of the file, plain and gzipped.
        URLS: addresses of the plain file, tried in this order.
        CHECKSUM: of the plain file, as for `has_checksum`.
        PUBLICATION: sizes, source and terms.
    """

    URLS: ClassVar[tuple[str, ...]]
    CHECKSUM: ClassVar[str]
    PUBLICATION: ClassVar[Publication]

    @property
    @override
    def publication(self) -> Publication:
        return self.PUBLICATION

    @override
    def _fetch(self, data_dir: Path) -> Path:
        path = cache_dir() / self.FILES[0]
        fetches = [lambda url=url: fetch_url(url, self.CHECKSUM, path) for url in self.URLS]
        remedy = f"put {' or '.join(self.FILES)} in {data_dir}"
        return fetch_from_any(fetches, type(self).__name__, self.PUBLICATION.terms, remedy)

    @override
    def _read_verified(self, path: Path) -> Interactions:
        try:
            is_published = has_checksum(path, self.CHECKSUM)
        except (OSError, EOFError, zlib.error) as error:
            raise InputError(f"{path}: cannot be read: {error}; remove it to download it again") from error
        if not is_published:
            raise InputError(
                f"{path}: is not the published file ({self.CHECKSUM}); remove it to download that, or use TextFile"
            )
        return Interactions.from_ids(*read_pairs(path))


@dataclass(frozen=True)
class Steam(ReviewFile):
    """Steam reviews from the BERT4Rec repository: 281,428 users, 13,044 items, 3,488,885 interactions."""

    FILES = ("steam.txt", "steam.txt.gz")
    URLS = (
        "https://raw.githubusercontent.com/FeiSun/BERT4Rec/master/data/steam.txt",
        "https://raw.githubusercontent.com/asash/BERT4rec_py3_tf2/master/data/steam.txt",
    )
    CHECKSUM = "git-blob:d277c3a119f12764dc2822eca9684949a516b244"
    PUBLICATION = Publication(Sizes(281_428, 13_044, 3_488_885), "BERT4Rec repository", "none stated", NO_TERMS)


@dataclass(frozen=True)
class Beauty(ReviewFile):
    """Amazon Beauty from the BERT4Rec repository: 40,226 users, 54,542 items, 353,962 interactions."""

    FILES = ("beauty.txt", "beauty.txt.gz")
    URLS = (
        "https://raw.githubusercontent.com/FeiSun/BERT4Rec/master/data/beauty.txt",
        "https://raw.githubusercontent.com/asash/BERT4rec_py3_tf2/master/data/beauty.txt",
    )
    CHECKSUM = "sha256:f480b7a7403852342ffd8f9809bb30697dd669be31813d0e204b698fec86ef49"
    PUBLICATION = Publication(Sizes(40_226, 54_542, 353_962), "BERT4Rec repository", "none stated", NO_TERMS)


@dataclass(frozen=True)
class AmazonVideo(ReviewFile):
    """Amazon Video Games from the SASRec repository: 31,013 users, 23,715 items, 287,107 interactions."""

    FILES = ("Video.txt", "Video.txt.gz")
    URLS = ("https://raw.githubusercontent.com/kang205/SASRec/master/data/Video.txt",)
    CHECKSUM = "sha256:b7376fe24430743f411dc7f567285657b2adb3f74361cc7ba0aee94f3024b651"
    PUBLICATION = Publication(Sizes(31_013, 23_715, 287_107), "SASRec repository", "none stated", NO_TERMS)
