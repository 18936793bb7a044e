"""Per-user values of metrics: stored ones, and any other that follows from the stored ranks, without training."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path

import numpy as np
import pandas as pd

from aprec_like.errors import InputError
from aprec_like.metrics import metric_named
from evaluation.results.schemas import is_numeric

SAMPLED = " (sampled)"
"""How the names of metrics of the rank among sampled candidates end."""


def check_metric_names(path: Path, metrics: Iterable[str], stored: Iterable[str]) -> None:
    """Check that metrics are stored or known, so that they can be computed; raises `InputError`."""
    known = set(stored)
    for metric in metrics:
        if metric not in known:
            try:
                metric_named(metric.removesuffix(SAMPLED))
            except InputError as error:
                raise InputError(f"{path}: has no metric {metric}; it has {', '.join(stored)}; {error}") from error


def add_metrics(path: Path, frame: pd.DataFrame, metrics: Iterable[str]) -> pd.DataFrame:
    """Return per-user values with a column for each of these metrics, computed from the ranks where it is missing.

    Args:
        path: folder of the model, for errors.
        frame: content of per_user.parquet.
        metrics: names of metrics.
    """
    missing = [metric for metric in metrics if metric not in frame.columns]
    added = {metric: _values(path, frame, metric) for metric in missing}
    frame = frame.assign(**added) if added else frame
    for metric in metrics:
        if not is_numeric(frame[metric]) or not np.isfinite(frame[metric].to_numpy(np.float64)).all():
            raise InputError(f"{path}: its values of {metric} must be finite numbers")
    return frame


def _values(path: Path, frame: pd.DataFrame, metric: str) -> pd.Series:
    """Return the values of a metric from the ranks in the whole catalogue or, if it is sampled, among candidates."""
    column = "sampled_rank" if metric.endswith(SAMPLED) else "rank"
    if column not in frame.columns:
        raise InputError(f"{path}: has no values of {metric}, and no {column} to compute them from")
    ranks = frame[column]
    if not is_numeric(ranks) or not (ranks >= 1).all():
        raise InputError(f"{path}: its column {column} must hold numbers of at least 1")
    return pd.Series(metric_named(metric.removesuffix(SAMPLED)).per_user(ranks.to_numpy()), index=frame.index)
