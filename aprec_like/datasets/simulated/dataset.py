"""Simulated data: the distribution of the next item is known, and therefore the best possible ranking."""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path

import numpy as np
from typing_extensions import override

from aprec_like.datasets.base import Dataset
from aprec_like.datasets.cache import simulate_cached
from aprec_like.datasets.simulated.next_item_distribution import Contexts, Mixture, NextItemDistribution
from aprec_like.datasets.simulated.true_probabilities import TrueProbabilities
from aprec_like.errors import InputError
from aprec_like.interactions import PADDING, Interactions, offsets_from_lengths
from aprec_like.types import Array

CHUNK_CELLS = 1 << 26
"""Maximum number of (user, item) or (user, position) cells in memory during the simulation."""

MIN_CACHED_INTERACTIONS = 1_000_000
"""Approximate number of interactions from which data is cached; smaller data is simulated in a second or two."""

MAX_TRUTH_ITEMS = 100_000
"""Largest catalogue for which true probabilities of all items are computed."""


@dataclass(frozen=True)
class Lengths:
    """Distribution of the number of interactions of a user: log-normal, rounded and clipped.

    Args:
        median: median of the log-normal distribution.
        spread: standard deviation of the logarithm.
        minimum: lower limit of the number.
        maximum: upper limit of the number.
    """

    median: float
    spread: float
    minimum: int
    maximum: int

    def __post_init__(self) -> None:
        if not (self.median > 0 and self.spread >= 0 and 1 <= self.minimum <= self.maximum):
            raise ValueError(
                f"Lengths needs median > 0, spread >= 0 and 1 <= minimum <= maximum. Received: {self.median}, "
                f"{self.spread}, {self.minimum}, {self.maximum}"
            )

    def sample(self, num_users: int, random: np.random.Generator) -> Array:
        """Sample (num_users,) lengths."""
        lengths = np.rint(self.median * np.exp(self.spread * random.standard_normal(num_users)))
        return np.clip(lengths, self.minimum, self.maximum).astype(np.int64)


MOVIELENS_LENGTHS = Lengths(median=96, spread=1.0, minimum=18, maximum=2_277)
"""Similar to MovieLens-1M: 18 to 2,277 interactions per user, median 96."""

GOWALLA_LENGTHS = Lengths(median=36.7, spread=1.2, minimum=5, maximum=2_175)
"""Similar to Gowalla: at least 5 interactions per user, 74 on average, about 2,000 for a few users."""

STEAM_LENGTHS = Lengths(median=9, spread=0.7, minimum=5, maximum=200)
"""Similar to Steam: 12 interactions per user on average."""


