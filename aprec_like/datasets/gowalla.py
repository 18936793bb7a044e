"""Gowalla check-ins as SNAP publishes them and the gSASRec paper uses them."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.csv

from aprec_like.datasets.base import Dataset, Publication, Sizes
from aprec_like.datasets.cache import load_cached
from aprec_like.datasets.download import cache_dir, fetch_first, fetch_url, find_file
from aprec_like.errors import InputError, first_line
from aprec_like.interactions import Interactions

FILE = "loc-gowalla_totalCheckins.txt.gz"
URL = f"https://snap.stanford.edu/data/{FILE}"
MIN_CHECK_INS = 5
SIZES = Sizes(users=86_168, items=1_271_638, interactions=6_397_903)


@dataclass(frozen=True)
class Gowalla(Dataset):
    """Gowalla: 86,168 users with 5 check-ins or more, 1,271,638 places, 6,397,903 check-ins; repeats are kept.

    SNAP publishes no checksum and none is known to us: what is read is verified by these three numbers.
    Timestamps are UTC; check-ins of the same second keep the order of the file.
    """

    def load(self, data_dir: Path) -> Interactions:
        """Read, or fetch and read, the check-ins."""
        remedy = f"put {FILE} in {data_dir}"
        path = self._find(data_dir) or fetch_first(
            [lambda: fetch_url(URL, None, cache_dir() / FILE)], "Gowalla", self.publication.terms, remedy
        )
        return load_cached(path, self, lambda: _read_verified(path))

    def is_on_disk(self, data_dir: Path) -> bool:
        """Whether the file is in the data folder or was fetched before."""
        return self._find(data_dir) is not None

    @property
    def publication(self) -> Publication:
        """Numbers, source and terms."""
        terms = "cite Cho, Myers and Leskovec (2011); no licence is stated"
        return Publication(SIZES, "SNAP, snap.stanford.edu", "none stated", terms)

    def _find(self, data_dir: Path) -> Path | None:
        return find_file((FILE, FILE.removesuffix(".gz")), data_dir)


def read_check_ins(path: Path) -> Interactions:
    """Users with enough check-ins, from SNAP's lines of user, time, latitude, longitude and place."""
    try:
        table = pa.csv.read_csv(
            path,
            read_options=pa.csv.ReadOptions(column_names=["user", "time", "latitude", "longitude", "place"]),
            parse_options=pa.csv.ParseOptions(delimiter="\t", quote_char=False),
            convert_options=pa.csv.ConvertOptions(
                include_columns=["user", "time", "place"],
                column_types={"user": pa.int64(), "time": pa.timestamp("s", "UTC"), "place": pa.int64()},
            ),
        )
    except (OSError, EOFError, pa.ArrowInvalid) as error:
        raise InputError(f"{path}: is not SNAP's file of check-ins, or damaged: {first_line(error)}") from error
    users = table["user"].to_numpy()
    _, rows, counts = np.unique(users, return_inverse=True, return_counts=True)
    is_kept = counts[rows] >= MIN_CHECK_INS
    times = table["time"].cast(pa.int64()).to_numpy()
    return Interactions.from_ids(users[is_kept], table["place"].to_numpy()[is_kept], times[is_kept])


def _read_verified(path: Path) -> Interactions:
    interactions = read_check_ins(path)
    received = Sizes(interactions.num_users, interactions.num_items, interactions.num_interactions)
    if received != SIZES:
        raise InputError(f"{path}: must give {SIZES}. Received: {received}; remove it to fetch it again")
    return interactions
