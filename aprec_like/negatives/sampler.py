"""Types of samplers of negatives."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from aprec_like.types import Tensor

Shape = list[Any]
"""[n, k]; n may be a scalar tensor."""

Sampler = Callable[[Tensor, Tensor, Tensor], Tensor]
"""Function of (n,) users, their (n,) positives and a (2,) seed that returns (n, k) items."""

SampleShape = Callable[[Shape, Tensor, Tensor, Tensor], Tensor]
"""Function of a shape [n, k] and the arguments of a `Sampler` that returns items of that shape."""
