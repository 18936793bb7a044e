"""Distribution of the next item in simulated data: a mixture of four components that can be sampled and evaluated."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np

from aprec_like.interactions import PADDING
from aprec_like.types import Array

SUCCESSOR_PROBABILITIES = np.array([0.5, 0.25, 0.15, 0.1])
"""Probabilities of the successors of a context in a transition component."""


@dataclass(frozen=True)
class Mixture:
    """Weights of the four components of the distribution of the next item; they sum to 1.

    Args:
        popularity: weight of a Zipf distribution that is the same for all users.
        preference: weight of a Zipf distribution over the items of the user's type.
        first_order: weight of a choice among four successors of the last item.
        second_order: weight of a choice among four successors of the last item and the type of the item before it.
    """

    popularity: float = 0.15
    preference: float = 0.25
    first_order: float = 0.35
    second_order: float = 0.25

    def __post_init__(self) -> None:
        weights = (self.popularity, self.preference, self.first_order, self.second_order)
        if min(weights) < 0 or self.popularity <= 0 or abs(sum(weights) - 1) > 1e-9:
            raise ValueError(
                f"Mixture needs weights that sum to 1, none negative and popularity positive. Received: {weights}"
            )


@dataclass(frozen=True, eq=False)
class Contexts:
    """Last two items of n users, on which the next item depends besides the type of the user.

    Args:
        last: (n,) last item, or PADDING.
        second_last: (n,) item before the last, or PADDING.
    """

    last: Array
    second_last: Array

    def __getitem__(self, index: Array) -> Contexts:
        return Contexts(self.last[index], self.second_last[index])


@dataclass(frozen=True, eq=False)
class NextItemDistribution:
    """Distribution of the next item given the user's type and last two items, before seen items are excluded.

    For the first two items of a user, components without a context have weight 0 and the others are renormalised.

    Args:
        num_items: size of the catalogue.
        num_types: number of user types; every item belongs to one of them.
        mixture: weights of the four components.
        zipf_exponent: exponent of popularity and preference.
        seed: seed of popularity, types of items, and successors.
    """

    num_items: int
    num_types: int
    mixture: Mixture
    zipf_exponent: float
    seed: int

    @cached_property
    def item_types(self) -> Array:
        """(num_items,) type of each item; the numbers of items of two types differ by at most 1."""
        return self._random(0).permutation(self.num_items) % self.num_types

    @cached_property
    def popularity(self) -> Array:
        """(num_items,) probabilities of the popularity component."""
        weights = np.arange(1, self.num_items + 1, dtype=np.float64) ** -self.zipf_exponent
        return self._random(1).permutation(weights / weights.sum())

    @cached_property
    def preference(self) -> Array:
        """(num_items,) probability of each item in the preference component of users of the item's type."""
        weights = (1.0 + self._ranks_within_types()) ** -self.zipf_exponent
        return weights / np.bincount(self.item_types, weights, self.num_types)[self.item_types]

    def component_weights(self, contexts: Contexts) -> Array:
        """Return the (n, 4) weights of the components; a component without a context has weight 0."""
        mixture = self.mixture
        weights = np.empty([len(contexts.last), 4])
        weights[:] = mixture.popularity, mixture.preference, mixture.first_order, mixture.second_order
        weights[contexts.last == PADDING, 2] = 0
        weights[contexts.second_last == PADDING, 3] = 0
        return weights / weights.sum(axis=1, keepdims=True)

    def successors(self, contexts: Contexts) -> tuple[Array, Array]:
        """Return the successors of first and of second order, (n, 4) items each, with `SUCCESSOR_PROBABILITIES`.

        The probabilities of a repeated successor add up. The values are meaningless for contexts of PADDING.
        """
        second_context = self.item_types[contexts.second_last] * self.num_items + contexts.last
        return self._hashed_items(contexts.last, 2), self._hashed_items(second_context, 3)

    def sample(self, types: Array, contexts: Contexts, random: np.random.Generator) -> Array:
        """Sample (n,) next items, one for each type and context."""
        cumulative_weights = np.cumsum(self.component_weights(contexts), axis=1)
        component = (random.random(len(types))[:, None] >= cumulative_weights[:, :3]).sum(axis=1)
        quantile = random.random(len(types))
        slot = np.searchsorted(np.cumsum(SUCCESSOR_PROBABILITIES)[:-1], quantile, side="right")
        first, second = self.successors(contexts)
        rows = np.arange(len(types))
        return np.select(
            [component == 0, component == 1, component == 2],
            [self._popular_at(quantile), self._preferred_at(types, quantile), first[rows, slot]],
            second[rows, slot],
        )

    def _popular_at(self, quantile: Array) -> Array:
        """Return the items at quantiles of the popularity component."""
        return np.minimum(np.searchsorted(self._cumulative_popularity, quantile, side="right"), self.num_items - 1)

    def _preferred_at(self, types: Array, quantile: Array) -> Array:
        """Return the items at quantiles of the preference component of each type."""
        items, cumulative, ends = self._cumulative_preference
        found = np.searchsorted(cumulative, types + quantile, side="right")
        return items[np.minimum(found, ends[types] - 1)]

    @cached_property
    def _cumulative_popularity(self) -> Array:
        return np.cumsum(self.popularity)

    @cached_property
    def _cumulative_preference(self) -> tuple[Array, Array, Array]:
        """Items sorted by type, cumulative sums of their probabilities (z to z + 1 for type z), and ends of types."""
        items = np.argsort(self.item_types, kind="stable")
        ends = np.cumsum(np.bincount(self.item_types, minlength=self.num_types))
        return items, np.cumsum(self.preference[items]), ends

    def _ranks_within_types(self) -> Array:
        """Return the (num_items,) rank of each item, from 0, in a random order of the items of its type."""
        order = np.lexsort((self._random(4).random(self.num_items), self.item_types))
        starts = np.searchsorted(self.item_types[order], np.arange(self.num_types))
        ranks = np.empty(self.num_items)
        ranks[order] = np.arange(self.num_items) - starts[self.item_types[order]]
        return ranks

    def _hashed_items(self, contexts: Array, salt: int) -> Array:
        """Return (n, slots) items that are a hash of context and slot (the finaliser of SplitMix64)."""
        slots = np.arange(len(SUCCESSOR_PROBABILITIES), dtype=np.uint64)
        with np.errstate(over="ignore"):
            key = np.asarray(contexts, np.int64).astype(np.uint64)[:, None] * np.uint64(len(slots)) + slots
            key += np.uint64((self.seed * 4 + salt) % 2**32) * np.uint64(0x9E3779B97F4A7C15)
            key = (key ^ (key >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
            key = (key ^ (key >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
            key ^= key >> np.uint64(31)
        return (key % np.uint64(self.num_items)).astype(np.int64)

    def _random(self, purpose: int) -> np.random.Generator:
        return np.random.default_rng([self.seed, purpose])
