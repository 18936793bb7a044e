"""Type aliases of arrays, tensors and JSON."""

from __future__ import annotations

from typing import Any

from numpy.typing import NDArray

Array = NDArray[Any]
"""A NumPy array."""

Tensor = Any
"""A `tf.Tensor`; TensorFlow ships no types."""

Json = dict[str, Any]
"""A JSON object."""
