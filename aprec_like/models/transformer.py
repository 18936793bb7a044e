"""Parts that transformers share: attention heads, masks, and dropout that is a function of a seed."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import keras
import tensorflow as tf

from aprec_like.batches import LENGTH_STEP
from aprec_like.interactions import Histories
from aprec_like.types import Tensor


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
    is_kept, scale = kept_values(tf.shape(values), rate, seed, place)
    return values * tf.where(is_kept, tf.constant(scale, values.dtype), tf.zeros([], values.dtype))


def kept_values(shape: Tensor, rate: float, seed: Tensor, place: int) -> tuple[Tensor, float]:
    """What dropout keeps, an array of this shape, and by what it multiplies that."""
    place_seed = tf.random.experimental.stateless_fold_in(seed, place, alg="philox")
    small, bits = (tf.uint8, 8) if (rate * 256).is_integer() else (tf.uint16, 16)
    limit, size, per_word = round(rate * 2**bits), tf.reduce_prod(shape), 32 // bits
    count = (size + per_word - 1) // per_word
    words = tf.random.stateless_uniform([count], place_seed, None, None, tf.uint32, alg="philox")
    drawn = tf.reshape(tf.reshape(tf.bitcast(words, small), [-1])[:size], shape)
    return drawn >= limit, 2**bits / (2**bits - limit)


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


def stored_rows(embedding: Any, numbers: Tensor) -> Tensor:
    """(..., dim) rows of a Keras embedding in float32; only these are read and only these get a gradient."""
    return tf.gather(embedding.embeddings.value, numbers)


def rows_of(embedding: Any, numbers: Tensor) -> Tensor:
    """The same in what the network computes in."""
    return tf.cast(stored_rows(embedding, numbers), embedding.compute_dtype)


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


def attend(
    queries: Tensor, keys: Tensor, values: Tensor, hidden: Tensor, rate: float, seed: Tensor | None, place: int
) -> Tensor:
    """(batch, heads, queries, dim) means of values, weighted by the softmax of the scaled products of queries and keys.

    A query that sees no key gets equal weights: finite, and for the caller to discard.

    Args:
        queries: (batch, heads, queries, dim of a head).
        keys: (batch, heads, keys, dim of a head).
        values: (batch, heads, keys, dim of a head).
        hidden: (batch, queries or 1, keys) from `hidden_keys`.
        rate: share of the weights that is dropped.
        seed: (2,) integers of dropout, or `None` at inference.
        place: where in the network this is.
    """
    # Passes over the (queries, keys) arrays are what costs time: what can be, is done to queries and values instead.
    queries, is_kept = queries / queries.shape[-1] ** 0.5, None
    if seed is not None and rate:
        is_kept, scale = kept_values(tf.concat([tf.shape(queries)[:3], tf.shape(keys)[2:3]], axis=0), rate, seed, place)
        values = values * scale
    return _weighted_means(queries, keys, values, hidden[:, None], is_kept)


def _weighted_means(queries: Tensor, keys: Tensor, values: Tensor, hidden: Tensor, is_kept: Tensor | None) -> Tensor:
    """The means of values by the softmax of queries and keys, some of whose weights are not kept; and its gradient."""

    @tf.custom_gradient
    def means(queries: Tensor, keys: Tensor, values: Tensor) -> tuple[Tensor, Callable[[Tensor], Any]]:
        weights = tf.nn.softmax(tf.matmul(queries, keys, transpose_b=True) + hidden, axis=-1)
        kept = weights if is_kept is None else weights * tf.cast(is_kept, weights.dtype)
        result = tf.matmul(kept, values)

        def backward(upstream: Tensor) -> tuple[Tensor, Tensor, Tensor]:
            # The softmax needs the sum over keys of weight times gradient: that is result times upstream, over dim.
            sums = tf.reduce_sum(tf.cast(upstream * result, tf.float32), axis=-1, keepdims=True)
            of_kept = tf.matmul(upstream, values, transpose_b=True)
            of_products = kept * of_kept - weights * tf.cast(sums, weights.dtype)
            return (
                tf.matmul(of_products, keys),
                tf.matmul(of_products, queries, transpose_a=True),
                tf.matmul(kept, upstream, transpose_a=True),
            )

        return result, backward

    return means(queries, keys, values)


def split_heads(values: Tensor, num_heads: int) -> Tensor:
    """(batch, length, dim) to (batch, heads, length, dim / heads): each head has neighbouring columns."""
    batch, length, dim = tf.shape(values)[0], tf.shape(values)[1], values.shape[2]
    return tf.transpose(tf.reshape(values, [batch, length, num_heads, dim // num_heads]), [0, 2, 1, 3])


def join_heads(values: Tensor) -> Tensor:
    """(batch, heads, length, dim / heads) to (batch, length, dim)."""
    batch, heads, length, dim = tf.shape(values)[0], values.shape[1], tf.shape(values)[2], values.shape[3]
    return tf.reshape(tf.transpose(values, [0, 2, 1, 3]), [batch, length, heads * dim])
