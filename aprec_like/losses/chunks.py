"""Sizes of chunks, and ordering of gradients, for losses that compute large arrays chunk by chunk."""

from __future__ import annotations

from aprec_like.devices import has_gpu
from aprec_like.lazy_tensorflow import tf
from aprec_like.types import Tensor

CHUNK_ELEMENTS = {"CPU": 1 << 21, "GPU": 1 << 26}
"""Elements of one chunk: on a CPU they fit into its cache (fresh memory costs more than arithmetic), on a GPU they keep
it busy."""


def chunk_elements() -> int:
    """Return the number of elements of a chunk on this machine."""
    return CHUNK_ELEMENTS["GPU" if has_gpu() else "CPU"]


def identity_after(dependency: Tensor, tensor: Tensor) -> Tensor:
    """Return `tensor`, available only after `dependency` has been computed.

    An optimiser that updates a table while another gradient still reads it copies the table, which takes gigabytes.
    """
    with tf.control_dependencies([dependency]):
        return tf.identity(tensor)
