"""Multi-head self-attention with an output projection, the part that pre-norm blocks share."""

from __future__ import annotations

import keras
import tensorflow as tf
from typing_extensions import override

from aprec_like.models.blocks.base import BlockSizes, last_positions
from aprec_like.models.blocks.position_bias import RelativePositionBias
from aprec_like.models.transformer import TransformerLayer
from aprec_like.types import Tensor


class SelfAttention(TransformerLayer):
    """Attention of normalised states to each other.

    Args:
        sizes: of the network.
        index: number of the block in the network, from 0.
        use_bias: whether the four dense layers have biases.
        position_bias: added to the attention logits; `None` for none.
    """

    def __init__(
        self, sizes: BlockSizes, index: int, *, use_bias: bool, position_bias: RelativePositionBias | None
    ) -> None:
        super().__init__(sizes, index, name="attention")
        self.query, self.key, self.value, self.output_projection = (
            keras.layers.Dense(sizes.dim, use_bias=use_bias, name=name) for name in ("query", "key", "value", "output")
        )
        self.position_bias = None if position_bias is None else position_bias.build(sizes)

    @override
    def call(
        self, normed: Tensor, mask_bias: Tensor, dropout_seed: Tensor | None, num_queries: Tensor | None = None
    ) -> Tensor:
        """Compute (batch, queries, dim) results; the arguments are those of a block."""
        bias = None if self.position_bias is None else self.position_bias(tf.shape(normed)[1], num_queries=num_queries)
        queries = self.query(last_positions(normed, num_queries))
        mask_bias = last_positions(mask_bias, num_queries)
        attended = self.attend(queries, self.key(normed), self.value(normed), mask_bias, dropout_seed, bias)
        return self.output_projection(attended)


def num_attention_parameters(sizes: BlockSizes, *, use_bias: bool, position_bias: RelativePositionBias | None) -> int:
    """Number of trainable parameters of a `SelfAttention`."""
    num_biases = 0 if position_bias is None else position_bias.num_parameters(sizes)
    return 4 * (sizes.dim + use_bias) * sizes.dim + num_biases


def attention_activations(sizes: BlockSizes, position_bias: RelativePositionBias | None) -> int:
    """Estimated number of values per position that a `SelfAttention` keeps for the gradient."""
    num_matrices = 4 if position_bias is None else 5
    return 6 * sizes.dim + num_matrices * sizes.num_heads * sizes.max_length
