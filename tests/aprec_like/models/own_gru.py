"""A model of one's own with nothing but what the contract asks for, and recurrent, unlike the package's."""

from dataclasses import dataclass

import keras
import tensorflow as tf

from aprec_like.interactions import PADDING
from aprec_like.models import Network, NeuralModel


class GRUNetwork(Network):
    def __init__(self, settings, num_items, **sizes):
        super().__init__(settings, num_items, **sizes)
        self.embedding = keras.layers.Embedding(num_items + 1, settings.embedding_dim)
        self.gru = keras.layers.GRU(settings.embedding_dim, return_sequences=True, dropout=settings.keras_dropout)
        self.normed = keras.layers.BatchNormalization() if settings.has_batch_norm else keras.layers.Identity()

    def call(self, items, dropout_seed=None):
        is_item = items != PADDING
        return self.normed(self.gru(self.embedding(tf.where(is_item, items, self.num_items)), mask=is_item))

    @property
    def score_table(self):
        return tf.convert_to_tensor(self.embedding.embeddings)


@dataclass(frozen=True)
class GRU(NeuralModel):
    max_length: int = 8
    embedding_dim: int = 16
    keras_dropout: float = 0.0
    has_batch_norm: bool = False

    def make_network(self, num_items, **sizes):
        return GRUNetwork(self, num_items, **sizes)
