"""Search in sorted values, in the TensorFlow graph."""

from __future__ import annotations

from typing import Literal

from aprec_like.devices import has_gpu
from aprec_like.lazy_tensorflow import tf
from aprec_like.types import Tensor


def search_sorted(values: Tensor, keys: Tensor, side: Literal["left", "right"]) -> Tensor:
    """Return the int32 index of (n,) sorted values before which each key would be inserted.

    XLA, which compiles the step of a GPU, would compare every key with every value; this search takes log2(n) steps.
    """
    if not has_gpu():
        return tf.reshape(tf.searchsorted(values, tf.reshape(keys, [-1]), side=side), tf.shape(keys))
    num_values = values.shape[0]
    low, high = tf.zeros_like(keys, tf.int32), tf.fill(tf.shape(keys), num_values)
    for _ in range(num_values.bit_length()):
        middle = (low + high) // 2
        value = tf.gather(values, tf.minimum(middle, num_values - 1))
        is_before = (low < high) & (value <= keys if side == "right" else value < keys)
        low, high = tf.where(is_before, middle + 1, low), tf.where(is_before, high, middle)
    return low
