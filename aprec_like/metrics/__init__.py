"""Ranking metrics, one per file, computed from the rank of each user's target. NumPy only."""

from aprec_like.errors import InputError
from aprec_like.metrics.base import CutoffMetric, Metric
from aprec_like.metrics.mrr import MRR
from aprec_like.metrics.ndcg import NDCG
from aprec_like.metrics.precision import Precision
from aprec_like.metrics.recall import Recall

METRICS: tuple[type[MRR] | type[CutoffMetric], ...] = (MRR, NDCG, Precision, Recall)


def metric_named(name: str) -> Metric:
    """Return the metric whose `str()` is `name`; raises `InputError` if there is none.

    Example:
        >>> metric_named("NDCG@10")
        NDCG(k=10)
    """
    family, at, cutoff = name.partition("@")
    for metric in METRICS:
        if metric.__name__ == family:
            if not at and not issubclass(metric, CutoffMetric):
                return metric()
            if cutoff.isdecimal() and int(cutoff) >= 1:
                return metric(int(cutoff))
    known = ", ".join(["MRR", *(f"{metric.__name__}@k" for metric in METRICS)])
    raise InputError(f"there is no metric {name}; there are {known}")


__all__ = ["METRICS", "MRR", "NDCG", "CutoffMetric", "Metric", "Precision", "Recall", "metric_named"]
