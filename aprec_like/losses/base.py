"""What a loss is. Two kinds: over sampled candidates, or over the whole catalogue."""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass

from aprec_like.errors import InputError
from aprec_like.types import Tensor


@dataclass(frozen=True)
class SampledLoss(ABC):
    """A loss over the positive and `num_negatives` drawn items of every position.

    Args:
        num_negatives: k, how many negatives it wants per position.
    """

    num_negatives: int = 1

    def __post_init__(self) -> None:
        if self.num_negatives < 1:
            raise ValueError(
                f"{type(self).__name__} needs num_negatives of at least 1. Received: num_negatives={self.num_negatives}"
            )

    def __call__(self, positive_logits: Tensor, negative_logits: Tensor, num_items: int) -> Tensor:
        """The loss of every position.

        Args:
            positive_logits: (...) logit of the item that came next.
            negative_logits: (..., k) logits of the drawn items.
            num_items: size of the catalogue that they were drawn from.

        Returns:
            (...) loss of each position.
        """
        if negative_logits.shape[-1] != self.num_negatives:
            raise ValueError(
                f"{type(self).__name__} needs negative_logits of shape (..., num_negatives={self.num_negatives}). "
                f"Received: shape {tuple(negative_logits.shape)}"
            )
        return self._formula(positive_logits, negative_logits, num_items)

    @abstractmethod
    def _formula(self, positive_logits: Tensor, negative_logits: Tensor, num_items: int) -> Tensor: ...


@dataclass(frozen=True)
class BinaryLoss(SampledLoss):
    """A sampled loss that asks of every candidate: the next item or not? The gSASRec paper's Theorem 1 is of these."""

    def sampling_rate(self, num_items: int) -> float:
        """Alpha = k / (|I| - 1)."""
        if num_items < 2:
            raise InputError(f"a sampled loss needs at least 2 items to tell apart. Received: {num_items}")
        return self.num_negatives / (num_items - 1)

    def power(self, num_items: int) -> float:
        """Beta, the power of the positive's probability: 1 in plain binary cross entropy."""
        return 1.0


@dataclass(frozen=True)
class FullLoss(ABC):
    """A loss over all items. It gets states and the item table, so that it need not hold all logits at once."""

    @abstractmethod
    def __call__(self, states: Tensor, item_table: Tensor, targets: Tensor) -> Tensor:
        """The loss of every position.

        Args:
            states: (..., dim) the network's output at each position.
            item_table: (num_items, dim) the logit of item i is its row times the state.
            targets: (...) the item that came next, from 0 to num_items - 1.

        Returns:
            (...) loss of each position.
        """
