"""Blocks of transformers: attention and feed-forward with their norms and residual connections, one file per block."""

from aprec_like.models.blocks.base import Block, BlockLayer, BlockSizes
from aprec_like.models.blocks.feed_forward import GELU, FeedForward, SwiGLU
from aprec_like.models.blocks.hstu import HSTU
from aprec_like.models.blocks.ligr import LiGR
from aprec_like.models.blocks.position_bias import RelativePositionBias
from aprec_like.models.blocks.pre_norm import PreNorm
from aprec_like.models.blocks.sasrec_block import SASRecBlock

__all__ = [
    "GELU",
    "HSTU",
    "Block",
    "BlockLayer",
    "BlockSizes",
    "FeedForward",
    "LiGR",
    "PreNorm",
    "RelativePositionBias",
    "SASRecBlock",
    "SwiGLU",
]
