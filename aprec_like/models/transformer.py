"""Parts that transformers share: settings checks, attention, layer norm, embeddings and stateless dropout."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Protocol

import keras
import tensorflow as tf
from typing_extensions import override

from aprec_like.batches.layouts import LENGTH_STEP, Packing
from aprec_like.batches.shards import current_replica, own_rows
from aprec_like.gathers import gather_rows
from aprec_like.interactions import Histories
from aprec_like.models.base import NeuralModel
from aprec_like.types import Tensor


class TransformerModel(NeuralModel):
    """The architecture of a transformer over a user's last items. Subclasses are frozen dataclasses."""

    max_length: int
    num_heads: int
    dropout_rate: float

    def _check(self, *positive: str) -> None:
        """Raise `ValueError` on impossible settings; `positive` names the settings that must be at least 1."""
        model = type(self).__name__
        for name in (*positive, "embedding_dim", "num_heads"):
            if getattr(self, name) < 1:
                raise ValueError(f"{model} needs {name} of at least 1. Received: {name}={getattr(self, name)}")
        if self.embedding_dim % self.num_heads:
            raise ValueError(
                f"{model} needs num_heads that divide embedding_dim. "
                f"Received: num_heads={self.num_heads}, embedding_dim={self.embedding_dim}"
            )
        if not 0 <= self.dropout_rate < 1:
            raise ValueError(f"{model} needs 0 <= dropout_rate < 1. Received: dropout_rate={self.dropout_rate}")


class AttentionSettings(Protocol):
    """What a layer of attention needs to know."""

    @property
    def num_heads(self) -> int:
        """Number of attention heads."""

    @property
    def dropout_rate(self) -> float:
        """Share of the values to drop."""


class TransformerLayer(keras.layers.Layer):
    """A layer with multi-head attention and three dropouts: of the attention weights (number 0) and two others.

    Args:
        settings: of the transformer.
        index: number of the layer in the network, from 0.
        name: name of the layer.
    """

    def __init__(self, settings: AttentionSettings, index: int, name: str) -> None:
        super().__init__(name=name)
        self.num_heads, self.dropout_rate = settings.num_heads, settings.dropout_rate
        self.first_dropout = 1 + 3 * index  # number 0 in the network follows the embedding

    def attend(
        self,
        queries: Tensor,
        keys: Tensor,
        values: Tensor,
        mask_bias: Tensor,
        dropout_seed: Tensor | None,
        position_bias: Tensor | None = None,
    ) -> Tensor:
        """(batch, queries, dim) multi-head attention of (batch, queries, dim) queries to (batch, length, dim) keys."""
        queries, keys, values = (split_heads(tensor, self.num_heads) for tensor in (queries, keys, values))
        rate, index = self.dropout_rate, self.first_dropout
        return join_heads(attend(queries, keys, values, mask_bias, rate, dropout_seed, index, position_bias))

    def drop(self, values: Tensor, dropout_seed: Tensor | None, number: int) -> Tensor:
        """Apply dropout 1 or 2 of the layer."""
        return dropout(values, self.dropout_rate, dropout_seed, self.first_dropout + number)


def dropout(values: Tensor, rate: float, seed: Tensor | None, index: int) -> Tensor:
    """Set random values to zero and scale up the others; returns `values` unchanged if `seed` is `None`.

    The result is a function of seed and index, so a training step can be repeated exactly.

    Args:
        values: tensor of any shape.
        rate: share of the values to drop.
        seed: (2,) integers, or `None` at inference.
        index: number of the dropout layer in the network; different layers drop different values.
    """
    if seed is None or rate == 0:
        return values
    is_kept, scale = dropout_mask(tf.shape(values), rate, seed, index)
    return values * tf.where(is_kept, tf.constant(scale, values.dtype), tf.zeros([], values.dtype))


