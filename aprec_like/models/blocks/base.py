"""Base classes of blocks: the settings of a block, and the Keras layer that they build."""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import Any

from typing_extensions import override

from aprec_like.models.transformer import LayerNorm, TransformerLayer
from aprec_like.types import Tensor


@dataclass(frozen=True)
class BlockSizes:
    """Sizes that all blocks of a network share.

    Args:
        max_length: largest number of positions.
        dim: size of the states.
        num_heads: number of attention heads; divides `dim`.
        dropout_rate: of all dropouts.
        layer_norm_epsilon: of all layer norms.
    """

    max_length: int
    dim: int
    num_heads: int
    dropout_rate: float
    layer_norm_epsilon: float


class Block(ABC):
    """A block of a transformer. Subclasses are frozen dataclasses of its settings."""

    @abstractmethod
    def build(self, sizes: BlockSizes, index: int) -> BlockLayer:
        """Make the Keras layer of block number `index`, from 0, with new weights."""

    @abstractmethod
    def num_parameters(self, sizes: BlockSizes) -> int:
        """Number of trainable parameters, without building the layer."""

    @abstractmethod
    def activations_per_position(self, sizes: BlockSizes) -> int:
        """Estimated number of values that a training step keeps per position for the gradient."""


class BlockLayer(TransformerLayer):
    """The layer of a block.

    Args:
        sizes: of the network.
        index: number of the block in the network, from 0.
    """

    def __init__(self, sizes: BlockSizes, index: int) -> None:
        super().__init__(sizes, index, name=f"block{index}")
        self.sizes = sizes

    @abstractmethod
    @override
    def call(
        self, states: Tensor, mask_bias: Tensor, dropout_seed: Tensor | None, num_queries: Tensor | None = None
    ) -> Tensor:
        """Compute (batch, queries, dim) states of the last `num_queries` positions, all by default.

        Args:
            states: (batch, length, dim) states of the block before.
            mask_bias: (batch, length or 1, length) from `attention_mask_bias`.
            dropout_seed: (2,) seed of dropout, or `None`.
            num_queries: number of last positions to compute.
        """

    def layer_norm(self, name: str) -> Any:
        """Make a layer norm of the states. For constructors."""
        return LayerNorm(epsilon=self.sizes.layer_norm_epsilon, name=name)


def last_positions(values: Tensor, num_queries: Tensor | None) -> Tensor:
    """Cut (batch, length, ...) values to the last `num_queries` positions; an axis of 1 stands for all of them."""
    return values if num_queries is None or values.shape[1] == 1 else values[:, -num_queries:]
