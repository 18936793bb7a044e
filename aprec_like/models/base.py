"""Base classes of models: neural architectures and their networks, counting models, and the scorers of both."""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import Any

import keras
import numpy as np
import tensorflow as tf
from typing_extensions import override

from aprec_like.batches import Examples
from aprec_like.batches.layouts import Batch, PackedBucket, Packing
from aprec_like.batches.shards import current_replica
from aprec_like.errors import InputError
from aprec_like.gathers import gather_distinct, gather_rows
from aprec_like.interactions import Histories, Interactions
from aprec_like.settings import dataclasses_in, describe, restore
from aprec_like.types import Array, Json, Tensor


class Scorer(ABC):
    """A model that can rank: scores every item of the catalogue, higher is better."""

    @abstractmethod
    def score(self, histories: Histories) -> Tensor | Array:
        """(users, num_items) float32 scores of all items of the catalogue."""


class CommonScorer(Scorer):
    """A scorer whose scores are the same for all users."""

    @property
    @abstractmethod
    def common_scores(self) -> Array:
        """(num_items,) float32 scores."""

    @override
    def score(self, histories: Histories) -> Array:
        return np.broadcast_to(self.common_scores, (len(histories), len(self.common_scores)))


class CountingModel(ABC):
    """A model that is fitted by counting. Subclasses are frozen dataclasses of its settings."""

    @abstractmethod
    def fit(self, known: Interactions) -> Scorer:
        """Fit to `known`, the interactions that the recipe's models learn from."""


class Network(keras.Model):
    """A network whose logit of an item is the dot product of a state and the item's row in a table."""

    settings: Any
    """The architecture, a `NeuralModel`."""

    num_items: int
    num_users: int = 0

    logit_bias: Tensor | None = None
    """Trainable bias added to all logits; `None` in a network built without one. Rankings do not change."""

    def _add_logit_bias(self, value: float | None) -> None:
        """Create `logit_bias` with this initial value; none if `None`. For constructors."""
        if value is not None:
            initializer = keras.initializers.Constant(value)
            self.logit_bias = self.add_weight(shape=(), initializer=initializer, name="logit_bias")

    @override
    def get_config(self) -> Json:
        """Return what a new network is built from, for `save` and `keras.saving.load_model`."""
        bias = None if self.logit_bias is None else 0.0
        settings = describe(self.settings)
        return {"settings": settings, "num_items": self.num_items, "num_users": self.num_users, "logit_bias": bias}

    @classmethod
    @override
    def from_config(cls, config: Json) -> Network:
        """Build a network with new weights from the values of `get_config`."""
        from aprec_like import models  # after all its modules

        sizes = {name: config[name] for name in ("num_items", "num_users", "logit_bias")}
        return restore(config["settings"], dataclasses_in(models)).build(**sizes)

    @override
    def get_build_config(self) -> None:
        """Return nothing: `from_config` returns networks that are built."""

    @abstractmethod
    def call(self, items: Tensor, dropout_seed: Tensor | None = None, *, packing: Packing | None = None) -> Tensor:
        """Compute (batch, length, dim) states.

        Args:
            items: (batch, length) items, padded on the left with PADDING.
            dropout_seed: (2,) seed of dropout; `None` for no dropout (inference).
            packing: which sequences share a row; `None` if each has a row of its own.
        """

    def target_states(self, batch: Batch, dropout_seed: Tensor | None = None) -> Tensor:
        """(targets, dim) projected states from which the targets of a training batch are predicted."""
        return self.project(gather_targets(self.bucket_states(batch, dropout_seed), batch))

    def bucket_states(self, batch: Batch, dropout_seed: Tensor | None = None) -> list[Tensor]:
        """The (sequences, length, dim) states of every bucket of a batch, not yet projected."""
        seeds: list[Tensor | None] = [None] * len(batch.buckets)
        if dropout_seed is not None:
            seeds = [
                tf.random.experimental.stateless_fold_in(dropout_seed, index, alg="philox")
                for index in range(len(batch.buckets))
            ]
        bucket = batch.buckets[0]
        if isinstance(bucket, PackedBucket):
            return [tf.cast(self(bucket.inputs, seeds[0], packing=bucket.packing), tf.float32)]
        # Buckets share one traced graph. A single bucket is called directly: XLA would take the shapes in the gradient
        # of a nested graph for values, and compile the step again at every step. A replica has a graph of its own.
        is_called = len(batch.buckets) == 1 or current_replica().num_replicas > 1
        call = self if is_called else self._traced_call
        states = [call(bucket.inputs, seed) for bucket, seed in zip(batch.buckets, seeds, strict=True)]
        return [tf.cast(tensor, tf.float32) for tensor in states]

    @tf.function(reduce_retracing=True)
    def _traced_call(self, inputs: Tensor, dropout_seed: Tensor | None) -> Tensor:
        return self(inputs, dropout_seed)

    def project(self, states: Tensor) -> Tensor:
        """Transform states to the form that is multiplied with the item table; the identity by default."""
        return states

    @abstractmethod
    def last_states(self, histories: Histories) -> Tensor:
        """(users, dim) projected state from which the next item of each history is predicted."""

    def next_item_states(self, items: Tensor) -> Tensor:
        """(users, dim) the states of `last_states` for histories in a tensor, by TensorFlow operations only.

        Exported models compute it. The default raises `InputError`: the network cannot be exported.

        Args:
            items: (users, length of at least 1) int32 items, padded on the left with PADDING, of any length.
        """
        raise InputError(f"{type(self).__name__} cannot be exported: it has no next_item_states")

    @property
    @abstractmethod
    def score_table(self) -> Tensor:
        """(at least num_items, dim) output table: a row per item, then rows of special tokens, if any."""

    @property
    def item_table(self) -> Tensor:
        """(num_items, dim) output table without special tokens."""
        return self.score_table[: self.num_items]

    def item_rows(self, items: Tensor) -> Tensor:
        """(..., dim) rows of the output table; subclasses read, and give a gradient to, only these rows if they can."""
        return gather_rows(self.score_table, items)


def gather_targets(bucket_values: list[Tensor], batch: Batch) -> Tensor:
    """(targets, n) the rows at the targets' positions, from the (sequences, length, n) values of every bucket."""
    flat = tf.concat([tf.reshape(values, [-1, values.shape[-1]]) for values in bucket_values], axis=0)
    return gather_distinct(flat, batch.flat_positions)


class NeuralModel(ABC):
    """The architecture of a network. Subclasses are frozen dataclasses of its settings."""

    embedding_dim: int

    @abstractmethod
    def build(self, num_items: int, *, num_users: int = 0, logit_bias: float | None = None) -> Network:
        """Build a network with new weights, drawn from Keras' global seed.

        Args:
            num_items: size of the catalogue.
            num_users: number of users in the training data; for models with parameters per user.
            logit_bias: initial value of a trainable bias of all logits; `None` for no bias.
        """

    @abstractmethod
    def examples(self) -> Examples:
        """How training data becomes inputs and targets."""

    @abstractmethod
    def num_parameters(self, num_items: int, num_users: int = 0) -> int:
        """Number of trainable parameters of the network, without building it."""

    @abstractmethod
    def activations_per_case(self) -> int:
        """Estimated number of values that a training step keeps per case for the gradient, without logits."""

    @abstractmethod
    def targets_per_case(self) -> int:
        """Maximum number of targets of a training case."""
