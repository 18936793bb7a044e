"""Models: neural networks and counting baselines, one file per model."""

from aprec_like.batches import TimeGaps
from aprec_like.models.base import CommonScorer, CountingModel, Network, NeuralModel, Scorer
from aprec_like.models.bert4rec import BERT4Rec, Masking
from aprec_like.models.blocks import GELU, HSTU, Block, LiGR, PreNorm, RelativePositionBias, SASRecBlock, SwiGLU
from aprec_like.models.gru4rec import GRU4Rec
from aprec_like.models.markov import MarkovChain
from aprec_like.models.matrix_factorisation import MatrixFactorisation
from aprec_like.models.oracle import Oracle
from aprec_like.models.popularity import Popularity
from aprec_like.models.sasrec import GSASREC_FLAVOUR, ORIGINAL_FLAVOUR, Flavour, SASRec
from aprec_like.models.transformer import dropout

__all__ = [
    "GELU",
    "GSASREC_FLAVOUR",
    "HSTU",
    "ORIGINAL_FLAVOUR",
    "BERT4Rec",
    "Block",
    "CommonScorer",
    "CountingModel",
    "Flavour",
    "GRU4Rec",
    "LiGR",
    "MarkovChain",
    "Masking",
    "MatrixFactorisation",
    "Network",
    "NeuralModel",
    "Oracle",
    "Popularity",
    "PreNorm",
    "RelativePositionBias",
    "SASRec",
    "SASRecBlock",
    "Scorer",
    "SwiGLU",
    "TimeGaps",
    "dropout",
]
