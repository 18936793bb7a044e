"""Metrics of the target's rank, one file each. NumPy only."""

from aprec_like.errors import InputError
from aprec_like.metrics.base import CutoffMetric, Metric
from aprec_like.metrics.mrr import MRR
from aprec_like.metrics.ndcg import NDCG
from aprec_like.metrics.precision import Precision
from aprec_like.metrics.recall import Recall

METRICS: tuple[type[Metric], ...] = (MRR, NDCG, Precision, Recall)


def metric_named(name: str) -> Metric:
    """The metric whose `str()` this is; raises `InputError` if there is none."""
    family, _, cutoff = name.partition("@")
    found = next((metric for metric in METRICS if metric.__name__ == family), None)
    is_cut = found is not None and issubclass(found, CutoffMetric)
    if found is None or is_cut != cutoff.isdecimal() or (is_cut and int(cutoff) < 1):
        known = ", ".join(metric.__name__ + ("@k" if issubclass(metric, CutoffMetric) else "") for metric in METRICS)
        raise InputError(f"there is no metric {name}; there are {known}")
    return found(int(cutoff)) if is_cut else found()  # type: ignore[call-arg]


__all__ = ["METRICS", "MRR", "NDCG", "CutoffMetric", "Metric", "Precision", "Recall", "metric_named"]
