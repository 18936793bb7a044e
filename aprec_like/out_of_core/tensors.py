"""Tensors of large arrays."""

from __future__ import annotations

from aprec_like.lazy_tensorflow import tf
from aprec_like.types import Array, Tensor

MIN_SHARED_BYTES = 64 << 20


def share_tensor(array: Array) -> Tensor:
    """Return a tensor of an array; a large one shares the memory of the array, which may be a mapped file."""
    if array.nbytes < MIN_SHARED_BYTES or not array.flags.writeable or array.ctypes.data % 64:
        return tf.constant(array)
    return tf.experimental.dlpack.from_dlpack(array.__dlpack__())
