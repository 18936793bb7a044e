"""A network's ranking beside Popularity's: whether training has brought more than counting does."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from aprec_like.interactions import PADDING, Interactions
from aprec_like.metrics import NDCG
from aprec_like.models import Popularity
from aprec_like.ranking import Rankings, rank
from aprec_like.splits import HeldOut
from aprec_like.training.state import EpochRecord
from aprec_like.types import Array, Json

METRIC = NDCG(10)


def compare_with_popularity(rankings: Rankings, data: Interactions, cases: HeldOut, *, exclude_seen: bool) -> Json:
    """Return the entry `beside_popularity` of status.json: both models' metric, and the share of common top items.

    Args:
        rankings: of the model.
        data: interactions that Popularity counts.
        cases: test users and targets.
        exclude_seen: whether rankings leave out seen items.
    """
    depth = min(METRIC.k, rankings.top_items.shape[1])
    popular = rank(Popularity().fit(data), cases, exclude_seen=exclude_seen, depth=depth)
    return {
        "metric": str(METRIC),
        "model": float(np.mean(METRIC.per_user(rankings.ranks))),
        "popularity": float(np.mean(METRIC.per_user(popular.ranks))),
        "overlap": _overlap(rankings.top_items[:, :depth], popular.top_items),
    }


def loss_change(history: Sequence[EpochRecord]) -> float:
    """Return the relative change of the loss in the last fifth of the epochs; 0 with one epoch."""
    if len(history) < 2:
        return 0.0
    before = history[-1 - max(1, len(history) // 5)].loss
    return history[-1].loss / before - 1 if before else 0.0


def _overlap(first: Array, second: Array) -> float:
    """Return the share of items of the (users, depth) first lists that are in the user's second list."""
    is_item = first != PADDING
    is_common = is_item & np.stack([np.any(second == items[:, None], axis=1) for items in first.T], axis=1)
    return float(is_common.sum() / max(1, is_item.sum()))
