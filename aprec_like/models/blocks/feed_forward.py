"""Feed-forward parts of blocks: two dense layers with a non-linearity between them."""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass

import keras
import tensorflow as tf
from typing_extensions import override

from aprec_like.types import Tensor


@dataclass(frozen=True)
class FeedForward(ABC):
    """A feed-forward of every position.

    Args:
        expansion: width of the inner layer, in multiples of the states' size.
    """

    expansion: int = 4

    def __post_init__(self) -> None:
        if self.expansion < 1:
            raise ValueError(
                f"{type(self).__name__} needs expansion of at least 1. Received: expansion={self.expansion}"
            )

    @abstractmethod
    def build(self, dim: int) -> keras.layers.Layer:
        """Make the layer, from (..., dim) to (..., dim), with new weights."""

    @abstractmethod
    def num_parameters(self, dim: int) -> int:
        """Number of trainable parameters."""

    @abstractmethod
    def activations_per_position(self, dim: int) -> int:
        """Estimated number of values kept for the gradient."""


@dataclass(frozen=True)
class GELU(FeedForward):
    """GELU(x W1 + b1) W2 + b2."""

    @override
    def build(self, dim: int) -> keras.layers.Layer:
        return GELULayer(dim, self.expansion * dim)

    @override
    def num_parameters(self, dim: int) -> int:
        return (dim + 1) * self.expansion * dim + (self.expansion * dim + 1) * dim

    @override
    def activations_per_position(self, dim: int) -> int:
        return (4 * self.expansion + 2) * dim


@dataclass(frozen=True)
class SwiGLU(FeedForward):
    """(SiLU(x W1) * x W2) W3, without biases (Shazeer, 2020)."""

    @override
    def build(self, dim: int) -> keras.layers.Layer:
        return SwiGLULayer(dim, self.expansion * dim)

    @override
    def num_parameters(self, dim: int) -> int:
        return 3 * self.expansion * dim * dim

    @override
    def activations_per_position(self, dim: int) -> int:
        return (6 * self.expansion + 2) * dim


class GELULayer(keras.layers.Layer):
    """The layer of `GELU`."""

    def __init__(self, dim: int, width: int) -> None:
        super().__init__(name="feed_forward")
        self.inner, self.outer = keras.layers.Dense(width, name="inner"), keras.layers.Dense(dim, name="outer")

    @override
    def call(self, states: Tensor) -> Tensor:
        return self.outer(tf.nn.gelu(self.inner(states), approximate=True))


class SwiGLULayer(keras.layers.Layer):
    """The layer of `SwiGLU`."""

    def __init__(self, dim: int, width: int) -> None:
        super().__init__(name="feed_forward")
        self.gate = keras.layers.Dense(width, use_bias=False, name="gate")
        self.inner = keras.layers.Dense(width, use_bias=False, name="inner")
        self.outer = keras.layers.Dense(dim, use_bias=False, name="outer")

    @override
    def call(self, states: Tensor) -> Tensor:
        return self.outer(tf.nn.silu(self.gate(states)) * self.inner(states))
