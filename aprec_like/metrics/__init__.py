"""Metrics of the target's rank, one file each. NumPy only."""

from aprec_like.metrics.base import CutoffMetric, Metric
from aprec_like.metrics.mrr import MRR
from aprec_like.metrics.ndcg import NDCG
from aprec_like.metrics.precision import Precision
from aprec_like.metrics.recall import Recall

__all__ = ["MRR", "NDCG", "CutoffMetric", "Metric", "Precision", "Recall"]
