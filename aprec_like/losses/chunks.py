"""How much is held at once where large arrays are made piece by piece."""

from __future__ import annotations

import tensorflow as tf

from aprec_like.devices import has_gpu
from aprec_like.types import Tensor

CHUNK_NUMBERS = {"CPU": 1 << 21, "GPU": 1 << 26}
"""Numbers in one piece: on a CPU what stays in its cache (fresh memory costs more than arithmetic), on a GPU what keeps
it busy."""


def chunk_numbers() -> int:
    """How many numbers to hold at once on this machine."""
    return CHUNK_NUMBERS["GPU" if has_gpu() else "CPU"]


def after(other: Tensor, of_table: Tensor) -> Tensor:
    """The gradient of a table, held back until another one that reads the table is made.

    An optimiser that may write to a table while something still reads it writes to a copy, and that is gigabytes.
    """
    with tf.control_dependencies([other]):
        return tf.identity(of_table)
