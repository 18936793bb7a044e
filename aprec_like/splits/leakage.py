"""Temporal leakage of the leave-one-out split: training interactions that are later than test targets."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from aprec_like.interactions import Interactions


@dataclass(frozen=True)
class Leakage:
    """Extent to which leave-one-out trains on interactions that are later than its test targets.

    Args:
        train_interactions: number of training interactions.
        after_a_target: how many of them are later than the test target of at least one user.
        mean_share_after: share of them that is later than the test target, averaged over users.
    """

    train_interactions: int
    after_a_target: int
    mean_share_after: float


def leave_one_out_leakage(interactions: Interactions) -> Leakage | None:
    """Measure the leakage of `LeaveOneOut`; returns `None` without timestamps or without test targets."""
    users = np.flatnonzero(interactions.lengths >= 2)
    if interactions.timestamps is None or len(users) == 0:
        return None
    target_times = interactions.timestamps[interactions.offsets[1:][users] - 1]
    sorted_times = np.sort(target_times)
    # A training interaction that is later than k targets is later than the first k of the sorted ones.
    num_later_than = np.zeros(len(users) + 1, np.int64)
    for part in interactions.parts():
        content = part.content
        times = np.delete(np.asarray(content.timestamps), content.offsets[1:][content.lengths >= 2] - 1)
        num_later_than += np.bincount(np.searchsorted(sorted_times, times), minlength=len(users) + 1)
    num_after = np.cumsum(num_later_than[::-1])[::-1][1:]
    num_train = interactions.num_interactions - len(users)
    return Leakage(num_train, int(num_after.max()), float(np.mean(num_after / num_train)))
