"""Mean reciprocal rank."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from typing_extensions import override

from aprec_like.metrics.base import Metric, check_cutoff
from aprec_like.types import Array


@dataclass(frozen=True)
class MRR(Metric):
    """Reciprocal rank of the target; 0 for a target without a rank, or below a cutoff.

    Args:
        k: cutoff; by default the whole ranking counts.

    Example:
        >>> import numpy as np
        >>> MRR().per_user(np.array([1, 2, 4, np.inf])).tolist()
        [1.0, 0.5, 0.25, 0.0]
        >>> str(MRR(2)), MRR(2).per_user(np.array([1, 2, 4])).tolist()
        ('MRR@2', [1.0, 0.5, 0.0])
    """

    k: int | None = None

    def __post_init__(self) -> None:
        if self.k is not None:
            check_cutoff(self, self.k)

    def __str__(self) -> str:
        return "MRR" if self.k is None else f"MRR@{self.k}"

    @override
    def _values(self, ranks: Array) -> Array:
        return 1 / ranks if self.k is None else np.where(ranks <= self.k, 1 / ranks, 0.0)
