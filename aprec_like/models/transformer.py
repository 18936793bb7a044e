"""Parts that transformers share: attention heads, masks, and dropout that is a function of a seed."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import keras
import tensorflow as tf

from aprec_like.batches import LENGTH_STEP, Tensor
from aprec_like.interactions import Histories


def dropout(values: Tensor, rate: float, seed: Tensor | None, place: int) -> Tensor:
    """Zero a share of the values and scale up the rest; `seed=None` changes nothing.

    The same seed and place drop the same values, so a training step can be repeated exactly. A value needs only as
    many random bits as tell whether it is dropped: 8, or 16 where the rate is not a multiple of 1/256.

    Args:
        values: any shape.
        rate: share that is dropped.
        seed: (2,) integers, or `None` at inference.
        place: where in the network this is; every place drops other values.
    """
    if seed is None or rate == 0:
        return values
    place_seed = tf.random.experimental.stateless_fold_in(seed, place, alg="philox")
    shape = tf.shape(values)
    small, bits = (tf.uint8, 8) if (rate * 256).is_integer() else (tf.uint16, 16)
    limit = round(rate * 2**bits)
    num_words = (tf.size(values) * bits + 31) // 32
    words = tf.random.stateless_uniform([num_words], place_seed, None, None, tf.uint32, alg="philox")
    drawn = tf.reshape(tf.reshape(tf.bitcast(words, small), [-1])[: tf.size(values)], shape)
    scale = tf.constant(2**bits / (2**bits - limit), values.dtype)
    return values * tf.where(drawn >= limit, scale, tf.zeros([], values.dtype))


class LayerNorm(keras.layers.LayerNormalization):
    """Keras' layer norm with the same weights and values, in fewer passes over memory: that is its time on a CPU."""

    def call(self, inputs: Tensor) -> Tensor:
        """Normalised over the last axis; computed in float32 whatever the inputs are."""
        values, gamma, beta = (tf.cast(each, tf.float32) for each in (inputs, self.gamma, self.beta))
        return tf.cast(_layer_norm(values, gamma, beta, self.epsilon), inputs.dtype)


def _layer_norm(values: Tensor, gamma: Tensor, beta: Tensor, epsilon: float) -> Tensor:
    """(..., dim) with mean 0 and variance 1 over the last axis, times gamma, plus beta; and its gradient in one go."""

    def mean(each: Tensor) -> Tensor:
        return tf.reduce_mean(each, axis=-1, keepdims=True)

    @tf.custom_gradient
    def norm(values: Tensor, gamma: Tensor, beta: Tensor) -> tuple[Tensor, Callable[[Tensor], Any]]:
        centred = values - mean(values)
        scale = tf.math.rsqrt(mean(tf.square(centred)) + epsilon)
        unit = centred * scale

        def backward(upstream: Tensor) -> tuple[Tensor, Tensor, Tensor]:
            of_unit = upstream * gamma
            of_values = scale * (of_unit - mean(of_unit) - unit * mean(of_unit * unit))
            axes = list(range(len(values.shape) - 1))
            return of_values, tf.reduce_sum(upstream * unit, axes), tf.reduce_sum(upstream, axes)

        return unit * gamma + beta, backward

    return norm(values, gamma, beta)


def rows_of(embedding: Any, numbers: Tensor) -> Tensor:
    """(..., dim) rows of a Keras embedding, of which only these are read and only these get a gradient."""
    return tf.cast(tf.gather(embedding.embeddings.value, numbers), embedding.compute_dtype)


def rounded_length(histories: Histories, longest: int) -> int:
    """The length of the longest history, rounded up so that there are few different shapes, and at most `longest`."""
    needed = int(histories.lengths.max(initial=1))
    return min(longest, -(-needed // LENGTH_STEP) * LENGTH_STEP)


def causal_visibility(is_item: Tensor) -> Tensor:
    """(batch, length, length) True where a query (row) may look at a key (column): real items up to itself."""
    length = tf.shape(is_item)[1]
    return is_item[:, None, :] & (tf.range(length)[:, None] >= tf.range(length)[None, :])


def hidden_keys(is_visible: Tensor, dtype: Any) -> Tensor:
    """What is added to products of queries and keys: nothing where a key may be seen, else what leaves no weight."""
    return tf.where(is_visible, tf.zeros([], dtype), dtype.min / 2)


def attention_weights(queries: Tensor, keys: Tensor, hidden: Tensor) -> Tensor:
    """(batch, heads, queries, keys) softmax of the scaled dot products over the visible keys.

    A query that sees no key gets equal weights: finite, and for the caller to discard.

    Args:
        queries: (batch, heads, queries, dim of a head).
        keys: (batch, heads, keys, dim of a head).
        hidden: (batch, queries or 1, keys) from `hidden_keys`.
    """
    # Scaling the queries and adding a mask, which has no gradient, spares passes over the large products.
    products = tf.matmul(queries / (queries.shape[-1] ** 0.5), keys, transpose_b=True)
    return tf.nn.softmax(products + hidden[:, None], axis=-1)


def split_heads(values: Tensor, num_heads: int) -> Tensor:
    """(batch, length, dim) to (batch, heads, length, dim / heads): each head has neighbouring columns."""
    batch, length, dim = tf.shape(values)[0], tf.shape(values)[1], values.shape[2]
    return tf.transpose(tf.reshape(values, [batch, length, num_heads, dim // num_heads]), [0, 2, 1, 3])


def join_heads(values: Tensor) -> Tensor:
    """(batch, heads, length, dim / heads) to (batch, length, dim)."""
    batch, heads, length, dim = tf.shape(values)[0], values.shape[1], tf.shape(values)[2], values.shape[3]
    return tf.reshape(tf.transpose(values, [0, 2, 1, 3]), [batch, length, heads * dim])
