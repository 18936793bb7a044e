"""SASRec: self-attentive sequential recommendation (Kang and McAuley, ICDM 2018), in both published flavours."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import keras
import tensorflow as tf
from typing_extensions import override

from aprec_like.batches import ShiftedExamples, TimeGaps
from aprec_like.batches.layouts import Packing
from aprec_like.gathers import embed_range
from aprec_like.interactions import PADDING
from aprec_like.models.blocks import Block, BlockSizes, SASRecBlock
from aprec_like.models.causal import CausalNetwork, num_gap_parameters
from aprec_like.models.transformer import (
    LayerNorm,
    TransformerModel,
    attention_mask_bias,
    dropout,
    embed,
    within_sequences,
)
from aprec_like.settings import OMIT_DEFAULT, check_type
from aprec_like.types import Tensor

NUM_SPECIAL_ROWS = 2
"""Rows of an item table beyond the items: padding and, as in the gSASRec code, a mask token that SASRec never uses."""


@dataclass(frozen=True)
class Flavour:
    """Architecture details in which the two published implementations of SASRec differ.

    Args:
        is_tied: use the input embeddings as output table instead of a separate one.
        is_input_scaled: multiply input embeddings by sqrt(dim).
        layer_norm_epsilon: epsilon of all layer norms.
        table_initializer: Keras initialiser of item and position tables.
    """

    is_tied: bool
    is_input_scaled: bool
    layer_norm_epsilon: float
    table_initializer: str


GSASREC_FLAVOUR = Flavour(False, False, layer_norm_epsilon=1e-3, table_initializer="uniform")
"""The gSASRec authors' implementation."""

ORIGINAL_FLAVOUR = Flavour(True, True, layer_norm_epsilon=1e-8, table_initializer="glorot_uniform")
"""The SASRec authors' implementation; recipes/ml1m_sasrec_original.py has its training settings."""


@dataclass(frozen=True)
class SASRec(TransformerModel):
    """A causal transformer over the last items of a user. The defaults are those of the gSASRec paper.

    Args:
        max_length: number of last items that the network sees.
        embedding_dim: size of item embeddings and of all layers.
        num_blocks: number of blocks of attention and feed-forward.
        num_heads: number of attention heads; must divide `embedding_dim`.
        dropout_rate: dropout after the embedding, of the attention weights and twice in every feed-forward.
        flavour: architecture details of one of the published implementations.
        block: what the blocks are made of: as published, or one of `PreNorm`, `LiGR` and `HSTU`.
        time_gaps: add an embedding of the time since the interaction before, of past interactions only; `None` for a
            network that sees no times, as published.
    """

    max_length: int = 200
    embedding_dim: int = 128
    num_blocks: int = 2
    num_heads: int = 1
    dropout_rate: float = 0.5
    flavour: Flavour = GSASREC_FLAVOUR
    block: Block = field(default=SASRecBlock(), metadata=OMIT_DEFAULT)
    time_gaps: TimeGaps | None = field(default=None, metadata=OMIT_DEFAULT)

    def __post_init__(self) -> None:
        self._check("max_length", "num_blocks")
        check_type("SASRec", "block", self.block, Block)
        if self.time_gaps is not None:
            check_type("SASRec", "time_gaps", self.time_gaps, TimeGaps)

    @property
    def block_sizes(self) -> BlockSizes:
        """Sizes that all blocks share."""
        epsilon = self.flavour.layer_norm_epsilon
        return BlockSizes(self.max_length, self.embedding_dim, self.num_heads, self.dropout_rate, epsilon)

    @override
    def make_network(self, num_items: int, *, num_users: int = 0, logit_bias: float | None = None) -> SASRecNetwork:
        return SASRecNetwork(self, num_items, num_users=num_users, logit_bias=logit_bias)

    @override
    def examples(self) -> ShiftedExamples:
        return ShiftedExamples(self.max_length, self.time_gaps)

    @override
    def num_parameters(self, num_items: int, num_users: int = 0) -> int:
        dim = self.embedding_dim
        tables = (1 if self.flavour.is_tied else 2) * (num_items + NUM_SPECIAL_ROWS) * dim
        block = self.block.num_parameters(self.block_sizes)
        tables += num_gap_parameters(self)
        return tables + self.max_length * dim + self.num_blocks * block + 2 * dim

    @override
    def activations_per_case(self) -> int:
        return self.num_blocks * self.max_length * self.block.activations_per_position(self.block_sizes)


@keras.saving.register_keras_serializable("aprec_like")
class SASRecNetwork(CausalNetwork):
    """The network of `SASRec`. The value of the padding row never matters."""

    def __init__(
        self, settings: SASRec, num_items: int, *, num_users: int = 0, logit_bias: float | None = None
    ) -> None:
        super().__init__(settings, num_items, num_users=num_users, logit_bias=logit_bias)
        dim, flavour = settings.embedding_dim, settings.flavour

        def table(rows: int, name: str) -> Any:
            return keras.layers.Embedding(rows, dim, embeddings_initializer=flavour.table_initializer, name=name)

        self.item_embedding = table(num_items + NUM_SPECIAL_ROWS, "item_embedding")
        self.position_embedding = table(settings.max_length, "position_embedding")
        self.blocks = [settings.block.build(settings.block_sizes, index) for index in range(settings.num_blocks)]
        self.final_norm = LayerNorm(epsilon=flavour.layer_norm_epsilon, name="final_norm")
        self.output_embedding = (
            self.item_embedding if flavour.is_tied else table(num_items + NUM_SPECIAL_ROWS, "output_embedding")
        )
        for embedding in (self.item_embedding, self.output_embedding):
            embedding.build(None)
        self._add_gap_embedding()

    @override
    def call(
        self,
        items: Tensor,
        dropout_seed: Tensor | None = None,
        *,
        packing: Packing | None = None,
        gaps: Tensor | None = None,
        is_last_only: bool = False,
    ) -> Tensor:
        """Compute (batch, length, dim) states, or with `is_last_only` the (batch, 1, dim) last ones.

        Positions are counted from the right end, so padding changes no state of an item. States of padding are never
        attended to and have no meaning; the originals set them to zero between the blocks, which costs time.
        """
        length = tf.shape(items)[1]
        is_item = items != PADDING
        states = embed(self.item_embedding, tf.where(is_item, items, self.num_items))
        if self.settings.flavour.is_input_scaled:
            states *= self.settings.embedding_dim**0.5
        if packing is None:
            states += embed_range(self.position_embedding, self.settings.max_length - length, length)
        else:
            states += embed(self.position_embedding, packing.positions)
        states = self._add_gaps(states, gaps)
        states = dropout(states, self.settings.dropout_rate, dropout_seed, index=0)
        is_visible = within_sequences(causal_mask(is_item), packing)
        mask_bias = attention_mask_bias(is_visible, states.dtype)
        for block in self.blocks[:-1]:
            states = block(states, mask_bias, dropout_seed)
        num_queries = 1 if is_last_only else length
        return self.final_norm(self.blocks[-1](states, mask_bias, dropout_seed, num_queries=num_queries))


def causal_mask(is_item: Tensor) -> Tensor:
    """(batch, length, length) True where a query (row) may attend to a key (column): to items up to itself."""
    length = tf.shape(is_item)[1]
    return is_item[:, None, :] & (tf.range(length)[:, None] >= tf.range(length)[None, :])
