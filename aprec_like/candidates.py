"""Candidates of a sampled evaluation, which ranks the target among a few sampled items instead of the catalogue."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from aprec_like.errors import InputError
from aprec_like.interactions import Interactions
from aprec_like.splits import HeldOut
from aprec_like.types import Array
from aprec_like.unseen_items import select_unseen, unseen_thresholds


@dataclass(frozen=True)
class UniformCandidates:
    """Items sampled uniformly, with replacement, from those that are not in the user's training history.

    The target is ranked among them; the original SASRec uses 100. Values are much higher than those of a ranking of
    the whole catalogue, may order models differently, and are comparable only with values of the same procedure.

    Args:
        num_candidates: number of candidates per user.
        seed: random seed, the same for all models.
    """

    num_candidates: int = 100
    seed: int = 1

    def __post_init__(self) -> None:
        if self.num_candidates < 1:
            raise ValueError(f"UniformCandidates needs at least 1 candidate. Received: {self.num_candidates}")

    def draw(self, train: Interactions, held_out: HeldOut) -> Array:
        """Return (cases, num_candidates) items; the target may be among them, and ranking then ignores it."""
        seen, offsets = train.distinct_items()
        users, num_items = held_out.users, train.num_items
        num_seen = np.diff(offsets)[users]
        if num_seen.max() >= num_items:
            raise InputError("candidates must be items that the user has not seen. Received: a user with all items")
        shape = (len(users), self.num_candidates)
        indices = np.random.default_rng(self.seed).random(shape) * (num_items - num_seen)[:, None]
        thresholds = unseen_thresholds(seen, offsets, num_items)
        return select_unseen(thresholds, offsets, num_items, users, indices.astype(np.int64))