def dropout_mask(shape: Tensor, rate: float, seed: Tensor, index: int) -> tuple[Tensor, float]:
    """Boolean mask of `shape`, True for kept values, and the factor to scale them by.

    It takes 8 random bits per value, or 16 where the rate is not a multiple of 1/256. A replica takes its rows of the
    mask of the whole batch.
    """
    num_replicas = current_replica().num_replicas
    if num_replicas > 1:
        whole = tf.concat([shape[:1] * num_replicas, shape[1:]], axis=0)
        is_kept, scale = _draw_mask(tf.reshape(whole, [shape.shape[0]]), rate, seed, index)
        return tf.reshape(own_rows(is_kept, shape[0]), shape), scale
    return _draw_mask(shape, rate, seed, index)


def _draw_mask(shape: Tensor, rate: float, seed: Tensor, index: int) -> tuple[Tensor, float]:
    layer_seed = tf.random.experimental.stateless_fold_in(seed, index, alg="philox")
    dtype, bits = (tf.uint8, 8) if (rate * 256).is_integer() else (tf.uint16, 16)
    limit, size, per_word = round(rate * 2**bits), tf.reduce_prod(shape), 32 // bits
    num_words = (size + per_word - 1) // per_word
    words = tf.random.stateless_uniform([num_words], layer_seed, None, None, tf.uint32, alg="philox")
    drawn = tf.reshape(tf.reshape(tf.bitcast(words, dtype), [-1])[:size], shape)
    return drawn >= limit, 2**bits / (2**bits - limit)


class LayerNorm(keras.layers.LayerNormalization):
    """Keras' layer norm with the same weights and values, in fewer passes over memory, which limit it on a CPU."""

    @override
    def call(self, inputs: Tensor) -> Tensor:
        """Normalise over the last axis; computes in float32 whatever the dtype of the inputs."""
        values, gamma, beta = (tf.cast(tensor, tf.float32) for tensor in (inputs, self.gamma, self.beta))
        return tf.cast(_layer_norm(values, gamma, beta, self.epsilon), inputs.dtype)


def _layer_norm(values: Tensor, gamma: Tensor, beta: Tensor, epsilon: float) -> Tensor:
    """Normalise (..., dim) values to mean 0 and variance 1, times gamma, plus beta; with a gradient in few passes."""

    def mean(tensor: Tensor) -> Tensor:
        return tf.reduce_mean(tensor, axis=-1, keepdims=True)

    @tf.custom_gradient
    def norm(values: Tensor, gamma: Tensor, beta: Tensor) -> tuple[Tensor, Callable[[Tensor], Any]]:
        centred = values - mean(values)
        scale = tf.math.rsqrt(mean(tf.square(centred)) + epsilon)
        normed = centred * scale

        def backward(upstream: Tensor) -> tuple[Tensor, Tensor, Tensor]:
            grad_normed = upstream * gamma
            grad_values = scale * (grad_normed - mean(grad_normed) - normed * mean(grad_normed * normed))
            axes = list(range(len(values.shape) - 1))
            return grad_values, tf.reduce_sum(upstream * normed, axes), tf.reduce_sum(upstream, axes)

        return normed * gamma + beta, backward

    return norm(values, gamma, beta)


def embedding_rows(embedding: Any, ids: Tensor) -> Tensor:
    """(..., dim) float32 rows of a Keras embedding; only these rows are read and get a gradient."""
    return gather_rows(embedding.embeddings.value, ids)


def embed(embedding: Any, ids: Tensor) -> Tensor:
    """(..., dim) rows of a Keras embedding in the network's compute dtype."""
    return tf.cast(embedding_rows(embedding, ids), embedding.compute_dtype)


