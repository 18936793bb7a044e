"""SASRec: self-attentive sequential recommendation (Kang and McAuley, ICDM 2018), in both published flavours."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import keras
import tensorflow as tf

from aprec_like.batches import ShiftedExamples
from aprec_like.interactions import PADDING, Histories
from aprec_like.models.base import Network, NeuralModel
from aprec_like.models.transformer import (
    LayerNorm,
    attend,
    causal_visibility,
    dropout,
    hidden_keys,
    join_heads,
    rounded_length,
    rows_of,
    split_heads,
    stored_rows,
)
from aprec_like.types import Tensor

NUM_SPECIAL_ROWS = 2
"""Rows of an item table beyond the items: padding and, as in the gSASRec code, a mask token that SASRec never uses."""


@dataclass(frozen=True)
class Flavour:
    """What the two published implementations of SASRec do differently inside the network.

    Args:
        is_tied: score with the input table instead of an output table of its own.
        is_input_scaled: multiply looked-up rows by sqrt(dim).
        layer_norm_epsilon: added to the variance in every layer norm.
        table_initializer: Keras initialiser of item and position tables.
    """

    is_tied: bool
    is_input_scaled: bool
    layer_norm_epsilon: float
    table_initializer: str


GSASREC_FLAVOUR = Flavour(False, False, layer_norm_epsilon=1e-3, table_initializer="uniform")
"""The gSASRec authors' implementation."""

ORIGINAL_FLAVOUR = Flavour(True, True, layer_norm_epsilon=1e-8, table_initializer="glorot_uniform")
"""The SASRec authors' implementation. What else it trains with is in recipes/ml1m_sasrec_original.py."""


@dataclass(frozen=True)
class SASRec(NeuralModel):
    """A causal transformer over the last items of a user. The defaults are those of the gSASRec paper.

    Args:
        max_length: how many of the last items it sees.
        embedding_dim: size of item vectors and of all layers.
        num_blocks: attention and feed-forward blocks.
        num_heads: attention heads; must divide `embedding_dim`.
        dropout_rate: share dropped after the embedding, in the attention weights and twice in every feed-forward.
        flavour: which implementation's details.
    """

    max_length: int = 200
    embedding_dim: int = 128
    num_blocks: int = 2
    num_heads: int = 1
    dropout_rate: float = 0.5
    flavour: Flavour = GSASREC_FLAVOUR

    def __post_init__(self) -> None:
        for name in ("max_length", "embedding_dim", "num_blocks", "num_heads"):
            if getattr(self, name) < 1:
                raise ValueError(f"SASRec needs {name} of at least 1. Received: {name}={getattr(self, name)}")
        if self.embedding_dim % self.num_heads:
            raise ValueError(
                f"SASRec needs num_heads that divide embedding_dim. "
                f"Received: num_heads={self.num_heads}, embedding_dim={self.embedding_dim}"
            )
        if not 0 <= self.dropout_rate < 1:
            raise ValueError(f"SASRec needs 0 <= dropout_rate < 1. Received: dropout_rate={self.dropout_rate}")

    def build(self, num_items: int, *, num_users: int = 0, logit_bias: float | None = None) -> SASRecNetwork:
        """A network with fresh weights."""
        network = SASRecNetwork(self, num_items, logit_bias)
        network(tf.zeros([1, self.max_length], tf.int32))
        return network

    def examples(self) -> ShiftedExamples:
        """Every position predicts the next item."""
        return ShiftedExamples(self.max_length)

    def num_parameters(self, num_items: int, num_users: int = 0) -> int:
        """Tables, position table, blocks (two norms, five dense layers) and the final norm."""
        dim = self.embedding_dim
        tables = (1 if self.flavour.is_tied else 2) * (num_items + NUM_SPECIAL_ROWS) * dim
        block = 2 * 2 * dim + 5 * (dim + 1) * dim
        return tables + self.max_length * dim + self.num_blocks * block + 2 * dim

    def activations_per_case(self) -> int:
        """Sixteen values per position and dimension and four attention matrices, in every block."""
        position = 16 * self.embedding_dim + 4 * self.num_heads * self.max_length
        return self.num_blocks * self.max_length * position

    def targets_per_case(self) -> int:
        """Every position predicts the next item."""
        return self.max_length


