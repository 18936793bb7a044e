"""Parts that transformers share: attention heads, masks, and dropout that is a function of a seed."""

from __future__ import annotations

import tensorflow as tf

from aprec_like.batches import Tensor


def dropout(values: Tensor, rate: float, seed: Tensor | None, place: int) -> Tensor:
    """Zero a share of the values and scale up the rest; `seed=None` changes nothing.

    The same seed and place drop the same values, so a training step can be repeated exactly.

    Args:
        values: any shape.
        rate: share that is dropped.
        seed: (2,) integers, or `None` at inference.
        place: where in the network this is; every place drops other values.
    """
    if seed is None or rate == 0:
        return values
    place_seed = tf.random.experimental.stateless_fold_in(seed, place, alg="philox")
    return tf.nn.experimental.stateless_dropout(values, rate, place_seed, rng_alg="philox")


def causal_visibility(is_item: Tensor) -> Tensor:
    """(batch, length, length) True where a query (row) may look at a key (column): real items up to itself."""
    length = tf.shape(is_item)[1]
    return is_item[:, None, :] & (tf.range(length)[:, None] >= tf.range(length)[None, :])


def attention_weights(queries: Tensor, keys: Tensor, is_visible: Tensor) -> Tensor:
    """(batch, heads, queries, keys) softmax of the scaled dot products over the visible keys.

    A query that sees no key gets equal weights: finite, and for the caller to discard.

    Args:
        queries: (batch, heads, queries, dim of a head).
        keys: (batch, heads, keys, dim of a head).
        is_visible: (batch, queries, keys).
    """
    products = tf.matmul(queries, keys, transpose_b=True) / (queries.shape[-1] ** 0.5)
    return tf.nn.softmax(tf.where(is_visible[:, None], products, products.dtype.min), axis=-1)


def split_heads(values: Tensor, num_heads: int) -> Tensor:
    """(batch, length, dim) to (batch, heads, length, dim / heads): each head has neighbouring columns."""
    batch, length, dim = tf.shape(values)[0], tf.shape(values)[1], values.shape[2]
    return tf.transpose(tf.reshape(values, [batch, length, num_heads, dim // num_heads]), [0, 2, 1, 3])


def join_heads(values: Tensor) -> Tensor:
    """(batch, heads, length, dim / heads) to (batch, length, dim)."""
    batch, heads, length, dim = tf.shape(values)[0], values.shape[1], tf.shape(values)[2], values.shape[3]
    return tf.reshape(tf.transpose(values, [0, 2, 1, 3]), [batch, length, heads * dim])