def padded_length(histories: Histories, max_length: int) -> int:
    """Length of the longest history, rounded up so that there are few different shapes, and at most `max_length`."""
    longest = int(histories.lengths.max(initial=1))
    return min(max_length, -(-longest // LENGTH_STEP) * LENGTH_STEP)


def within_sequences(is_visible: Tensor, packing: Packing | None) -> Tensor:
    """Restrict a (batch, queries or 1, keys) attention mask to the query's own sequence, if rows are packed."""
    if packing is None:
        return is_visible
    return is_visible & (packing.segments[:, :, None] == packing.segments[:, None, :])


def attention_mask_bias(is_visible: Tensor, dtype: Any) -> Tensor:
    """Additive attention mask: 0 for visible keys, a large negative number for masked ones."""
    return tf.where(is_visible, tf.zeros([], dtype), dtype.min / 2)


def attend(
    queries: Tensor,
    keys: Tensor,
    values: Tensor,
    mask_bias: Tensor,
    rate: float,
    seed: Tensor | None,
    index: int,
    position_bias: Tensor | None = None,
) -> Tensor:
    """Scaled dot-product attention with dropout of the attention weights.

    A query whose keys are all masked gets equal weights: finite, and for the caller to discard.

    Args:
        queries: (batch, heads, queries, head dim).
        keys: (batch, heads, keys, head dim).
        values: (batch, heads, keys, head dim).
        mask_bias: (batch, queries or 1, keys) from `attention_mask_bias`.
        rate: share of the attention weights to drop.
        seed: (2,) integers, or `None` at inference.
        index: number of this dropout in the network.
        position_bias: (heads, queries, keys) trainable summand of the attention logits; `None` for none.

    Returns:
        (batch, heads, queries, head dim) weighted means of the values.
    """
    # Passes over the (queries, keys) arrays dominate the time, so both scale factors go to the smaller arrays.
    queries, is_kept = queries / queries.shape[-1] ** 0.5, None
    if seed is not None and rate:
        shape = tf.concat([tf.shape(queries)[:3], tf.shape(keys)[2:3]], axis=0)
        is_kept, scale = dropout_mask(shape, rate, seed, index)
        values = values * scale
    position_biases = () if position_bias is None else (position_bias,)
    return _softmax_attention(queries, keys, values, mask_bias[:, None], is_kept, *position_biases)


def _softmax_attention(
    queries: Tensor,
    keys: Tensor,
    values: Tensor,
    mask_bias: Tensor,
    is_kept: Tensor | None,
    *position_biases: Tensor,
) -> Tensor:
    """Means of values weighted by softmax(queries keys' + all biases), where `is_kept`; with its gradient."""

    @tf.custom_gradient
    def attention(
        queries: Tensor, keys: Tensor, values: Tensor, *position_biases: Tensor
    ) -> tuple[Tensor, Callable[[Tensor], Any]]:
        bias = sum(position_biases, mask_bias)
        weights = tf.nn.softmax(tf.matmul(queries, keys, transpose_b=True) + bias, axis=-1)
        kept_weights = weights if is_kept is None else weights * tf.cast(is_kept, weights.dtype)
        result = tf.matmul(kept_weights, values)

        def backward(upstream: Tensor) -> tuple[Tensor, ...]:
            # The softmax's gradient needs the sum over keys of weight times gradient: sum(result * upstream) over dim.
            sums = tf.reduce_sum(tf.cast(upstream * result, tf.float32), axis=-1, keepdims=True)
            grad_kept = tf.matmul(upstream, values, transpose_b=True)
            grad_logits = kept_weights * grad_kept - weights * tf.cast(sums, weights.dtype)
            return (
                tf.matmul(grad_logits, keys),
                tf.matmul(grad_logits, queries, transpose_a=True),
                tf.matmul(kept_weights, upstream, transpose_a=True),
                *(tf.reduce_sum(grad_logits, axis=0) for _ in position_biases),
            )

        return result, backward

    return attention(queries, keys, values, *position_biases)


def split_heads(values: Tensor, num_heads: int) -> Tensor:
    """Reshape (batch, length, dim) to (batch, heads, length, dim / heads); a head takes adjacent columns."""
    batch, length, dim = tf.shape(values)[0], tf.shape(values)[1], values.shape[2]
    return tf.transpose(tf.reshape(values, [batch, length, num_heads, dim // num_heads]), [0, 2, 1, 3])


def join_heads(values: Tensor) -> Tensor:
    """Reshape (batch, heads, length, dim / heads) to (batch, length, dim)."""
    batch, heads, length, dim = tf.shape(values)[0], values.shape[1], tf.shape(values)[2], values.shape[3]
    return tf.reshape(tf.transpose(values, [0, 2, 1, 3]), [batch, length, heads * dim])
