"""Relative position bias: a trainable summand of attention logits for every distance."""

from __future__ import annotations

from dataclasses import dataclass

import keras
import tensorflow as tf
from typing_extensions import override

from aprec_like.gathers import gather_rows
from aprec_like.models.blocks.base import BlockSizes
from aprec_like.types import Tensor


@dataclass(frozen=True)
class RelativePositionBias:
    """A number per attention head and distance between query and key, added to the attention logits; it starts at 0.

    Sequences in packed rows keep the distances between their own items, so a bias needs no position table.
    """

    def build(self, sizes: BlockSizes) -> PositionBiasLayer:
        """Make the layer, with new weights."""
        return PositionBiasLayer(sizes)

    def num_parameters(self, sizes: BlockSizes) -> int:
        """Number of trainable parameters."""
        return (2 * sizes.max_length - 1) * sizes.num_heads


class PositionBiasLayer(keras.layers.Layer):
    """The layer of `RelativePositionBias`. A key that is d positions before the query has row max_length - 1 + d."""

    def __init__(self, sizes: BlockSizes) -> None:
        super().__init__(name="position_bias")
        self.max_length, shape = sizes.max_length, (2 * sizes.max_length - 1, sizes.num_heads)
        self.table = self.add_weight(shape=shape, initializer="zeros", name="distances")

    @override
    def call(self, length: Tensor, num_queries: Tensor | None = None) -> Tensor:
        """Compute the (heads, queries, length) bias of the last `num_queries` positions, all by default."""
        keys = tf.range(length)
        queries = keys if num_queries is None else keys[-num_queries:]
        rows = gather_rows(tf.convert_to_tensor(self.table), self.max_length - 1 + queries[:, None] - keys)
        return tf.cast(tf.transpose(rows, [2, 0, 1]), self.compute_dtype)
