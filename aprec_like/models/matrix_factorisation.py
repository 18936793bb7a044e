"""Matrix factorisation: a vector and a bias for every user and every item, trained on user-item pairs."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import keras
import numpy as np
import tensorflow as tf
from typing_extensions import override

from aprec_like.batches import Examples, FlatSequences
from aprec_like.batches.layouts import Batch, Layout, Packing, Sequences, static_batch
from aprec_like.errors import InputError
from aprec_like.filters import is_repeat
from aprec_like.gathers import gather_rows
from aprec_like.interactions import Histories, Interactions
from aprec_like.models.base import Network, NeuralModel
from aprec_like.types import Array, Tensor


@dataclass(frozen=True)
class PairExamples(Examples):
    """A case is a user with an item, given by their first interaction: the user is the input, the item the target."""

    @override
    def cases(self, train: Interactions) -> Array:
        return np.flatnonzero(~is_repeat(train))

    @override
    def make_batch(self, data: FlatSequences, cases: Tensor, seed: Tensor, layout: Layout) -> Batch:
        users = tf.searchsorted(data.offsets, cases, side="right", out_type=tf.int64) - 1
        items, positions = tf.gather(data.items, cases), tf.zeros_like(cases)
        return static_batch(Sequences(users, users[:, None], items[:, None]), positions[:, None])


@dataclass(frozen=True)
class MatrixFactorisation(NeuralModel):
    """Logits are dot products of a user's and an item's vector plus both biases; only for users seen in training.

    Args:
        embedding_dim: size of the vectors. As in LightFM, they are initialised uniformly in +-0.5 / embedding_dim and
            the biases at 0.
    """

    embedding_dim: int = 128

    def __post_init__(self) -> None:
        if self.embedding_dim < 1:
            raise ValueError(f"MatrixFactorisation needs embedding_dim of at least 1. Received: {self.embedding_dim}")

    @override
    def make_network(
        self, num_items: int, *, num_users: int = 0, logit_bias: float | None = None
    ) -> MatrixFactorisationNetwork:
        if num_users < 1:
            raise ValueError(f"MatrixFactorisation needs num_users of at least 1. Received: num_users={num_users}")
        return MatrixFactorisationNetwork(self, num_items, num_users=num_users, logit_bias=logit_bias)

    @override
    def examples(self) -> PairExamples:
        return PairExamples()

    @override
    def num_parameters(self, num_items: int, num_users: int = 0) -> int:
        return (num_items + num_users) * (self.embedding_dim + 1)

    @override
    def activations_per_case(self) -> int:
        return self.embedding_dim + 2


@keras.saving.register_keras_serializable("aprec_like")
class MatrixFactorisationNetwork(Network):
    """The network of `MatrixFactorisation`.

    A state is the user's vector, a 1 and the user's bias; an item's row is the item's vector, its bias and a 1.
    """

    def __init__(
        self, settings: MatrixFactorisation, num_items: int, *, num_users: int, logit_bias: float | None = None
    ) -> None:
        super().__init__(settings, num_items, num_users=num_users, logit_bias=logit_bias)
        limit = 0.5 / settings.embedding_dim

        def table(rows: int, columns: int, initializer: Any, name: str) -> Any:
            return self.add_weight(shape=(rows, columns), initializer=initializer, name=name)

        uniform = keras.initializers.RandomUniform(-limit, limit)
        self.user_vectors = table(num_users, settings.embedding_dim, uniform, "user_vectors")
        self.item_vectors = table(num_items, settings.embedding_dim, uniform.clone(), "item_vectors")
        self.user_biases = table(num_users, 1, "zeros", "user_biases")
        self.item_biases = table(num_items, 1, "zeros", "item_biases")

    @override
    def call(self, users: Tensor, dropout_seed: Tensor | None = None, *, packing: Packing | None = None) -> Tensor:
        """Compute (batch, 1, dim + 2) states of (batch, 1) users."""
        vectors, biases = gather_rows(self.user_vectors, users), gather_rows(self.user_biases, users)
        return tf.concat([vectors, tf.ones_like(biases), biases], axis=-1)

    @override
    def last_states(self, histories: Histories) -> Tensor:
        if histories.users is None:
            raise InputError("matrix factorisation recommends only for users seen in training, not for a new history")
        return tf.cast(self(tf.constant(histories.users)[:, None])[:, 0], tf.float32)

    @override
    def next_item_states(self, items: Tensor) -> Tensor:
        raise InputError("matrix factorisation cannot be exported: it recommends only for users seen in training")

    @property
    @override
    def score_table(self) -> Tensor:
        return tf.concat([self.item_vectors, self.item_biases, tf.ones_like(self.item_biases)], axis=1)
