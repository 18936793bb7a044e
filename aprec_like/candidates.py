"""Drawing the candidates of a sampled evaluation: what the field did before it ranked whole catalogues."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from aprec_like.errors import InputError
from aprec_like.interactions import Interactions
from aprec_like.splits import HeldOut
from aprec_like.types import Array


@dataclass(frozen=True)
class UniformCandidates:
    """Items drawn uniformly, with replacement, from those that the user has not had in training.

    The target is ranked among them; the original SASRec draws 100. Values are much higher than those of a ranking
    of the whole catalogue, may order models differently, and compare only with values of the same procedure.

    Args:
        num_candidates: how many are drawn per user.
        seed: of the draw, the same for all models.
    """

    num_candidates: int = 100
    seed: int = 1

    def __post_init__(self) -> None:
        if self.num_candidates < 1:
            raise ValueError(f"UniformCandidates needs at least 1 candidate. Received: {self.num_candidates}")

    def draw(self, train: Interactions, held_out: HeldOut) -> Array:
        """(cases, num_candidates) items; the target may be among them, and then counts as nothing."""
        items, offsets = train.distinct_items()
        users = held_out.users
        counts = np.diff(offsets)
        if counts[users].max() >= train.num_items:
            raise InputError("candidates are items that the user has not had. Received: a user with all of them")
        shape = (len(users), self.num_candidates)
        places = np.random.default_rng(self.seed).random(shape) * (train.num_items - counts[users])[:, None]
        places = places.astype(np.int64)
        # The r-th item that is not rejected is r plus the number of rejected items before it: those with s_j - j <= r.
        owners = np.repeat(np.arange(train.num_users), counts)
        allowed_below = items - (np.arange(len(items)) - offsets[owners])
        found = np.searchsorted(
            owners * train.num_items + allowed_below, users[:, None] * train.num_items + places, "right"
        )
        return places + found - offsets[users][:, None]
