"""HSTU: gated attention without softmax (Zhai et al., ICML 2024)."""

from __future__ import annotations

from dataclasses import dataclass, field

import keras
import tensorflow as tf
from typing_extensions import override

from aprec_like.models.blocks.base import Block, BlockLayer, BlockSizes, last_positions
from aprec_like.models.blocks.position_bias import RelativePositionBias
from aprec_like.models.transformer import join_heads, split_heads
from aprec_like.types import Tensor


@dataclass(frozen=True)
class HSTU(Block):
    """Attention whose weights are SiLU(q k' + position bias), gated in place of a feed-forward.

    Gate u, values v, queries q and keys k are SiLU(norm(x) W), each with its own W; x += drop(norm(weights v) * u) W'
    + b. The authors divide the weights by the number of positions, a constant that the norm after them cancels, and use
    times too; both are left out.

    Args:
        position_bias: relative position bias of the attention; `None` for none.
    """

    position_bias: RelativePositionBias | None = field(default_factory=RelativePositionBias)

    @override
    def build(self, sizes: BlockSizes, index: int) -> HSTULayer:
        return HSTULayer(self, sizes, index)

    @override
    def num_parameters(self, sizes: BlockSizes) -> int:
        num_biases = 0 if self.position_bias is None else self.position_bias.num_parameters(sizes)
        return 2 * 2 * sizes.dim + 4 * sizes.dim * sizes.dim + (sizes.dim + 1) * sizes.dim + num_biases

    @override
    def activations_per_position(self, sizes: BlockSizes) -> int:
        """Twenty values per dimension, and four attention matrices."""
        return 20 * sizes.dim + 4 * sizes.num_heads * sizes.max_length


class HSTULayer(BlockLayer):
    """The layer of `HSTU`."""

    def __init__(self, block: HSTU, sizes: BlockSizes, index: int) -> None:
        super().__init__(sizes, index)
        self.norm1, self.norm2 = self.layer_norm("norm1"), self.layer_norm("norm2")
        self.gate, self.value, self.query, self.key = (
            keras.layers.Dense(sizes.dim, activation="silu", use_bias=False, name=name)
            for name in ("gate", "value", "query", "key")
        )
        self.output_projection = keras.layers.Dense(sizes.dim, name="output")
        self.position_bias = None if block.position_bias is None else block.position_bias.build(sizes)

    @override
    def call(
        self, states: Tensor, mask_bias: Tensor, dropout_seed: Tensor | None, num_queries: Tensor | None = None
    ) -> Tensor:
        normed = self.norm1(states)
        last_normed = last_positions(normed, num_queries)
        queries, keys, values = (
            split_heads(tensor, self.num_heads)
            for tensor in (self.query(last_normed), self.key(normed), self.value(normed))
        )
        bias = last_positions(mask_bias, num_queries)[:, None]
        if self.position_bias is not None:
            bias += self.position_bias(tf.shape(states)[1], num_queries=num_queries)
        # A masked key has a large negative logit, whose SiLU is 0.
        weights = tf.nn.silu(tf.matmul(queries, keys, transpose_b=True) + bias)
        attended = join_heads(tf.matmul(weights, values))
        gated = self.drop(self.norm2(attended) * self.gate(last_normed), dropout_seed, 1)
        return last_positions(states, num_queries) + self.output_projection(gated)
