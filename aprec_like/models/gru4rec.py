"""GRU4Rec: a gated recurrent network over the items of a user (Hidasi et al., ICLR 2016)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import keras
import tensorflow as tf
from typing_extensions import override

from aprec_like.batches import ShiftedExamples, TimeGaps
from aprec_like.batches.layouts import Packing
from aprec_like.interactions import PADDING
from aprec_like.models.base import NeuralModel
from aprec_like.models.causal import CausalNetwork, num_gap_parameters
from aprec_like.models.gated_recurrence import GRULayer
from aprec_like.models.transformer import dropout, embed
from aprec_like.settings import check_type
from aprec_like.types import Tensor


@dataclass(frozen=True)
class GRU4Rec(NeuralModel):
    """A recurrent network over the last items of a user, for any loss of this package.

    The architecture is that of the authors with "constrained embeddings" (Hidasi and Karatzoglou, CIKM 2018): input
    embeddings, GRU layers, and a product with the same table. As SASRec here, and unlike the authors' code, it trains
    on whole sequences of users, with gradients through all positions, instead of steps of parallel sessions, and has no
    bias per item. Binary losses need `prior_start`: states between -1 and 1 take long to lower all scores.

    Args:
        max_length: number of last items that the network sees.
        embedding_dim: size of item embeddings and of the states of all layers.
        num_layers: number of GRU layers.
        dropout_rate: dropout after the embedding and after every layer.
        is_tied: use the input embeddings as output table instead of a separate one.
        time_gaps: add an embedding of the time since the interaction before, of past interactions only; `None` for a
            network that sees no times.
    """

    max_length: int = 200
    embedding_dim: int = 128
    num_layers: int = 1
    dropout_rate: float = 0.2
    is_tied: bool = True
    time_gaps: TimeGaps | None = None

    def __post_init__(self) -> None:
        for name in ("max_length", "embedding_dim", "num_layers"):
            if getattr(self, name) < 1:
                raise ValueError(f"GRU4Rec needs {name} of at least 1. Received: {name}={getattr(self, name)}")
        if not 0 <= self.dropout_rate < 1:
            raise ValueError(f"GRU4Rec needs 0 <= dropout_rate < 1. Received: dropout_rate={self.dropout_rate}")
        if self.time_gaps is not None:
            check_type("GRU4Rec", "time_gaps", self.time_gaps, TimeGaps)

    @override
    def make_network(self, num_items: int, *, num_users: int = 0, logit_bias: float | None = None) -> GRU4RecNetwork:
        return GRU4RecNetwork(self, num_items, num_users=num_users, logit_bias=logit_bias)

    @override
    def examples(self) -> ShiftedExamples:
        return ShiftedExamples(self.max_length, self.time_gaps)

    @override
    def num_parameters(self, num_items: int, num_users: int = 0) -> int:
        dim = self.embedding_dim
        tables = (1 if self.is_tied else 2) * (num_items + 1) * dim + num_gap_parameters(self)
        return tables + self.num_layers * 6 * (dim + 1) * dim

    @override
    def activations_per_case(self) -> int:
        """Projected inputs, states and, in one layer at a time, gates and gradients."""
        return self.max_length * self.embedding_dim * (6 * self.num_layers + 20)


@keras.saving.register_keras_serializable("aprec_like")
class GRU4RecNetwork(CausalNetwork):
    """The network of `GRU4Rec`. A sequence starts from a state of 0 wherever it is in a row."""

    def __init__(
        self, settings: GRU4Rec, num_items: int, *, num_users: int = 0, logit_bias: float | None = None
    ) -> None:
        super().__init__(settings, num_items, num_users=num_users, logit_bias=logit_bias)

        def table(name: str) -> Any:
            return keras.layers.Embedding(num_items + 1, settings.embedding_dim, name=name)

        self.item_embedding = table("item_embedding")
        self.layers_of_states = [
            GRULayer(settings.embedding_dim, f"gru{index}") for index in range(settings.num_layers)
        ]
        self.output_embedding = self.item_embedding if settings.is_tied else table("output_embedding")
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

        Padding before a sequence changes no state of it; states of padding have no meaning.
        """
        is_item, rate = items != PADDING, self.settings.dropout_rate
        states = embed(self.item_embedding, tf.where(is_item, items, self.num_items))
        states = dropout(self._add_gaps(states, gaps), rate, dropout_seed, index=0)
        is_continued = continues_sequence(tf.where(is_item, 0, PADDING) if packing is None else packing.segments)
        for index, layer in enumerate(self.layers_of_states, start=1):
            states = dropout(layer(states, is_continued), rate, dropout_seed, index)
        return states[:, -1:] if is_last_only else states


def continues_sequence(segments: Tensor) -> Tensor:
    """(batch, length) True where a position belongs to the sequence of the position before.

    Args:
        segments: (batch, length) number of the sequence of each position, PADDING where there is none.
    """
    is_continued = (segments[:, 1:] == segments[:, :-1]) & (segments[:, 1:] != PADDING)
    return tf.pad(is_continued, [[0, 0], [1, 0]])
