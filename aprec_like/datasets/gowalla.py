"""Gowalla check-ins as published by SNAP and used in the gSASRec paper."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.csv
from typing_extensions import override

from aprec_like.datasets.base import Publication, Sizes
from aprec_like.datasets.download import fetch_from_any, fetch_url
from aprec_like.datasets.published import PublishedDataset
from aprec_like.errors import InputError, first_line
from aprec_like.files import cache_dir
from aprec_like.interactions import Interactions

FILE = "loc-gowalla_totalCheckins.txt.gz"
URL = f"https://snap.stanford.edu/data/{FILE}"
MIN_CHECK_INS = 5
SIZES = Sizes(users=86_168, items=1_271_638, interactions=6_397_903)
TERMS = "cite Cho, Myers and Leskovec (2011); no licence is stated"


@dataclass(frozen=True)
class Gowalla(PublishedDataset):
    """Gowalla: 86,168 users with 5 or more check-ins, 1,271,638 places, 6,397,903 check-ins including repeats.

    SNAP publishes no checksum, so the file is verified by these three numbers, before a download is kept. Timestamps
    are in UTC; check-ins of the same second keep the order of the file.
    """

    FILES = (FILE, FILE.removesuffix(".gz"))

    @property
    @override
    def publication(self) -> Publication:
        return Publication(SIZES, "SNAP, snap.stanford.edu", "none stated", TERMS)

    @override
    def _fetch(self, data_dir: Path) -> Path:
        fetches = [lambda: fetch_url(URL, self._read_verified, cache_dir() / FILE)]
        return fetch_from_any(fetches, "Gowalla", TERMS, f"put {FILE} in {data_dir}")

    @override
    def _read_verified(self, path: Path) -> Interactions:
        interactions = read_check_ins(path)
        received = Sizes(interactions.num_users, interactions.num_items, interactions.num_interactions)
        if received != SIZES:
            raise InputError(f"{path}: must have {SIZES}. Received: {received}; remove it to download it again")
        return interactions


def read_check_ins(path: Path) -> Interactions:
    """Read SNAP's lines of user, time, latitude, longitude and place; keep users with enough check-ins."""
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
