"""Devices of TensorFlow: whether there is a GPU, and settings for reproducible results."""

from __future__ import annotations

from aprec_like.lazy_tensorflow import tf


def has_gpu() -> bool:
    """Return whether TensorFlow uses a GPU; does not initialise it."""
    return bool(tf.config.get_visible_devices("GPU"))


def prepare_devices() -> None:
    """Make operations deterministic, and let GPU memory grow as needed instead of reserving all of it."""
    tf.config.experimental.enable_op_determinism()
    for device in tf.config.list_physical_devices("GPU"):
        tf.config.experimental.set_memory_growth(device, True)
