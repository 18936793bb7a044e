"""The block of both published implementations of SASRec."""

from __future__ import annotations

from dataclasses import dataclass

import keras
import tensorflow as tf
from typing_extensions import override

from aprec_like.models.blocks.base import Block, BlockLayer, BlockSizes, last_positions
from aprec_like.types import Tensor


@dataclass(frozen=True)
class SASRecBlock(Block):
    """Attention and a feed-forward of the same width, as published.

    As in both original implementations, only the queries are normalised (keys and values come from the block's raw
    input), both residual connections start from a normalised value, and no projection follows the attention.
    """

    @override
    def build(self, sizes: BlockSizes, index: int) -> SASRecBlockLayer:
        return SASRecBlockLayer(sizes, index)

    @override
    def num_parameters(self, sizes: BlockSizes) -> int:
        return 2 * 2 * sizes.dim + 5 * (sizes.dim + 1) * sizes.dim  # two norms and five dense layers

    @override
    def activations_per_position(self, sizes: BlockSizes) -> int:
        """Sixteen values per dimension, and four attention matrices."""
        return 16 * sizes.dim + 4 * sizes.num_heads * sizes.max_length


class SASRecBlockLayer(BlockLayer):
    """The layer of `SASRecBlock`."""

    def __init__(self, sizes: BlockSizes, index: int) -> None:
        super().__init__(sizes, index)
        self.norm1, self.norm2 = self.layer_norm("norm1"), self.layer_norm("norm2")
        self.query = keras.layers.Dense(sizes.dim, name="query")
        self.key = keras.layers.Dense(sizes.dim, name="key")
        self.value = keras.layers.Dense(sizes.dim, name="value")
        self.ffn1 = keras.layers.Dense(sizes.dim, activation="relu", name="ffn1")
        self.ffn2 = keras.layers.Dense(sizes.dim, name="ffn2")

    @override
    def build(self, states_shape: tuple[int | None, ...]) -> None:
        """Build the layers whose weights `call` uses without calling them."""
        for layer in (self.query, self.key):
            layer.build(states_shape)

    @override
    def call(
        self, states: Tensor, mask_bias: Tensor, dropout_seed: Tensor | None, num_queries: Tensor | None = None
    ) -> Tensor:
        mask_bias = last_positions(mask_bias, num_queries)
        normed = self.norm1(last_positions(states, num_queries))
        queries, keys = self._queries_and_keys(normed, states)
        attended = self.attend(queries, keys, self.value(states), mask_bias, dropout_seed)
        attended = self.norm2(attended + normed)
        inner = self.drop(self.ffn1(attended), dropout_seed, 1)
        return self.drop(self.ffn2(inner), dropout_seed, 2) + attended

    def _queries_and_keys(self, normed: Tensor, states: Tensor) -> tuple[Tensor, Tensor]:
        """Compute the (batch, queries, dim) queries and (batch, length, dim) keys.

        (x Wq + bq) (h Wk + bk)' is (x Wq Wk' + bq Wk') h' plus a number that is the same for all keys of a query, which
        the softmax cancels. So with a single head the states themselves serve as keys.
        """
        if self.num_heads > 1:
            return self.query(normed), self.key(states)
        weights = (*self.query.weights, self.key.kernel)
        kernel, bias, key_kernel = (tf.convert_to_tensor(weight) for weight in weights)
        kernel, bias = (tf.matmul(weight, key_kernel, transpose_b=True) for weight in (kernel, bias[None]))
        return tf.tensordot(normed, kernel, axes=1) + bias, states
