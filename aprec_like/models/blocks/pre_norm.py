"""The pre-norm block of current language models."""

from __future__ import annotations

from dataclasses import dataclass, field

from typing_extensions import override

from aprec_like.models.blocks.base import Block, BlockLayer, BlockSizes, last_positions
from aprec_like.models.blocks.feed_forward import GELU, FeedForward
from aprec_like.models.blocks.position_bias import RelativePositionBias
from aprec_like.models.blocks.self_attention import SelfAttention, attention_activations, num_attention_parameters
from aprec_like.types import Tensor


@dataclass(frozen=True)
class PreNorm(Block):
    """x += drop(attention(norm(x))); x += drop(feed_forward(norm(x))), with a projection after the attention.

    Args:
        feed_forward: `GELU()` or `SwiGLU()`.
        position_bias: relative position bias of the attention; `None` for none.
    """

    feed_forward: FeedForward = field(default_factory=GELU)
    position_bias: RelativePositionBias | None = None

    @override
    def build(self, sizes: BlockSizes, index: int) -> PreNormLayer:
        return PreNormLayer(self, sizes, index)

    @override
    def num_parameters(self, sizes: BlockSizes) -> int:
        attention = num_attention_parameters(sizes, use_bias=True, position_bias=self.position_bias)
        return 2 * 2 * sizes.dim + attention + self.feed_forward.num_parameters(sizes.dim)

    @override
    def activations_per_position(self, sizes: BlockSizes) -> int:
        attention = attention_activations(sizes, self.position_bias)
        return 8 * sizes.dim + attention + self.feed_forward.activations_per_position(sizes.dim)


class PreNormLayer(BlockLayer):
    """The layer of `PreNorm`."""

    def __init__(self, block: PreNorm, sizes: BlockSizes, index: int) -> None:
        super().__init__(sizes, index)
        self.norm1, self.norm2 = self.layer_norm("norm1"), self.layer_norm("norm2")
        self.attention = SelfAttention(sizes, index, use_bias=True, position_bias=block.position_bias)
        self.feed_forward = block.feed_forward.build(sizes.dim)

    @override
    def call(
        self, states: Tensor, mask_bias: Tensor, dropout_seed: Tensor | None, num_queries: Tensor | None = None
    ) -> Tensor:
        attended = self.attention(self.norm1(states), mask_bias, dropout_seed, num_queries=num_queries)
        states = last_positions(states, num_queries) + self.drop(attended, dropout_seed, 1)
        return states + self.drop(self.feed_forward(self.norm2(states)), dropout_seed, 2)
