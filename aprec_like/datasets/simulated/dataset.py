"""Simulated data: users whose next item follows a known law, so that the best possible ranking is known too."""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path

import numpy as np

from aprec_like.datasets.base import Dataset
from aprec_like.datasets.cache import draw_cached
from aprec_like.datasets.simulated.next_item_law import Contexts, Mixture, NextItemLaw
from aprec_like.datasets.simulated.truth import Truth
from aprec_like.errors import InputError
from aprec_like.interactions import PADDING, Interactions, offsets_from_lengths
from aprec_like.types import Array

CHUNK_CELLS = 1 << 26
"""How many (user, item) or (user, position) cells are held while drawing."""

MIN_CACHED_INTERACTIONS = 1_000_000
"""From about how many interactions on drawn data is kept in the cache: less is drawn again in a second or two."""

MAX_TRUTH_ITEMS = 100_000
"""The largest catalogue whose every item is given its true probability."""


@dataclass(frozen=True)
class Lengths:
    """How many interactions users have: log-normal, rounded, and cut to a range.

    Args:
        median: of the log-normal law.
        spread: standard deviation of the logarithm.
        minimum: shorter ones are drawn up to this.
        maximum: longer ones are cut to this.
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

    def draw(self, num_users: int, random: np.random.Generator) -> Array:
        """(num_users,) lengths."""
        drawn = np.rint(self.median * np.exp(self.spread * random.standard_normal(num_users)))
        return np.clip(drawn, self.minimum, self.maximum).astype(np.int64)


MOVIELENS_LENGTHS = Lengths(median=96, spread=1.0, minimum=18, maximum=2_277)
"""Like MovieLens-1M: 18 to 2,277 interactions per user, median 96."""

GOWALLA_LENGTHS = Lengths(median=36.7, spread=1.2, minimum=5, maximum=2_175)
"""Like Gowalla: at least 5 interactions per user, 74 on average, a few users with two thousand."""

STEAM_LENGTHS = Lengths(median=9, spread=0.7, minimum=5, maximum=200)
"""Like Steam: short, 12 interactions per user on average."""


@dataclass(frozen=True)
class Simulated(Dataset):
    """Data drawn from a known law: hidden user types, Zipf popularity, first- and second-order transitions.

    Args:
        num_users: number of users.
        num_items: size of the catalogue, whether or not each item occurs.
        num_types: number of hidden user types.
        mixture: how much of the next item popularity, type and transitions decide.
        lengths: how many interactions users have.
        has_repeats: whether a user may have an item twice.
        zipf_exponent: of popularity and of preference within a type.
        seed: draws everything.
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
    def law(self) -> NextItemLaw:
        """The law of the next item, given the type."""
        return NextItemLaw(self.num_items, self.num_types, self.mixture, self.zipf_exponent, self.seed)

    def truth(self) -> Truth:
        """The true probability of the next item, given the history; raises `InputError` where that is too much work."""
        if self.num_items > MAX_TRUTH_ITEMS:
            raise InputError(
                f"the truth of Simulated gives every item of the catalogue a probability for every user, which is not "
                f"feasible beyond {MAX_TRUTH_ITEMS:,} items: leave the Oracle out. Received: {self.num_items:,} items"
            )
        return Truth(self.law, self.has_repeats)

    def load(self, data_dir: Path) -> Interactions:
        """Draw the data, or find it in the cache; needs no file."""
        is_large = self.num_users * self.lengths.median >= MIN_CACHED_INTERACTIONS
        return draw_cached(self, self._draw) if is_large else self._draw()

    def _draw(self) -> Interactions:
        law = self.law
        chunk = max(1, CHUNK_CELLS // (self.lengths.maximum if self.has_repeats else self.num_items))
        parts = [
            self._draw_users(law, min(chunk, self.num_users - start), np.random.default_rng([self.seed, 9, start]))
            for start in range(0, self.num_users, chunk)
        ]
        lengths = np.concatenate([part_lengths for part_lengths, _ in parts])
        return Interactions(
            items=np.concatenate([items for _, items in parts]),
            offsets=offsets_from_lengths(lengths),
            user_ids=np.arange(1, self.num_users + 1),
            item_ids=np.arange(1, self.num_items + 1),
        )

    def is_on_disk(self, data_dir: Path) -> bool:
        """Always: it is drawn when needed."""
        return True

    def _draw_users(self, law: NextItemLaw, num_users: int, random: np.random.Generator) -> tuple[Array, Array]:
        """Lengths and flat items of some users, drawn position by position for all of them at once."""
        lengths = self.lengths.draw(num_users, random)
        # Longest first, so that the users still under way are always the first ones.
        order = np.argsort(-lengths, kind="stable")
        sorted_lengths = lengths[order]
        types = random.integers(self.num_types, size=num_users)
        items = np.full([num_users, int(sorted_lengths[0])], PADDING, np.int32)
        is_seen = None if self.has_repeats else np.zeros([num_users, self.num_items], bool)
        nothing = np.full(num_users, PADDING)
        for position in range(items.shape[1]):
            active = int(np.searchsorted(-sorted_lengths, -position, side="left"))
            last = (items[:, position - 1] if position >= 1 else nothing)[:active].astype(np.int64)
            second_last = (items[:, position - 2] if position >= 2 else nothing)[:active].astype(np.int64)
            contexts = Contexts(last, second_last)
            items[:active, position] = _draw_unseen(law, types[:active], contexts, is_seen, random)
        in_order = np.empty_like(items)
        in_order[order] = items
        return lengths, in_order[in_order != PADDING]


def _draw_unseen(
    law: NextItemLaw, types: Array, contexts: Contexts, is_seen: Array | None, random: np.random.Generator
) -> Array:
    """A next item per user; drawing again whatever was seen is drawing from the law renormalised over the unseen."""
    drawn = law.draw(types, contexts, random)
    if is_seen is None:
        return drawn
    rows = np.arange(len(types))
    while len(again := np.flatnonzero(is_seen[rows, drawn])):
        drawn[again] = law.draw(types[again], contexts[again], random)
    is_seen[rows, drawn] = True
    return drawn
