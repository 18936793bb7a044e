"""The contracts of models: what is trained, what is counted, and what both become: a scorer."""

from __future__ import annotations

from abc import ABC, abstractmethod

import keras

from aprec_like.batches import ShiftedExamples, Tensor
from aprec_like.interactions import Array, Histories, Interactions


class Scorer(ABC):
    """What ranking needs of a model: a score for every item, higher is better."""

    @abstractmethod
    def score(self, histories: Histories) -> Tensor | Array:
        """(users, num_items) float32 scores of all items of the catalogue."""


class CountingModel(ABC):
    """A model without gradients. Subclasses are frozen dataclasses of its settings."""

    @abstractmethod
    def fit(self, known: Interactions) -> Scorer:
        """Learn from all interactions that may be known."""


class Network(keras.Model):
    """A network whose score of an item is the dot product of a state and the item's row in a table."""

    logit_offset: Tensor | None = None
    """A trainable number added to every logit, where the network was built with one; changes no ranking."""

    def _add_logit_offset(self, start: float | None) -> None:
        """For constructors: have a `logit_offset` that starts here, or none."""
        if start is not None:
            initializer = keras.initializers.Constant(start)
            self.logit_offset = self.add_weight(shape=(), initializer=initializer, name="logit_offset")

    @abstractmethod
    def call(self, items: Tensor, dropout_seed: Tensor | None = None) -> Tensor:
        """(batch, length, dim) states from (batch, length) items, left-padded with PADDING.

        Args:
            items: (batch, length) items.
            dropout_seed: (2,) integers that decide what is dropped; `None` drops nothing (inference).
        """

    @abstractmethod
    def last_states(self, histories: Histories) -> Tensor:
        """(users, dim) the state from which the next item of each history is predicted."""

    @property
    @abstractmethod
    def item_table(self) -> Tensor:
        """(num_items, dim) the row of each item of the catalogue, without special tokens."""


class NeuralModel(ABC):
    """The architecture of a network. Subclasses are frozen dataclasses of its settings."""

    @abstractmethod
    def build(self, num_items: int, logit_offset: float | None = None) -> Network:
        """A network with fresh weights, drawn from Keras' global seed.

        Args:
            num_items: size of the catalogue.
            logit_offset: where a trainable number that is added to every logit starts; `None` for none.
        """

    @abstractmethod
    def examples(self) -> ShiftedExamples:
        """How training sequences become inputs and targets."""

    @abstractmethod
    def num_parameters(self, num_items: int) -> int:
        """How many trainable numbers the network has, without building it."""
