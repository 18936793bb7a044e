"""Probability mass on the items that a user has seen, which a ranking may exclude."""

from __future__ import annotations

import numpy as np
import scipy.special

from aprec_like.interactions import Histories
from aprec_like.ranking.scan_interface import ScoreItems
from aprec_like.types import Array

CHUNK_SEEN = 256
"""Seen items of each user that are scored at once."""


def sum_seen(score_items: ScoreItems, histories: Histories, logsumexps: Array, num_items: int) -> tuple[Array, Array]:
    """Sum the predicted probabilities of the distinct items of each history.

    Args:
        score_items: scores of given items.
        histories: of the users.
        logsumexps: (users,) log of the sum of exp(score) over the catalogue.
        num_items: size of the catalogue.

    Returns:
        (users,) sums of sigmoid(score), and (users,) sums of the softmax over the catalogue.
    """
    rows, items = np.divmod(np.unique(histories.rows * num_items + histories.items), num_items)
    offsets = np.searchsorted(rows, np.arange(len(histories) + 1))
    sigmoid_sums, softmax_sums = np.zeros(len(histories)), np.zeros(len(histories))
    for start in range(0, int(np.diff(offsets).max(initial=0)), CHUNK_SEEN):
        positions = offsets[:-1, None] + np.arange(start, start + CHUNK_SEEN)
        positions = positions[:, (positions < offsets[1:, None]).any(axis=0)]
        is_item = positions < offsets[1:, None]
        scores = np.asarray(score_items(items[np.where(is_item, positions, 0)]), np.float64)
        sigmoid_sums += np.where(is_item, scipy.special.expit(scores), 0).sum(axis=1)
        softmax_sums += np.exp(np.where(is_item, scores - logsumexps[:, None], -np.inf)).sum(axis=1)
    return sigmoid_sums.astype(np.float32), softmax_sums.astype(np.float32)
