"""Base classes of models: neural architectures and their networks, counting models, and the scorers of both."""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import Any

import keras
import numpy as np
import tensorflow as tf
from typing_extensions import override

from aprec_like.batches import Examples, PaddedExamples, TimeGaps
from aprec_like.batches.layouts import Batch, PackedBucket, Packing
from aprec_like.batches.shards import current_replica
from aprec_like.errors import InputError
from aprec_like.gathers import gather_distinct, gather_rows
from aprec_like.interactions import PADDING, Histories, Interactions
from aprec_like.settings import dataclasses_in, describe, restore
from aprec_like.types import Array, Json, Tensor


class Scorer(ABC):
    """A model that can rank: scores every item of the catalogue, higher is better."""

    @property
    def needs_times(self) -> bool:
        """Whether histories need timestamps."""
        return False

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
    """A network whose logit of an item is the dot product of a state and the item's row in a table.

    Subclasses define `call` and `score_table`; their constructors call this one first.

    Args:
        settings: the architecture, a `NeuralModel`.
        num_items: size of the catalogue.
        num_users: number of users in the training data; for models with parameters per user.
        logit_bias: initial value of a trainable bias that is added to all logits and changes no ranking; `None` for no
            bias.
    """

    def __init__(self, settings: Any, num_items: int, *, num_users: int = 0, logit_bias: float | None = None) -> None:
        super().__init__(name=type(settings).__name__.lower())
        self.settings, self.num_items, self.num_users = settings, num_items, num_users
        self.logit_bias: Tensor | None = None
        if logit_bias is not None:
            initializer = keras.initializers.Constant(logit_bias)
            self.logit_bias = self.add_weight(shape=(), initializer=initializer, name="logit_bias")

    @property
    def needs_times(self) -> bool:
        """Whether histories need timestamps: the network is called with codes of time gaps."""
        return self.settings.time_gaps is not None

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
            packing: which sequences share a row; `None` if each has a row of its own. Only networks whose examples
                may be packed, such as `ShiftedExamples`, need this argument.
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
            states = self(bucket.inputs, seeds[0], packing=bucket.packing, **_gaps_argument(bucket.gaps))
            return [tf.cast(states, tf.float32)]
        # Buckets share one traced graph. A single bucket is called directly: XLA would take the shapes in the gradient
        # of a nested graph for values, and compile the step again at every step. A replica has a graph of its own.
        is_called = len(batch.buckets) == 1 or current_replica().num_replicas > 1
        call = self._call_bucket if is_called else self._traced_call
        states = [call(bucket.inputs, seed, bucket.gaps) for bucket, seed in zip(batch.buckets, seeds, strict=True)]
        return [tf.cast(tensor, tf.float32) for tensor in states]

    @tf.function(reduce_retracing=True)
    def _traced_call(self, inputs: Tensor, dropout_seed: Tensor | None, gaps: tuple[Tensor, ...]) -> Tensor:
        return self._call_bucket(inputs, dropout_seed, gaps)

    def _call_bucket(self, inputs: Tensor, dropout_seed: Tensor | None, gaps: tuple[Tensor, ...]) -> Tensor:
        return self(inputs, dropout_seed, **_gaps_argument(gaps))

    def project(self, states: Tensor) -> Tensor:
        """Transform states to the form that is multiplied with the item table; the identity by default."""
        return states

    def last_states(self, histories: Histories) -> Tensor:
        """(users, dim) projected state from which the next item of each history is predicted."""
        return self.next_item_states(histories.last(self.settings.max_length))

    @tf.function(input_signature=[tf.TensorSpec([None, None], tf.int32)])
    def next_item_states(self, items: Tensor) -> Tensor:
        """(users, dim) the states of `last_states` for histories in a tensor, by TensorFlow operations only.

        Exported models compute it. By default it is the last state of the last `max_length` items.

        Args:
            items: (users, length of at least 1) int32 items, padded on the left with PADDING, of any length.
        """
        missing = tf.maximum(0, self.settings.max_length - tf.shape(items)[1])
        items = tf.pad(items, [[0, 0], [missing, 0]], constant_values=PADDING)[:, -self.settings.max_length :]
        return self.project(tf.cast(self(items)[:, -1], tf.float32))

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


