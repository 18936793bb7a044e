"""Where interactions come from: one file per family of datasets."""

from aprec_like.datasets.base import Dataset, Sizes
from aprec_like.datasets.law import Mixture
from aprec_like.datasets.movielens import MovieLens1M
from aprec_like.datasets.simulated import MOVIELENS_LENGTHS, STEAM_LENGTHS, Lengths, Simulated
from aprec_like.datasets.text import TextFile

__all__ = [
    "MOVIELENS_LENGTHS",
    "STEAM_LENGTHS",
    "Dataset",
    "Lengths",
    "Mixture",
    "MovieLens1M",
    "Simulated",
    "Sizes",
    "TextFile",
]
