"""MovieLens datasets of tensorflow-datasets."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Literal, get_args

import numpy as np
import pandas as pd
from typing_extensions import override

from aprec_like.datasets.base import Dataset, Publication, Sizes
from aprec_like.errors import InputError, first_line
from aprec_like.files import cache_dir
from aprec_like.interactions import Interactions
from aprec_like.types import Array

Size = Literal["100k", "1m", "20m", "25m", "latest-small"]

SIZES = {
    "100k": Sizes(943, 1_682, 100_000),
    "1m": Sizes(6_040, 3_706, 1_000_209),
    "20m": Sizes(138_493, 26_744, 20_000_263),
    "25m": Sizes(162_541, 59_047, 25_000_095),
    "latest-small": Sizes(610, 9_724, 100_836),
}
TERMS = "for research; acknowledge it in publications (Harper and Konstan, 2015); no redistribution without permission"
CHUNK_RATINGS = 1 << 16
FOLDER = "tensorflow_datasets"


@dataclass(frozen=True)
class MovieLens(Dataset):
    """All ratings of a MovieLens dataset with titles, downloaded and prepared by tensorflow-datasets.

    The ML-1M of the papers is `MovieLens1M` instead: tensorflow-datasets does not keep the order of the file, so
    ratings with equal timestamps are ordered by movie id here.

    Args:
        size: name of the size, as MovieLens calls it.
    """

    size: Size = "100k"

    def __post_init__(self) -> None:
        if self.size not in get_args(Size):
            raise ValueError(f"MovieLens needs size to be one of {', '.join(get_args(Size))}. Received: {self.size!r}")

    @override
    def load(self, data_dir: Path) -> Interactions:
        import tensorflow_datasets as tfds

        name = f"movielens/{self.size}-ratings"
        try:
            ratings = tfds.load(name, split="train", data_dir=self._folder(data_dir), batch_size=CHUNK_RATINGS)
        except Exception as error:  # tensorflow-datasets raises exceptions of many libraries
            raise InputError(
                f"tensorflow-datasets could not prepare {name}: {type(error).__name__}: {first_line(error)}; "
                f"put the prepared folder in {data_dir / FOLDER}"
            ) from error
        return _as_interactions([_columns(chunk) for chunk in tfds.as_numpy(ratings)])

    @override
    def is_on_disk(self, data_dir: Path) -> bool:
        prepared = self._folder(data_dir) / "movielens" / f"{self.size}-ratings"
        return any(prepared.glob("*/dataset_info.json"))

    @property
    @override
    def publication(self) -> Publication:
        return Publication(SIZES[self.size], "GroupLens, through tensorflow-datasets", "research", TERMS)

    @property
    @override
    def notes(self) -> tuple[str, ...]:
        return (
            "ratings of a user with the same timestamp are in the order of the movies' ids, not in that of the "
            "publisher's file, which tensorflow-datasets does not keep",
        )

    def _folder(self, data_dir: Path) -> Path:
        folder = data_dir / FOLDER
        return folder if folder.is_dir() else cache_dir() / FOLDER


def _columns(chunk: Mapping[str, Array]) -> pd.DataFrame:
    return pd.DataFrame(
        {
            "user": _as_ids(chunk["user_id"]),
            "item": _as_ids(chunk["movie_id"]),
            "timestamp": chunk["timestamp"],
            "rating": chunk["user_rating"],
            "title": chunk["movie_title"],
        }
    )


def _as_ids(texts: Array) -> Array:
    """Convert ids from bytes to whole numbers, or to strings if not all are numbers."""
    try:
        return texts.astype("S").astype(np.int64)
    except ValueError:
        return np.char.decode(texts.astype("S"), "utf-8", "replace").astype(object)


def _as_interactions(chunks: list[pd.DataFrame]) -> Interactions:
    ratings = pd.concat(chunks)
    if ratings["item"].dtype == object or ratings["user"].dtype == object:
        ratings = ratings.astype({"user": str, "item": str})
    ratings = ratings.sort_values(["timestamp", "item"], kind="stable")
    interactions = Interactions.from_ids(
        *(ratings[name].to_numpy() for name in ("user", "item", "timestamp", "rating"))
    )
    titles = ratings.drop_duplicates("item").set_index("item")["title"].loc[np.asarray(interactions.item_ids)]
    decoded = [title.decode("utf-8", "replace") for title in titles]
    return replace(interactions, item_columns={"title": np.array(decoded, object)})
