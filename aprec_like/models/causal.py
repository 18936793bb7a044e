"""Networks whose state at a position depends on the items up to it and predicts the next one."""

from __future__ import annotations

from abc import abstractmethod
from typing import Any

import keras
import tensorflow as tf
from typing_extensions import override

from aprec_like.batches.layouts import Packing
from aprec_like.errors import InputError
from aprec_like.interactions import Histories
from aprec_like.models.base import Network, NeuralModel
from aprec_like.models.transformer import embed, embedding_rows, padded_length
from aprec_like.types import Tensor

INTEGERS = tf.TensorSpec([None, None], tf.int32)


class CausalNetwork(Network):
    """A network that ranks from the state of the last item. Item i has row i of its tables, padding row num_items."""

    output_embedding: Any
    """Keras embedding whose rows are multiplied with the states."""

    gap_embedding: Any = None
    """Keras embedding of time gaps, added to the items' embeddings; `None` without `time_gaps`."""

    def _add_gap_embedding(self) -> None:
        """Create `gap_embedding` if the settings have time gaps; it starts at 0. For constructors."""
        if self.settings.time_gaps is not None:
            rows, dim = self.settings.time_gaps.num_codes, self.settings.embedding_dim
            self.gap_embedding = keras.layers.Embedding(rows, dim, embeddings_initializer="zeros", name="gap_embedding")
            self.gap_embedding.build(None)

    def _add_gaps(self, states: Tensor, gaps: Tensor | None) -> Tensor:
        """Add the embeddings of time gaps, if the settings have any, to (batch, length, dim) embeddings of items."""
        if self.gap_embedding is None:
            return states
        if gaps is None:
            raise ValueError(f"{self._name_with_gaps} needs the codes of the gaps. Received: gaps=None")
        return states + embed(self.gap_embedding, gaps)

    @abstractmethod
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

        `gaps` are the (batch, length) codes of the items' time gaps, for settings with `time_gaps`.
        """

    @override
    def last_states(self, histories: Histories) -> Tensor:
        length = padded_length(histories, self.settings.max_length)
        if self.settings.time_gaps is None:
            return self._last_states(histories.last(length))
        if histories.timestamps is None:
            raise InputError(f"{self._name_with_gaps} recommends only for histories with times")
        codes = self.settings.time_gaps.codes(histories.timestamps, histories.offsets)
        return self._last_states_with_gaps(histories.last(length), histories.last(length, codes, padding=0))

    @override
    def next_item_states(self, items: Tensor) -> Tensor:
        if self.settings.time_gaps is not None:
            raise InputError(f"{self._name_with_gaps} cannot be exported: exported models take no times")
        return self._last_states(items[:, -self.settings.max_length :])

    @property
    def _name_with_gaps(self) -> str:
        return f"{type(self.settings).__name__} with time_gaps"

    @tf.function(input_signature=[INTEGERS])
    def _last_states(self, items: Tensor) -> Tensor:
        return tf.cast(self(items, is_last_only=True)[:, 0], tf.float32)

    @tf.function(input_signature=[INTEGERS, INTEGERS])
    def _last_states_with_gaps(self, items: Tensor, gaps: Tensor) -> Tensor:
        return tf.cast(self(items, gaps=gaps, is_last_only=True)[:, 0], tf.float32)

    @property
    @override
    def score_table(self) -> Tensor:
        return tf.convert_to_tensor(self.output_embedding.embeddings)

    @override
    def item_rows(self, items: Tensor) -> Tensor:
        return embedding_rows(self.output_embedding, items)


def num_gap_parameters(settings: NeuralModel) -> int:
    """Number of trainable parameters of the embedding of time gaps."""
    return 0 if settings.time_gaps is None else settings.time_gaps.num_codes * settings.embedding_dim
