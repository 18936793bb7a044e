"""True probabilities of the next item in simulated data, given the history of the user, which models see as well.

The type of the user is hidden, so this is the posterior predictive distribution: the distribution of the next item
averaged over the types with their posterior probabilities given the history. Exact, and vectorised over users.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from aprec_like.datasets.simulated.next_item_distribution import SUCCESSOR_PROBABILITIES, Contexts, NextItemDistribution
from aprec_like.interactions import PADDING, Histories
from aprec_like.types import Array


@dataclass(frozen=True, eq=False)
class TrueProbabilities:
    """Posterior predictive distribution of the next item.

    Args:
        distribution: distribution of the next item given the type.
        has_repeats: whether users may have repeated items; if not, it is renormalised over unseen items.
    """

    distribution: NextItemDistribution
    has_repeats: bool

    def probabilities(self, histories: Histories) -> Array:
        """Return P(item | history) of every item: (users, num_items) float64, each row sums to 1."""
        distribution, num_users = self.distribution, len(histories)
        steps = _Steps(histories)
        contexts = _next_contexts(histories)
        weights = distribution.component_weights(contexts)
        posterior = self.type_posterior(histories)
        if not self.has_repeats:
            posterior = posterior / self._unseen_mass(steps, np.arange(num_users), histories.lengths, contexts)
        total = posterior.sum(axis=1)
        result = (total * weights[:, 0])[:, None] * distribution.popularity
        result += (posterior * weights[:, 1, None])[:, distribution.item_types] * distribution.preference
        for component, successors in zip((2, 3), distribution.successors(contexts), strict=True):
            added = (total * weights[:, component])[:, None] * SUCCESSOR_PROBABILITIES
            np.add.at(result, (np.arange(num_users)[:, None], successors), added)
        if not self.has_repeats:
            result[histories.rows, histories.items] = 0.0
        return result

    def type_posterior(self, histories: Histories) -> Array:
        """Return P(type | history), with a uniform prior of the types: (users, num_types)."""
        steps = _Steps(histories)
        likelihoods = self._likelihoods(steps)
        if not self.has_repeats:
            likelihoods /= self._unseen_mass(steps, steps.rows, steps.positions, steps.contexts)
        columns = [np.bincount(steps.rows, column, len(histories)) for column in np.log(likelihoods).T]
        logits = np.stack(columns, axis=1)
        posterior = np.exp(logits - logits.max(axis=1, keepdims=True))
        return posterior / posterior.sum(axis=1, keepdims=True)

    def _likelihoods(self, steps: _Steps) -> Array:
        """Return P(item | type, context) of each item of the histories: (interactions, num_types)."""
        distribution, items = self.distribution, steps.items
        weights = distribution.component_weights(steps.contexts)
        first, second = distribution.successors(steps.contexts)
        common = weights[:, 0] * distribution.popularity[items]
        common += weights[:, 2] * ((first == items[:, None]) @ SUCCESSOR_PROBABILITIES)
        common += weights[:, 3] * ((second == items[:, None]) @ SUCCESSOR_PROBABILITIES)
        result = np.repeat(common[:, None], distribution.num_types, axis=1)
        preferred = weights[:, 1] * distribution.preference[items]
        result[np.arange(len(items)), distribution.item_types[items]] += preferred
        return result

    def _unseen_mass(self, steps: _Steps, rows: Array, positions: Array, contexts: Contexts) -> Array:
        """Return the total probability of the items that do not occur before a position: (n, num_types)."""
        distribution, items = self.distribution, steps.items
        weights = distribution.component_weights(contexts)
        first, second = distribution.successors(contexts)
        index = steps.offsets[rows] + positions
        seen = weights[:, 0] * steps.sum_before(distribution.popularity[items], index, rows)
        seen += weights[:, 2] * (steps.is_seen(first, rows, positions) @ SUCCESSOR_PROBABILITIES)
        seen += weights[:, 3] * (steps.is_seen(second, rows, positions) @ SUCCESSOR_PROBABILITIES)
        result = np.empty([len(rows), distribution.num_types])
        for user_type in range(distribution.num_types):
            preferred = np.where(distribution.item_types[items] == user_type, distribution.preference[items], 0.0)
            result[:, user_type] = 1 - seen - weights[:, 1] * steps.sum_before(preferred, index, rows)
        return result


class _Steps:
    """Items of histories with row, position and context of each."""

    def __init__(self, histories: Histories) -> None:
        self.items = histories.items.astype(np.int64)
        self.offsets = histories.offsets
        self.rows = histories.rows
        self.positions = np.arange(len(self.items)) - histories.offsets[self.rows]
        self.contexts = Contexts(self._before(1), self._before(2))
        self._span = int(self.items.max(initial=0)) + 2
        self._firsts, first_steps = np.unique(self.rows * self._span + self.items, return_index=True)
        self._first_positions = self.positions[first_steps]

    def _before(self, distance: int) -> Array:
        """Return the (interactions,) item `distance` positions before each item, or PADDING."""
        shifted = np.full(len(self.items), PADDING)
        shifted[distance:] = self.items[:-distance]
        return np.where(self.positions >= distance, shifted, PADDING)

    def sum_before(self, values: Array, index: Array, rows: Array) -> Array:
        """Return the (n,) sums of `values`, one per item, over the items of each row before `index`."""
        cumulative = np.concatenate([[0.0], np.cumsum(values)])
        return cumulative[index] - cumulative[self.offsets[rows]]

    def is_seen(self, items: Array, rows: Array, positions: Array) -> Array:
        """Return an (n, slots) mask: the item occurs in the row before the position."""
        keys = rows[:, None] * self._span + np.minimum(items, self._span - 1)
        found = np.minimum(np.searchsorted(self._firsts, keys), max(len(self._firsts) - 1, 0))
        if len(self._firsts) == 0:
            return np.zeros(items.shape, bool)
        return (self._firsts[found] == keys) & (self._first_positions[found] < positions[:, None])


def _next_contexts(histories: Histories) -> Contexts:
    """Return the contexts of the items that follow the histories."""
    last_two = histories.last(2).astype(np.int64)
    return Contexts(last_two[:, 1], last_two[:, 0])
