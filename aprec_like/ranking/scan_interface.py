"""Interface of the scans of the catalogue, one for each kind of scorer."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from aprec_like.errors import NotFiniteError
from aprec_like.interactions import Histories
from aprec_like.ranking.catalogue_scan import ScanInputs, ScanResult
from aprec_like.types import Array

ScoreItems = Callable[[Array], Array]
"""Function from (users, n) items to their (users, n) scores."""

Scan = Callable[[Histories, ScanInputs], tuple[Array, ScanResult, ScoreItems]]
"""Function that scans the catalogue for some users and returns the scores of the targets and the result as arrays."""


def check_finite(bound: float) -> None:
    """Raise `NotFiniteError` if an upper bound of all absolute scores is not a finite float32."""
    if not bound <= float(np.finfo(np.float32).max):
        raise NotFiniteError("a score is not finite: the model has diverged; a smaller learning rate may help")
