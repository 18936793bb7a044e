"""BERT4Rec: a bidirectional transformer that predicts masked items (Sun et al., CIKM 2019)."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import keras
import tensorflow as tf
from typing_extensions import override

from aprec_like.batches.layouts import Packing
from aprec_like.gathers import embed_range, gather_rows
from aprec_like.interactions import MASK, PADDING, Histories
from aprec_like.models.base import Network
from aprec_like.models.blocks import Block, BlockSizes
from aprec_like.models.masked_examples import MaskedExamples
from aprec_like.models.transformer import (
    LayerNorm,
    TransformerLayer,
    TransformerModel,
    attention_mask_bias,
    dropout,
    embed,
    embedding_rows,
    padded_length,
    within_sequences,
)
from aprec_like.settings import OMIT_DEFAULT, check_type
from aprec_like.types import Tensor

NUM_SPECIAL_ROWS = 3
"""Rows of the item table beyond the items: padding, mask, and one unused row."""

LAYER_NORM_EPSILON = 1e-12


@dataclass(frozen=True)
class Masking:
    """How many items of a training sequence are masked: a share of its items, at least 1 and at most `max_masks`.

    With the defaults, 20 items of a user with 100 or more are masked. Every masked item becomes the mask token.

    Args:
        probability: share of the user's items to mask.
        max_masks: maximum number of masked items.
    """

    probability: float = 0.2
    max_masks: int = 20

    def __post_init__(self) -> None:
        if not 0 < self.probability <= 1 or self.max_masks < 1:
            raise ValueError(
                "Masking needs 0 < probability <= 1 and max_masks of at least 1. "
                f"Received: probability={self.probability}, max_masks={self.max_masks}"
            )


@dataclass(frozen=True)
class BERT4Rec(TransformerModel):
    """A bidirectional transformer over the last items of a user; a mask token at the end predicts the next item.

    The defaults are those of the gSASRec paper's run, oddities included. Better practice is
    `feed_forward_dim=4 * embedding_dim` (3,072 is what a library fell back to) and `is_padding_attended=False`.

    Args:
        max_length: number of positions, including the mask for the next item.
        embedding_dim: size of item embeddings and of all layers but the feed-forward.
        num_layers: number of layers of attention and feed-forward.
        num_heads: number of attention heads; must divide `embedding_dim`.
        feed_forward_dim: width of the feed-forward.
        dropout_rate: dropout after the embedding, of the attention weights, after attention and feed-forward.
        is_padding_attended: attend to padding as to any token, as in the paper's run, instead of masking it.
        has_head: add a dense layer, GELU, layer norm and a bias per item before the logits, as later versions do
            (they also score special tokens; here only items are scored).
        masking: how many items are masked in training.
        block: layers of another kind than BERT's, without the causal mask; `feed_forward_dim` does not count then.
            A layer norm follows the last of them. `None` for BERT's.
    """

    max_length: int = 200
    embedding_dim: int = 128
    num_layers: int = 3
    num_heads: int = 2
    feed_forward_dim: int = 3072
    dropout_rate: float = 0.2
    is_padding_attended: bool = True
    has_head: bool = False
    masking: Masking = field(default_factory=Masking)
    block: Block | None = field(default=None, metadata=OMIT_DEFAULT)

    def __post_init__(self) -> None:
        self._check("num_layers", "feed_forward_dim")
        if self.max_length < 2:
            raise ValueError(f"BERT4Rec needs max_length of at least 2. Received: max_length={self.max_length}")
        if self.block is not None:
            check_type("BERT4Rec", "block", self.block, Block)

    @property
    def block_sizes(self) -> BlockSizes:
        """Sizes that all blocks share."""
        return BlockSizes(self.max_length, self.embedding_dim, self.num_heads, self.dropout_rate, LAYER_NORM_EPSILON)

    @override
    def make_network(self, num_items: int, *, num_users: int = 0, logit_bias: float | None = None) -> BERT4RecNetwork:
        return BERT4RecNetwork(self, num_items, num_users=num_users, logit_bias=logit_bias)

    @override
    def examples(self) -> MaskedExamples:
        masking = self.masking
        return MaskedExamples(self.max_length, masking.probability, masking.max_masks, self.is_padding_attended)

    @override
    def num_parameters(self, num_items: int, num_users: int = 0) -> int:
        dim, ffn_dim = self.embedding_dim, self.feed_forward_dim
        tables = (num_items + NUM_SPECIAL_ROWS + 2 * self.max_length + 2) * dim + 2 * dim
        layer = 4 * (dim + 1) * dim + (dim + 1) * ffn_dim + (ffn_dim + 1) * dim + 4 * dim
        if self.block is not None:
            layer, tables = self.block.num_parameters(self.block_sizes), tables + 2 * dim
        head = (dim + 1) * dim + 2 * dim + num_items if self.has_head else 0
        return tables + self.num_layers * layer + head

    @override
    def activations_per_case(self) -> int:
        """Per layer, sixteen values per position and dimension, four of the feed-forward, four attention matrices."""
        position = 16 * self.embedding_dim + 4 * self.feed_forward_dim + 4 * self.num_heads * self.max_length
        if self.block is not None:
            position = self.block.activations_per_position(self.block_sizes)
        return self.num_layers * self.max_length * position


@keras.saving.register_keras_serializable("aprec_like")
class BERT4RecNetwork(Network):
    """The network of `BERT4Rec`. Item i has row i of the item table, also the output table; padding and mask follow."""

    def __init__(
        self, settings: BERT4Rec, num_items: int, *, num_users: int = 0, logit_bias: float | None = None
    ) -> None:
        super().__init__(settings, num_items, num_users=num_users, logit_bias=logit_bias)

        def table(rows: int, name: str) -> Any:
            return keras.layers.Embedding(
                rows, settings.embedding_dim, embeddings_initializer=_initializer(), name=name
            )

        self.word_embedding = table(num_items + NUM_SPECIAL_ROWS, "word_embedding")
        self.position_embedding = table(2 * settings.max_length, "position_embedding")
        self.token_type_embedding = table(2, "token_type_embedding")
        self.word_embedding.build(None)
        self.embedding_norm = _layer_norm("embedding_norm")
        block, indices = settings.block, range(settings.num_layers)
        self.layers_of_attention = [
            BERT4RecLayer(settings, index) if block is None else block.build(settings.block_sizes, index)
            for index in indices
        ]
        self.final_norm = None if block is None else _layer_norm("final_norm")
        if settings.has_head:
            self.head_dense = _dense(settings.embedding_dim, "head_dense", activation=_gelu)
            self.head_norm = _layer_norm("head_norm")
            for layer in (self.head_dense, self.head_norm):
                layer.build((None, None, settings.embedding_dim))
            self.item_bias = self.add_weight(shape=(num_items,), initializer="zeros", name="item_bias")

    @override
    def call(
        self,
        items: Tensor,
        dropout_seed: Tensor | None = None,
        *,
        packing: Packing | None = None,
        is_last_only: bool = False,
    ) -> Tensor:
        """Compute (batch, length, dim) states, or with `is_last_only` the (batch, 1, dim) last ones.

        Positions are counted from the right end, whose row in the position table is number max_length.
        """
        length, last_position = tf.shape(items)[1], self.settings.max_length
        padding, mask = (tf.constant(self.num_items + number, items.dtype) for number in range(2))
        tokens = tf.where(items == PADDING, padding, tf.where(items == MASK, mask, items))
        if packing is None:
            positions = embed_range(self.position_embedding, last_position - length + 1, length)
        else:
            positions = embed(self.position_embedding, packing.positions + 1)
        states = embed(self.word_embedding, tokens) + positions
        states = self.embedding_norm(states + embed_range(self.token_type_embedding, 0, 1)[None])
        states = dropout(states, self.settings.dropout_rate, dropout_seed, index=0)
        is_key = tf.ones_like(items, tf.bool) if self.settings.is_padding_attended else items != PADDING
        mask_bias = attention_mask_bias(within_sequences(is_key[:, None, :], packing), states.dtype)
        for layer in self.layers_of_attention[:-1]:
            states = layer(states, mask_bias, dropout_seed)
        num_queries = 1 if is_last_only else length
        states = self.layers_of_attention[-1](states, mask_bias, dropout_seed, num_queries=num_queries)
        return states if self.final_norm is None else self.final_norm(states)

    @override
    def project(self, states: Tensor) -> Tensor:
        """Apply the head, if any, and append a 1, which is multiplied with the item's bias."""
        if not self.settings.has_head:
            return states
        states = tf.cast(self.head_norm(self.head_dense(states)), tf.float32)
        return tf.concat([states, tf.ones_like(states[..., :1])], axis=-1)

    @override
    def last_states(self, histories: Histories) -> Tensor:
        return self._last_states(histories.last(padded_length(histories, self.settings.max_length - 1)))

    @override
    def next_item_states(self, items: Tensor) -> Tensor:
        return self._last_states(items[:, 1 - self.settings.max_length :])

    @tf.function(input_signature=[tf.TensorSpec([None, None], tf.int32)])
    def _last_states(self, items: Tensor) -> Tensor:
        """States of a mask after at most max_length - 1 items; padding up to that length if it is attended to."""
        missing = self.settings.max_length - 1 - tf.shape(items)[1] if self.settings.is_padding_attended else 0
        items = tf.pad(items, [[0, 0], [missing, 0]], constant_values=PADDING)
        items = tf.pad(items, [[0, 0], [0, 1]], constant_values=MASK)
        return self.project(tf.cast(self(items, is_last_only=True)[:, 0], tf.float32))

    @property
    @override
    def score_table(self) -> Tensor:
        """(num_items + 3, dim) the item table; with a head (num_items, dim + 1), the biases as last column."""
        rows = tf.convert_to_tensor(self.word_embedding.embeddings)
        if not self.settings.has_head:
            return rows
        return tf.concat([rows[: self.num_items], self.item_bias[:, None]], axis=1)

    @override
    def item_rows(self, items: Tensor) -> Tensor:
        """(..., dim) rows of the item table; with a head (..., dim + 1)."""
        rows = embedding_rows(self.word_embedding, items)
        if not self.settings.has_head:
            return rows
        return tf.concat([rows, gather_rows(self.item_bias[:, None], items)], axis=-1)


