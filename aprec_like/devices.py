"""The devices that TensorFlow computes on."""

from __future__ import annotations

import tensorflow as tf


def has_gpu() -> bool:
    """Whether TensorFlow computes on a GPU; asking initialises none."""
    return bool(tf.config.get_visible_devices("GPU"))


def prepare_devices() -> None:
    """Deterministic operations, and graphics memory taken as needed instead of all at once."""
    tf.config.experimental.enable_op_determinism()
    for device in tf.config.list_physical_devices("GPU"):
        tf.config.experimental.set_memory_growth(device, True)
