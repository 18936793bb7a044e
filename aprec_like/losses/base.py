"""Base classes of losses over sampled candidates and of losses over the whole catalogue."""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar

from typing_extensions import override

from aprec_like.calibration import OptimalSigmoid, Probability, SigmoidProbability
from aprec_like.errors import InputError
from aprec_like.lazy_tensorflow import tf
from aprec_like.types import Tensor

if TYPE_CHECKING:
    from aprec_like.losses.left_out import LeftOut
    from aprec_like.negatives import Negatives


@dataclass(frozen=True)
class Loss:
    """Loss function, with the meaning that it gives to a model's scores; subclasses are frozen dataclasses."""

    citations: ClassVar[tuple[str, ...]] = ()
    """BibTeX keys of the works that introduced the loss."""

    @property
    def label(self) -> str:
        """Name of the loss in legends, without its number of negatives."""
        return type(self).__name__

    def probability(self, num_items: int, negatives: Negatives) -> Probability | None:
        """Return how scores of a model trained with this loss become probabilities; `None` if they don't."""
        return None

    def optimal_sigmoid(self, num_items: int, negatives: Negatives) -> OptimalSigmoid | None:
        """Return the optimal sigmoid as a function of the true probability; `None` without a closed form."""
        return None


@dataclass(frozen=True)
class SampledLoss(Loss, ABC):
    """Loss over the positive and `num_negatives` sampled items of every position.

    Args:
        num_negatives: k, the number of negatives per position.
    """

    num_negatives: int = 1

    def __post_init__(self) -> None:
        if self.num_negatives < 1:
            raise ValueError(
                f"{type(self).__name__} needs num_negatives of at least 1. Received: num_negatives={self.num_negatives}"
            )

    def __call__(
        self, positive_logits: Tensor, negative_logits: Tensor, num_items: int, counts: Tensor | None = None
    ) -> Tensor:
        """Compute the loss of every position.

        The negatives are given one by one, or as `counts`: how often each of n items was sampled.

        Args:
            positive_logits: (...) logit of the item that came next.
            negative_logits: (..., k) logits of the sampled items, or (..., n) logits of the counted items.
            num_items: size of the catalogue that they were sampled from.
            counts: (..., n) float number of times that each item was sampled, k in all; `None` if given one by one.

        Returns:
            (...) loss of each position.
        """
        if counts is not None:
            return self._formula(positive_logits, negative_logits, counts, num_items)
        if negative_logits.shape[-1] != self.num_negatives:
            raise ValueError(
                f"{type(self).__name__} needs negative_logits of shape (..., num_negatives={self.num_negatives}). "
                f"Received: shape {tuple(negative_logits.shape)}"
            )
        return self._formula(positive_logits, negative_logits, tf.ones([], negative_logits.dtype), num_items)

    @abstractmethod
    def _formula(self, positive_logits: Tensor, negative_logits: Tensor, counts: Tensor, num_items: int) -> Tensor:
        """Compute the loss of every position; a negative with a count of c stands for c equal ones."""


@dataclass(frozen=True)
class BinaryLoss(SampledLoss):
    """Sampled loss that classifies each candidate as the next item or not; Theorem 1 of the gSASRec paper applies."""

    def sampling_rate(self, num_items: int) -> float:
        """Return alpha = k / (|I| - 1)."""
        if num_items < 2:
            raise InputError(f"a sampled loss needs a catalogue of at least 2 items. Received: {num_items}")
        return self.num_negatives / (num_items - 1)

    def power(self, num_items: int) -> float:
        """Return beta, the power of the positive's probability: 1 in plain binary cross entropy."""
        return 1.0

    @override
    def probability(self, num_items: int, negatives: Negatives) -> Probability:
        return SigmoidProbability()

    @override
    def optimal_sigmoid(self, num_items: int, negatives: Negatives) -> OptimalSigmoid | None:
        if negatives.by_popularity:
            return None
        return OptimalSigmoid(self.num_negatives, num_items, self.power(num_items), negatives.excludes_positive)

    def prior_logit(self, num_items: int, negatives: Negatives) -> float:
        """Return the optimal logit of an item with the prior P = 1 / |I|."""
        optimum = self.optimal_sigmoid(num_items, negatives)
        if optimum is None:
            raise ValueError("prior_logit needs uniform negatives: there is no closed form for sampling by popularity")
        return optimum.prior_logit()


@dataclass(frozen=True)
class FullLoss(Loss, ABC):
    """Loss over all items. It takes states and the item table instead of logits, so that it can compute in chunks."""

    @property
    def leaves_out_history(self) -> bool:
        """Whether training passes the items of the user's training sequence as `left_out`."""
        return False

    @abstractmethod
    def __call__(self, states: Tensor, item_table: Tensor, targets: Tensor, left_out: LeftOut | None = None) -> Tensor:
        """Compute the loss of every position.

        Args:
            states: (..., dim) output of the network at each position.
            item_table: (num_items, dim) embeddings; the logit of an item is the product of its row and the state.
            targets: (...) the item that came next, from 0 to num_items - 1.
            left_out: items that count as if they were not in the catalogue, except where one is the target.

        Returns:
            (...) loss of each position.
        """
