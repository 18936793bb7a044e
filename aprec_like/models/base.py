"""The contracts of models: what is trained, what is counted, and what both become: a scorer."""

from __future__ import annotations

from abc import ABC, abstractmethod

import keras
import numpy as np
import tensorflow as tf

from aprec_like.batches import Batch, Examples
from aprec_like.interactions import Histories, Interactions
from aprec_like.types import Array, Tensor


class Scorer(ABC):
    """What ranking needs of a model: a score for every item, higher is better."""

    @abstractmethod
    def score(self, histories: Histories) -> Tensor | Array:
        """(users, num_items) float32 scores of all items of the catalogue."""


class CommonScorer(Scorer):
    """Scores items the same for everyone."""

    @property
    @abstractmethod
    def common_scores(self) -> Array:
        """(num_items,) float32."""

    def score(self, histories: Histories) -> Array:
        """The same row for every user."""
        return np.broadcast_to(self.common_scores, (len(histories), len(self.common_scores)))


class CountingModel(ABC):
    """A model without gradients. Subclasses are frozen dataclasses of its settings."""

    @abstractmethod
    def fit(self, known: Interactions) -> Scorer:
        """Learn from all interactions that may be known."""


class Network(keras.Model):
    """A network whose score of an item is the dot product of a state and the item's row in a table."""

    num_items: int

    logit_bias: Tensor | None = None
    """A trainable number added to every logit, where the network was built with one; changes no ranking."""

    def _add_logit_bias(self, start: float | None) -> None:
        """For constructors: have a `logit_bias` that starts here, or none."""
        if start is not None:
            initializer = keras.initializers.Constant(start)
            self.logit_bias = self.add_weight(shape=(), initializer=initializer, name="logit_bias")

    @abstractmethod
    def call(self, items: Tensor, dropout_seed: Tensor | None = None) -> Tensor:
        """(batch, length, dim) states from (batch, length) items, left-padded with PADDING.

        Args:
            items: (batch, length) items.
            dropout_seed: (2,) integers that decide what is dropped; `None` drops nothing (inference).
        """

    def target_states(self, batch: Batch, dropout_seed: Tensor | None = None) -> Tensor:
        """(targets, dim) the states from which the targets of a training batch are predicted."""
        pieces = self.piece_states(batch, dropout_seed)
        flat = tf.concat([tf.reshape(states, [-1, states.shape[-1]]) for states in pieces], axis=0)
        return self.project(tf.gather(flat, batch.places))

    def piece_states(self, batch: Batch, dropout_seed: Tensor | None = None) -> list[Tensor]:
        """(sequences, length, dim) the states of every piece of a batch, not yet projected."""
        seeds: list[Tensor | None] = [None] * len(batch.pieces)
        if dropout_seed is not None:
            seeds = [
                tf.random.experimental.stateless_fold_in(dropout_seed, number, alg="philox")
                for number in range(len(batch.pieces))
            ]
        # One graph serves all pieces. A single piece goes without: XLA takes the shapes that the gradient of an inner
        # graph gets from it for values, and would compile the step anew for every step.
        run = self if len(batch.pieces) == 1 else self._traced
        states = [run(piece.inputs, seed) for piece, seed in zip(batch.pieces, seeds, strict=True)]
        return [tf.cast(some, tf.float32) for some in states]

    @tf.function(reduce_retracing=True)
    def _traced(self, inputs: Tensor, dropout_seed: Tensor | None) -> Tensor:
        """The network as one graph for all pieces of a shape."""
        return self(inputs, dropout_seed)

    def project(self, states: Tensor) -> Tensor:
        """States as the item table scores them."""
        return states

    @abstractmethod
    def last_states(self, histories: Histories) -> Tensor:
        """(users, dim) the state from which the next item of each history is predicted."""

    @property
    @abstractmethod
    def score_table(self) -> Tensor:
        """(at least num_items, dim) the row that scores each item, then those of special tokens, if any."""

    @property
    def item_table(self) -> Tensor:
        """(num_items, dim) the row that scores each item of the catalogue."""
        return self.score_table[: self.num_items]

    def item_rows(self, items: Tensor) -> Tensor:
        """(..., dim) the rows that score some items; where possible only they are read and get a gradient."""
        return tf.gather(self.score_table, items)


class NeuralModel(ABC):
    """The architecture of a network. Subclasses are frozen dataclasses of its settings."""

    embedding_dim: int

    @abstractmethod
    def build(self, num_items: int, *, num_users: int = 0, logit_bias: float | None = None) -> Network:
        """A network with fresh weights, drawn from Keras' global seed.

        Args:
            num_items: size of the catalogue.
            num_users: how many users the training data has; for models that learn something of each user.
            logit_bias: where a trainable number that is added to every logit starts; `None` for none.
        """

    @abstractmethod
    def examples(self) -> Examples:
        """How training sequences become inputs and targets."""

    @abstractmethod
    def num_parameters(self, num_items: int, num_users: int = 0) -> int:
        """How many trainable numbers the network has, without building it."""

    @abstractmethod
    def activations_per_case(self) -> int:
        """About how many numbers a training step keeps per case for the gradient, logits apart."""

    @abstractmethod
    def targets_per_case(self) -> int:
        """How many positions of a training case can have a target."""