@dataclass(frozen=True)
class Simulated(Dataset):
    """Data sampled from a known distribution: hidden user types, Zipf popularity, first- and second-order transitions.

    Args:
        num_users: number of users.
        num_items: size of the catalogue, including items that do not occur.
        num_types: number of hidden user types.
        mixture: weights of popularity, type and transitions in the distribution of the next item.
        lengths: distribution of the number of interactions of a user.
        has_repeats: whether users may have repeated items.
        zipf_exponent: exponent of popularity and of preference within a type.
        seed: seed of the simulation.
    """

    num_users: int = 6_000
    num_items: int = 2_000
    num_types: int = 8
    mixture: Mixture = field(default_factory=Mixture)
    lengths: Lengths = STEAM_LENGTHS
    has_repeats: bool = False
    zipf_exponent: float = 1.0
    seed: int = 1

    def __post_init__(self) -> None:
        if min(self.num_users, self.num_types) < 1 or self.num_items < 2 or self.num_types > self.num_items:
            raise ValueError(
                "Simulated needs at least 1 user, 2 items and 1 type, and no more types than items. "
                f"Received: {self.num_users} users, {self.num_items} items, {self.num_types} types"
            )
        if self.seed < 0:
            raise ValueError(f"Simulated needs a seed of at least 0. Received: seed={self.seed}")
        if not self.has_repeats and self.lengths.maximum > self.num_items // 2:
            raise ValueError(
                "Simulated without repeats needs twice as many items as the longest user has interactions. "
                f"Received: {self.num_items} items, lengths up to {self.lengths.maximum}"
            )

    @property
    def next_item_distribution(self) -> NextItemDistribution:
        """Distribution of the next item given the type."""
        return NextItemDistribution(self.num_items, self.num_types, self.mixture, self.zipf_exponent, self.seed)

    def true_probabilities(self) -> TrueProbabilities:
        """Return the true probabilities of the next item; raises `InputError` if the catalogue is too large."""
        if self.num_items > MAX_TRUTH_ITEMS:
            raise InputError(
                f"true probabilities of all items for every user are not feasible beyond {MAX_TRUTH_ITEMS:,} items: "
                f"remove the Oracle. Received: {self.num_items:,} items"
            )
        return TrueProbabilities(self.next_item_distribution, self.has_repeats)

    @override
    def load(self, data_dir: Path) -> Interactions:
        is_large = self.num_users * self.lengths.median >= MIN_CACHED_INTERACTIONS
        return simulate_cached(self, self._simulate) if is_large else self._simulate()

    def _simulate(self) -> Interactions:
        distribution = self.next_item_distribution
        chunk = max(1, CHUNK_CELLS // (self.lengths.maximum if self.has_repeats else self.num_items))
        parts = [
            self._simulate_users(
                distribution, min(chunk, self.num_users - start), np.random.default_rng([self.seed, 9, start])
            )
            for start in range(0, self.num_users, chunk)
        ]
        lengths = np.concatenate([chunk_lengths for chunk_lengths, _ in parts])
        return Interactions(
            items=np.concatenate([items for _, items in parts]),
            offsets=offsets_from_lengths(lengths),
            user_ids=np.arange(1, self.num_users + 1),
            item_ids=np.arange(1, self.num_items + 1),
        )

    @override
    def is_on_disk(self, data_dir: Path) -> bool:
        return True

    def _simulate_users(
        self, distribution: NextItemDistribution, num_users: int, random: np.random.Generator
    ) -> tuple[Array, Array]:
        """Simulate users position by position; returns (num_users,) lengths and flat items."""
        lengths = self.lengths.sample(num_users, random)
        # Sorted by descending length, so that unfinished users are always the first ones.
        order = np.argsort(-lengths, kind="stable")
        sorted_lengths = lengths[order]
        types = random.integers(self.num_types, size=num_users)
        items = np.full([num_users, int(sorted_lengths[0])], PADDING, np.int32)
        is_seen = None if self.has_repeats else np.zeros([num_users, self.num_items], bool)
        padding = np.full(num_users, PADDING)
        for position in range(items.shape[1]):
            num_active = int(np.searchsorted(-sorted_lengths, -position, side="left"))
            last = (items[:, position - 1] if position >= 1 else padding)[:num_active].astype(np.int64)
            second_last = (items[:, position - 2] if position >= 2 else padding)[:num_active].astype(np.int64)
            contexts = Contexts(last, second_last)
            items[:num_active, position] = _sample_unseen(distribution, types[:num_active], contexts, is_seen, random)
        in_order = np.empty_like(items)
        in_order[order] = items
        return lengths, in_order[in_order != PADDING]


def _sample_unseen(
    distribution: NextItemDistribution,
    types: Array,
    contexts: Contexts,
    is_seen: Array | None,
    random: np.random.Generator,
) -> Array:
    """Sample a next item per user from the distribution renormalised over unseen items, by rejecting seen items."""
    items = distribution.sample(types, contexts, random)
    if is_seen is None:
        return items
    rows = np.arange(len(types))
    while len(rejected := np.flatnonzero(is_seen[rows, items])):
        items[rejected] = distribution.sample(types[rejected], contexts[rejected], random)
    is_seen[rows, items] = True
    return items