def _gaps_argument(gaps: tuple[Tensor, ...]) -> dict[str, Tensor]:
    """Return the argument `gaps` of a network's call, for networks that have it."""
    return {"gaps": gaps[0]} if gaps else {}


def gather_targets(bucket_values: list[Tensor], batch: Batch) -> Tensor:
    """(targets, n) the rows at the targets' positions, from the (sequences, length, n) values of every bucket."""
    flat = tf.concat([tf.reshape(values, [-1, values.shape[-1]]) for values in bucket_values], axis=0)
    return gather_distinct(flat, batch.flat_positions)


ACTIVATIONS_PER_VALUE = 32
"""Values kept for the gradient per position and dimension, where a model does not say: as much as two SASRec blocks."""

LAYERS_THAT_NEED_TRAINING_MODE = (
    keras.layers.Dropout,
    keras.layers.AlphaDropout,
    keras.layers.GaussianDropout,
    keras.layers.GaussianNoise,
    keras.layers.BatchNormalization,
)


class NeuralModel(ABC):
    """The architecture of a network. Subclasses are frozen dataclasses of its settings.

    A model of sequences defines `make_network` and the settings `max_length` and `embedding_dim`. All else has a
    default that is right for any causal network; models override it to be faster, or to learn from other examples.
    """

    max_length: int
    """Number of last items that the network sees, for models of sequences."""

    embedding_dim: int

    time_gaps: TimeGaps | None = None
    """How the network sees the times of interactions, for which the data needs timestamps; `None` if it does not."""

    @abstractmethod
    def make_network(self, num_items: int, *, num_users: int = 0, logit_bias: float | None = None) -> Network:
        """Make a network, whose weights may be created by its first call. The arguments are those of `build`."""

    def build(self, num_items: int, *, num_users: int = 0, logit_bias: float | None = None) -> Network:
        """Build a network with new weights, drawn from Keras' global seed.

        Args:
            num_items: size of the catalogue.
            num_users: number of users in the training data; for models with parameters per user.
            logit_bias: initial value of a trainable bias of all logits; `None` for no bias.
        """
        network = self.make_network(num_items, num_users=num_users, logit_bias=logit_bias)
        zeros = tf.zeros([1, getattr(self, "max_length", 1)], tf.int32)
        network(zeros, **_gaps_argument((zeros,) if network.needs_times else ()))
        _check_layers(network)
        return network

    def examples(self) -> Examples:
        """How training data becomes inputs and targets: by default every position predicts the item after it."""
        return PaddedExamples(self.max_length)

    def num_parameters(self, num_items: int, num_users: int = 0) -> int:
        """Number of trainable parameters of the network, without building it; by default that of two item tables."""
        return 2 * num_items * self.embedding_dim

    def activations_per_case(self) -> int:
        """Estimated number of values that a training step keeps per case for the gradient, without logits."""
        return ACTIVATIONS_PER_VALUE * self.max_length * self.embedding_dim


def _check_layers(network: Network) -> None:
    """Refuse layers that would silently do nothing: training knows no Keras mode, and repeats every step exactly."""
    for layer in network._flatten_layers():
        has_dropout = getattr(layer, "dropout", 0) or getattr(layer, "recurrent_dropout", 0)
        if isinstance(layer, LAYERS_THAT_NEED_TRAINING_MODE) or has_dropout:
            raise InputError(
                f"{type(network).__name__}: the layer {layer.name} ({type(layer).__name__}) drops values or learns "
                "only in Keras' training mode, which is never on; for dropout use "
                "aprec_like.models.dropout(values, rate, dropout_seed, index)"
            )
