"""LiGR: a pre-norm block with gated residual connections (Borisyuk et al., 2025), as in eSASRec."""

from __future__ import annotations

from dataclasses import dataclass, field

import keras
from typing_extensions import override

from aprec_like.models.blocks.base import Block, BlockLayer, BlockSizes, last_positions
from aprec_like.models.blocks.feed_forward import FeedForward, SwiGLU
from aprec_like.models.blocks.position_bias import RelativePositionBias
from aprec_like.models.blocks.self_attention import SelfAttention, attention_activations, num_attention_parameters
from aprec_like.types import Tensor


@dataclass(frozen=True)
class LiGR(Block):
    """x += sigmoid(x W1) * drop(attention(norm(x))); x += sigmoid(x W2) * drop(feed_forward(norm(x))), without biases.

    The gates see the states as they are, and choose per position and dimension how much of the update to take.

    Args:
        feed_forward: `SwiGLU()` as in eSASRec, or `GELU()`, which has biases.
        position_bias: relative position bias of the attention; `None` for none.
    """

    feed_forward: FeedForward = field(default_factory=SwiGLU)
    position_bias: RelativePositionBias | None = None

    @override
    def build(self, sizes: BlockSizes, index: int) -> LiGRLayer:
        return LiGRLayer(self, sizes, index)

    @override
    def num_parameters(self, sizes: BlockSizes) -> int:
        attention = num_attention_parameters(sizes, use_bias=False, position_bias=self.position_bias)
        gates = 2 * sizes.dim * sizes.dim
        return 2 * 2 * sizes.dim + attention + gates + self.feed_forward.num_parameters(sizes.dim)

    @override
    def activations_per_position(self, sizes: BlockSizes) -> int:
        attention = attention_activations(sizes, self.position_bias)
        return 14 * sizes.dim + attention + self.feed_forward.activations_per_position(sizes.dim)


class LiGRLayer(BlockLayer):
    """The layer of `LiGR`."""

    def __init__(self, block: LiGR, sizes: BlockSizes, index: int) -> None:
        super().__init__(sizes, index)
        self.norm1, self.norm2 = self.layer_norm("norm1"), self.layer_norm("norm2")
        self.attention = SelfAttention(sizes, index, use_bias=False, position_bias=block.position_bias)
        self.feed_forward = block.feed_forward.build(sizes.dim)
        self.gate1, self.gate2 = (
            keras.layers.Dense(sizes.dim, activation="sigmoid", use_bias=False, name=name)
            for name in ("gate1", "gate2")
        )

    @override
    def call(
        self, states: Tensor, mask_bias: Tensor, dropout_seed: Tensor | None, num_queries: Tensor | None = None
    ) -> Tensor:
        attended = self.attention(self.norm1(states), mask_bias, dropout_seed, num_queries=num_queries)
        states = last_positions(states, num_queries)
        states += self.gate1(states) * self.drop(attended, dropout_seed, 1)
        return states + self.gate2(states) * self.drop(self.feed_forward(self.norm2(states)), dropout_seed, 2)
