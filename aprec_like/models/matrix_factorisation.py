"""Matrix factorisation: a vector and a bias for every user and every item."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import keras
import tensorflow as tf

from aprec_like.batches import PairExamples
from aprec_like.errors import InputError
from aprec_like.interactions import Histories
from aprec_like.models.base import Network, NeuralModel
from aprec_like.types import Tensor


@dataclass(frozen=True)
class MatrixFactorisation(NeuralModel):
    """Scores by the dot product of a user's and an item's vector, plus both biases. Knows only users seen in training.

    Args:
        embedding_dim: size of the vectors. They start uniform in +-0.5 / embedding_dim, the biases at 0, as in LightFM.
    """

    embedding_dim: int = 128

    def __post_init__(self) -> None:
        if self.embedding_dim < 1:
            raise ValueError(f"MatrixFactorisation needs embedding_dim of at least 1. Received: {self.embedding_dim}")

    def build(self, num_items: int, *, num_users: int = 0, logit_bias: float | None = None) -> Network:
        """A network with fresh weights."""
        if num_users < 1:
            raise ValueError(f"MatrixFactorisation needs num_users of at least 1. Received: num_users={num_users}")
        network = MatrixFactorisationNetwork(self, num_items, num_users, logit_bias)
        network(tf.zeros([1, 1], tf.int32))
        return network

    def examples(self) -> PairExamples:
        """Every user with each of the items is a case."""
        return PairExamples()

    def num_parameters(self, num_items: int, num_users: int = 0) -> int:
        """A vector and a bias each."""
        return (num_items + num_users) * (self.embedding_dim + 1)

    def activations_per_case(self) -> int:
        """The state."""
        return self.embedding_dim + 2

    def targets_per_case(self) -> int:
        """The item of the interaction."""
        return 1


class MatrixFactorisationNetwork(Network):
    """The vectors. A state is the user's vector, 1 and the user's bias; it meets the item's vector, bias and 1."""

    def __init__(self, settings: MatrixFactorisation, num_items: int, num_users: int, logit_bias: float | None) -> None:
        super().__init__(name="matrix_factorisation")
        self._add_logit_bias(logit_bias)
        self.num_items, self.num_users = num_items, num_users
        limit = 0.5 / settings.embedding_dim

        def table(rows: int, columns: int, initializer: Any, name: str) -> Any:
            return self.add_weight(shape=(rows, columns), initializer=initializer, name=name)

        uniform = keras.initializers.RandomUniform(-limit, limit)
        self.user_vectors = table(num_users, settings.embedding_dim, uniform, "user_vectors")
        self.item_vectors = table(num_items, settings.embedding_dim, uniform.clone(), "item_vectors")
        self.user_biases = table(num_users, 1, "zeros", "user_biases")
        self.item_biases = table(num_items, 1, "zeros", "item_biases")

    def call(self, users: Tensor, dropout_seed: Tensor | None = None) -> Tensor:
        """(batch, 1, dim + 2) states of (batch, 1) users."""
        vectors, biases = tf.gather(self.user_vectors, users), tf.gather(self.user_biases, users)
        return tf.concat([vectors, tf.ones_like(biases), biases], axis=-1)

    def last_states(self, histories: Histories) -> Tensor:
        """(users, dim + 2) the states of the users; their histories are in their vectors."""
        if histories.users is None:
            raise InputError("matrix factorisation recommends only for users seen in training, not for a new history")
        return tf.cast(self(tf.constant(histories.users)[:, None])[:, 0], tf.float32)

    @property
    def score_table(self) -> Tensor:
        """(num_items, dim + 2)."""
        return tf.concat([self.item_vectors, self.item_biases, tf.ones_like(self.item_biases)], axis=1)
