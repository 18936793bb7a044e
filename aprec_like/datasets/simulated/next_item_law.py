"""The law of the next item in simulated data: a mixture whose every part can be drawn from and evaluated."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np

from aprec_like.interactions import PADDING
from aprec_like.types import Array

SUCCESSOR_SHARES = np.array([0.5, 0.25, 0.15, 0.1])
"""How a transition divides its probability among the successors of a context."""


@dataclass(frozen=True)
class Mixture:
    """How much of the next item each part decides; the shares sum to 1.

    Args:
        popularity: the same Zipf law for everyone.
        preference: a Zipf law over the items that belong to the user's type.
        first_order: one of a few successors of the last item.
        second_order: one of a few successors of the last item, others for each type of the item before it.
    """

    popularity: float = 0.15
    preference: float = 0.25
    first_order: float = 0.35
    second_order: float = 0.25

    def __post_init__(self) -> None:
        shares = (self.popularity, self.preference, self.first_order, self.second_order)
        if min(shares) < 0 or self.popularity <= 0 or abs(sum(shares) - 1) > 1e-9:
            raise ValueError(
                f"Mixture needs shares that sum to 1, none negative and popularity positive. Received: {shares}"
            )


@dataclass(frozen=True, eq=False)
class Contexts:
    """What the next item depends on besides the user's type.

    Args:
        last: (n,) the last item, PADDING before the first.
        second_last: (n,) the item before it, PADDING where there is none.
    """

    last: Array
    second_last: Array

    def __getitem__(self, index: Array) -> Contexts:
        return Contexts(self.last[index], self.second_last[index])


@dataclass(frozen=True, eq=False)
class NextItemLaw:
    """The probability of every next item, given the user's type and the last two items, before seen items are left out.

    Where a context is missing (the first two items of a user) its part of the mixture is shared out among the others.

    Args:
        num_items: size of the catalogue.
        num_types: number of user types; every item belongs to one of them.
        mixture: shares of the four parts.
        zipf_exponent: of popularity and preference.
        seed: draws who is popular, what belongs to which type, and the successors.
    """

    num_items: int
    num_types: int
    mixture: Mixture
    zipf_exponent: float
    seed: int

    @cached_property
    def item_types(self) -> Array:
        """(num_items,) the type that each item belongs to; each has as many items as the next, give or take one."""
        return self._random(0).permutation(self.num_items) % self.num_types

    @cached_property
    def popularity(self) -> Array:
        """(num_items,) probabilities of the popularity part."""
        weights = np.arange(1, self.num_items + 1, dtype=np.float64) ** -self.zipf_exponent
        return self._random(1).permutation(weights / weights.sum())

    @cached_property
    def preference(self) -> Array:
        """(num_items,) the probability of an item in the preference part of a user of the item's own type."""
        place = self._places_within_types()
        weights = (1.0 + place) ** -self.zipf_exponent
        return weights / np.bincount(self.item_types, weights, self.num_types)[self.item_types]

    def component_shares(self, contexts: Contexts) -> Array:
        """(n, 4) the shares of the mixture where a missing context has none."""
        mixture = self.mixture
        shares = np.empty([len(contexts.last), 4])
        shares[:] = mixture.popularity, mixture.preference, mixture.first_order, mixture.second_order
        shares[contexts.last == PADDING, 2] = 0
        shares[contexts.second_last == PADDING, 3] = 0
        return shares / shares.sum(axis=1, keepdims=True)

    def successors(self, contexts: Contexts) -> tuple[Array, Array]:
        """(n, 4) items each: successors of the last item, and of the last item after an item of that type.

        A successor may stand there twice, and then has both shares. Meaningless where the context is missing.
        """
        second_context = self.item_types[contexts.second_last] * self.num_items + contexts.last
        return self._hashed_items(contexts.last, 2), self._hashed_items(second_context, 3)

    def draw(self, types: Array, contexts: Contexts, random: np.random.Generator) -> Array:
        """(n,) a next item for each type and context."""
        shares = np.cumsum(self.component_shares(contexts), axis=1)
        part = (random.random(len(types))[:, None] >= shares[:, :3]).sum(axis=1)
        place = random.random(len(types))
        slot = np.searchsorted(np.cumsum(SUCCESSOR_SHARES)[:-1], place, side="right")
        first, second = self.successors(contexts)
        rows = np.arange(len(types))
        return np.select(
            [part == 0, part == 1, part == 2],
            [self._draw_popular(place), self._draw_preferred(types, place), first[rows, slot]],
            second[rows, slot],
        )

    def _draw_popular(self, place: Array) -> Array:
        return np.minimum(np.searchsorted(self._cumulative_popularity, place, side="right"), self.num_items - 1)

    def _draw_preferred(self, types: Array, place: Array) -> Array:
        """Types one after the other on one line, each of length 1: type z is the part from z to z + 1."""
        items, cumulative, ends = self._preference_line
        found = np.searchsorted(cumulative, types + place, side="right")
        return items[np.minimum(found, ends[types] - 1)]

    @cached_property
    def _cumulative_popularity(self) -> Array:
        return np.cumsum(self.popularity)

    @cached_property
    def _preference_line(self) -> tuple[Array, Array, Array]:
        """Items by type, the sums of their probabilities, and where each type ends."""
        items = np.argsort(self.item_types, kind="stable")
        ends = np.cumsum(np.bincount(self.item_types, minlength=self.num_types))
        return items, np.cumsum(self.preference[items]), ends

    def _places_within_types(self) -> Array:
        """(num_items,) each item's place from 0 in a random order of its type's items."""
        order = np.lexsort((self._random(4).random(self.num_items), self.item_types))
        starts = np.searchsorted(self.item_types[order], np.arange(self.num_types))
        places = np.empty(self.num_items)
        places[order] = np.arange(self.num_items) - starts[self.item_types[order]]
        return places

    def _hashed_items(self, contexts: Array, salt: int) -> Array:
        """(n, slots) items that look random but are a function of context and slot (SplitMix64's finaliser)."""
        slots = np.arange(len(SUCCESSOR_SHARES), dtype=np.uint64)
        with np.errstate(over="ignore"):
            key = np.asarray(contexts, np.int64).astype(np.uint64)[:, None] * np.uint64(len(slots)) + slots
            key += np.uint64((self.seed * 4 + salt) % 2**32) * np.uint64(0x9E3779B97F4A7C15)
            key = (key ^ (key >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
            key = (key ^ (key >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
            key ^= key >> np.uint64(31)
        return (key % np.uint64(self.num_items)).astype(np.int64)

    def _random(self, purpose: int) -> np.random.Generator:
        return np.random.default_rng([self.seed, purpose])
