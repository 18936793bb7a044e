"""Settings of optimisers: frozen, and turned into the Keras ones for every training anew."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import keras


@dataclass(frozen=True)
class Adam:
    """Settings of the Adam optimiser; the defaults are Keras'."""

    learning_rate: float = 1e-3
    beta_1: float = 0.9
    beta_2: float = 0.999
    epsilon: float = 1e-7

    def __post_init__(self) -> None:
        if not self.learning_rate > 0:
            raise ValueError(f"Adam needs a positive learning_rate. Received: learning_rate={self.learning_rate}")

    def build(self) -> Any:
        """The Keras optimiser."""
        return keras.optimizers.Adam(self.learning_rate, self.beta_1, self.beta_2, self.epsilon)


@dataclass(frozen=True)
class Adagrad:
    """Settings of the Adagrad optimiser.

    Args:
        learning_rate: of a parameter that has not moved yet.
        initial_accumulator: what the sum of squared gradients starts from.
    """

    learning_rate: float = 0.05
    initial_accumulator: float = 0.1

    def build(self) -> Any:
        """The Keras optimiser."""
        return keras.optimizers.Adagrad(self.learning_rate, self.initial_accumulator)
