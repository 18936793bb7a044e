"""Models, one file each."""

from aprec_like.models.base import CountingModel, Network, NeuralModel, Scorer
from aprec_like.models.oracle import Oracle
from aprec_like.models.popularity import Popularity
from aprec_like.models.sasrec import GSASREC_FLAVOUR, ORIGINAL_FLAVOUR, Flavour, SASRec

__all__ = [
    "GSASREC_FLAVOUR",
    "ORIGINAL_FLAVOUR",
    "CountingModel",
    "Flavour",
    "Network",
    "NeuralModel",
    "Oracle",
    "Popularity",
    "SASRec",
    "Scorer",
]