class SASRecNetwork(Network):
    """SASRec's layers. Item i has row i of a table; padding has row num_items, whose value never matters."""

    def __init__(self, settings: SASRec, num_items: int, logit_bias: float | None) -> None:
        super().__init__(name="sasrec")
        self._add_logit_bias(logit_bias)
        self.settings = settings
        self.num_items = num_items
        dim, flavour = settings.embedding_dim, settings.flavour

        def table(rows: int, name: str) -> Any:
            return keras.layers.Embedding(rows, dim, embeddings_initializer=flavour.table_initializer, name=name)

        self.item_embedding = table(num_items + NUM_SPECIAL_ROWS, "item_embedding")
        self.position_embedding = table(settings.max_length, "position_embedding")
        self.blocks = [SASRecBlock(settings, index) for index in range(settings.num_blocks)]
        self.final_norm = _layer_norm(settings, "final_norm")
        self.output_embedding = (
            self.item_embedding if flavour.is_tied else table(num_items + NUM_SPECIAL_ROWS, "output_embedding")
        )
        for embedding in (self.item_embedding, self.output_embedding):
            embedding.build(None)

    def call(self, items: Tensor, dropout_seed: Tensor | None = None, *, is_last_only: bool = False) -> Tensor:
        """(batch, length, dim) states, or (batch, 1, dim) the last ones.

        Positions are counted from the right end, so padding changes nothing. No item sees padding, and its own states
        have no meaning; the originals set them to zero between the blocks, which costs passes over all states.
        """
        length = tf.shape(items)[1]
        is_item = items != PADDING
        states = rows_of(self.item_embedding, tf.where(is_item, items, self.num_items))
        if self.settings.flavour.is_input_scaled:
            states *= self.settings.embedding_dim**0.5
        states += self.position_embedding(tf.range(self.settings.max_length - length, self.settings.max_length))
        states = dropout(states, self.settings.dropout_rate, dropout_seed, place=0)
        hidden = hidden_keys(causal_visibility(is_item), states.dtype)
        for block in self.blocks[:-1]:
            states = block(states, hidden, dropout_seed)
        num_queries = 1 if is_last_only else length
        return self.final_norm(self.blocks[-1](states, hidden, dropout_seed, num_queries=num_queries))

    def last_states(self, histories: Histories) -> Tensor:
        """(users, dim) the states at the last item."""
        return self._last_states(histories.last(rounded_length(histories, self.settings.max_length)))

    @tf.function(input_signature=[tf.TensorSpec([None, None], tf.int32)])
    def _last_states(self, items: Tensor) -> Tensor:
        return tf.cast(self(items, is_last_only=True)[:, 0], tf.float32)

    @property
    def score_table(self) -> Tensor:
        """(num_items + 2, dim) the output table."""
        return tf.convert_to_tensor(self.output_embedding.embeddings)

    def item_rows(self, items: Tensor) -> Tensor:
        """(..., dim) rows of the output table."""
        return stored_rows(self.output_embedding, items)


class SASRecBlock(keras.layers.Layer):
    """Attention and feed-forward.

    Only the queries are normalised; keys and values are made of the block's raw input. Both residual connections
    start from a normalised value, and no projection follows the attention. So in both originals.
    """

    def __init__(self, settings: SASRec, index: int) -> None:
        super().__init__(name=f"block{index}")
        self.num_heads = settings.num_heads
        self.dropout_rate = settings.dropout_rate
        self.first_place = 1 + 3 * index
        dim = settings.embedding_dim
        self.norm1 = _layer_norm(settings, "norm1")
        self.norm2 = _layer_norm(settings, "norm2")
        self.query = keras.layers.Dense(dim, name="query")
        self.key = keras.layers.Dense(dim, name="key")
        self.value = keras.layers.Dense(dim, name="value")
        self.ffn1 = keras.layers.Dense(dim, activation="relu", name="ffn1")
        self.ffn2 = keras.layers.Dense(dim, name="ffn2")

    def build(self, states_shape: tuple[int | None, ...]) -> None:
        """Make the weights of the layers that `call` may only take the weights of."""
        for layer in (self.query, self.key):
            layer.build(states_shape)

    def call(
        self, states: Tensor, hidden: Tensor, dropout_seed: Tensor | None, num_queries: Tensor | None = None
    ) -> Tensor:
        """(batch, queries, dim) from (batch, length, dim) states and (batch, length, length) `hidden_keys`.

        The last `num_queries` positions, all by default, look at all of them.
        """

        def drop(values: Tensor, place: int) -> Tensor:
            return dropout(values, self.dropout_rate, dropout_seed, self.first_place + place)

        if num_queries is not None:
            hidden = hidden[:, -num_queries:]
        normed = self.norm1(states if num_queries is None else states[:, -num_queries:])
        queries, keys, values = (
            split_heads(each, self.num_heads) for each in (*self._queries_and_keys(normed, states), self.value(states))
        )
        attended = attend(queries, keys, values, hidden, self.dropout_rate, dropout_seed, self.first_place)
        attended = self.norm2(join_heads(attended) + normed)
        return drop(self.ffn2(drop(self.ffn1(attended), 1)), 2) + attended

    def _queries_and_keys(self, normed: Tensor, states: Tensor) -> tuple[Tensor, Tensor]:
        """What the attention multiplies: (batch, queries, dim) and (batch, length, dim).

        (x Wq + bq) (h Wk + bk)' is (x Wq Wk' + bq Wk') h' and a number that is the same for all keys of a query, which
        a softmax ignores. So a single head makes no keys: the states serve as they are.
        """
        if self.num_heads > 1:
            return self.query(normed), self.key(states)
        kernel, bias, of_keys = (tf.convert_to_tensor(each) for each in (*self.query.weights, self.key.kernel))
        kernel, bias = (tf.matmul(each, of_keys, transpose_b=True) for each in (kernel, bias[None]))
        return tf.tensordot(normed, kernel, axes=1) + bias, states


def _layer_norm(settings: SASRec, name: str) -> Any:
    return LayerNorm(epsilon=settings.flavour.layer_norm_epsilon, name=name)
