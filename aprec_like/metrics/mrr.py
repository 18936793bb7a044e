"""Mean reciprocal rank."""

from __future__ import annotations

from dataclasses import dataclass

from aprec_like.metrics.base import Metric
from aprec_like.types import Array


@dataclass(frozen=True)
class MRR(Metric):
    """Reciprocal rank of the target over the whole ranking, without a cutoff: second -> 0.5, not ranked -> 0."""

    def __str__(self) -> str:
        return "MRR"

    def _values(self, ranks: Array) -> Array:
        return 1 / ranks
