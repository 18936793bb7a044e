"""Datasets, the sources of interactions: one file per family."""

from collections.abc import Mapping
from types import MappingProxyType

from aprec_like.datasets.base import Dataset, Publication, Sizes
from aprec_like.datasets.first_users import FirstUsers
from aprec_like.datasets.gowalla import Gowalla
from aprec_like.datasets.movielens import MovieLens1M
from aprec_like.datasets.movielens_tfds import MovieLens
from aprec_like.datasets.presplit import PreSplitFolder
from aprec_like.datasets.review_files import AmazonVideo, Beauty, Steam
from aprec_like.datasets.simulated.dataset import GOWALLA_LENGTHS, MOVIELENS_LENGTHS, STEAM_LENGTHS, Lengths, Simulated
from aprec_like.datasets.simulated.next_item_distribution import Mixture
from aprec_like.datasets.table_files import AtomicFile, CSVFile, ParquetFile, ParquetFolder
from aprec_like.datasets.text import SequenceFile, TextFile

PUBLISHED: Mapping[str, Dataset] = MappingProxyType(
    {
        "MovieLens1M": MovieLens1M(),
        "Steam": Steam(),
        "Beauty": Beauty(),
        "AmazonVideo": AmazonVideo(),
        "Gowalla": Gowalla(),
        "MovieLens-100k": MovieLens("100k"),
        "MovieLens-latest-small": MovieLens("latest-small"),
        "MovieLens-20m": MovieLens("20m"),
        "MovieLens-25m": MovieLens("25m"),
    }
)
"""Published datasets by their names in `python -m evaluation.data`."""

__all__ = [
    "GOWALLA_LENGTHS",
    "MOVIELENS_LENGTHS",
    "PUBLISHED",
    "STEAM_LENGTHS",
    "AmazonVideo",
    "AtomicFile",
    "Beauty",
    "CSVFile",
    "Dataset",
    "FirstUsers",
    "Gowalla",
    "Lengths",
    "Mixture",
    "MovieLens",
    "MovieLens1M",
    "ParquetFile",
    "ParquetFolder",
    "PreSplitFolder",
    "Publication",
    "SequenceFile",
    "Simulated",
    "Sizes",
    "Steam",
    "TextFile",
]