class BERT4RecLayer(TransformerLayer):
    """A layer of attention and feed-forward, each with a residual connection followed by a layer norm."""

    def __init__(self, settings: BERT4Rec, index: int) -> None:
        super().__init__(settings, index, name=f"layer{index}")
        dim = settings.embedding_dim
        self.query, self.key, self.value = (_dense(dim, name) for name in ("query", "key", "value"))
        self.attention_output = _dense(dim, "attention_output")
        self.attention_norm = _layer_norm("attention_norm")
        self.ffn1 = _dense(settings.feed_forward_dim, "ffn1", activation=_gelu)
        self.ffn2 = _dense(dim, "ffn2")
        self.ffn_norm = _layer_norm("ffn_norm")

    @override
    def call(
        self, states: Tensor, mask_bias: Tensor, dropout_seed: Tensor | None, num_queries: Tensor | None = None
    ) -> Tensor:
        """Compute (batch, queries, dim) states of the last `num_queries` positions, all by default.

        Args:
            states: (batch, length, dim) states of the layer before.
            mask_bias: (batch, 1, length) from `attention_mask_bias`.
            dropout_seed: (2,) seed of dropout, or `None`.
            num_queries: number of last positions to compute.
        """
        last_states = states if num_queries is None else states[:, -num_queries:]
        queries, keys, values = self.query(last_states), self.key(states), self.value(states)
        attended = self.attention_output(self.attend(queries, keys, values, mask_bias, dropout_seed))
        states = self.attention_norm(last_states + self.drop(attended, dropout_seed, 1))
        return self.ffn_norm(states + self.drop(self.ffn2(self.ffn1(states)), dropout_seed, 2))


def _initializer() -> Any:
    return keras.initializers.TruncatedNormal(stddev=0.02)


def _dense(units: int, name: str, activation: Any = None) -> Any:
    return keras.layers.Dense(units, activation=activation, kernel_initializer=_initializer(), name=name)


def _layer_norm(name: str) -> Any:
    return LayerNorm(epsilon=LAYER_NORM_EPSILON, name=name)


def _gelu(values: Tensor) -> Tensor:
    return tf.nn.gelu(values, approximate=False)
