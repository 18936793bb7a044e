"""Where interactions come from: one file per family of datasets."""

from aprec_like.datasets.base import Dataset, Sizes
from aprec_like.datasets.movielens import MovieLens1M
from aprec_like.datasets.text import TextFile

__all__ = ["Dataset", "MovieLens1M", "Sizes", "TextFile"]
