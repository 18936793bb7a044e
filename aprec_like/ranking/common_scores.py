"""Scan of the catalogue for scorers with the same scores for all users, such as Popularity."""

from __future__ import annotations

import numpy as np
import scipy.special

from aprec_like.interactions import Histories
from aprec_like.models import CommonScorer
from aprec_like.ranking.catalogue_scan import ScanInputs, ScanResult, ScanSpec
from aprec_like.ranking.scan_interface import Scan, ScoreItems, check_finite
from aprec_like.types import Array
from aprec_like.unseen_items import select_unseen, unseen_thresholds


def scan_common_scores(scorer: CommonScorer, spec: ScanSpec) -> Scan:
    """Return a scan for models with the same scores for all users, which are sorted once and then looked up."""
    scores, num_items = scorer.common_scores, spec.num_items
    check_finite(float(np.abs(scores).max()))
    order = np.argsort(-scores, kind="stable")
    ascending, position_of = scores[order[::-1]], np.argsort(order)
    highest = np.float64(scores.max())
    exp_shift, exp_sum, sigmoid_sum = (
        np.full(spec.num_users, value)
        for value in (highest, np.exp(scores - highest).sum(), scipy.special.expit(scores).sum(dtype=np.float64))
    )
    users, depths = np.arange(spec.num_users), np.arange(spec.depth)

    def scan_users(histories: Histories, inputs: ScanInputs) -> tuple[Array, ScanResult, ScoreItems]:
        target_scores = scores[inputs.targets.numpy()]
        num_worse = np.searchsorted(ascending, target_scores, side="left")
        num_better = num_items - np.searchsorted(ascending, target_scores, side="right")
        keys = histories.rows * num_items + position_of[histories.items]
        rows, seen = np.divmod(np.unique(keys if spec.excludes_seen else keys[:0]), num_items)
        # Seen items count as worse: those that are better (2 too many) or equal (1 too many) are subtracted.
        excess = np.bincount(rows, np.sign(scores[order[seen]] - target_scores[rows]) + 1, spec.num_users)
        offsets = np.searchsorted(rows, np.arange(spec.num_users + 1))
        thresholds = unseen_thresholds(seen, offsets, num_items)
        positions = select_unseen(thresholds, offsets, num_items, users, depths)
        top_items = order[np.minimum(positions, num_items - 1)]
        top_scores = np.where(positions < num_items, scores[top_items], -np.inf)
        difference = num_better - num_worse - excess
        result = ScanResult(difference, exp_shift, exp_sum, sigmoid_sum, top_scores, top_items)
        return target_scores, result, lambda items: scores[items]

    return scan_users
