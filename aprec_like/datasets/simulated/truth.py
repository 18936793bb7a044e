"""The true probability of the next item of simulated data, from what a model also sees: the user's history.

The user's type is hidden, so the truth is the posterior predictive: the law of the next item averaged over the types,
each weighted by how well it explains the history (a Bayes filter). Exact, and vectorised over users.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from aprec_like.datasets.simulated.next_item_law import SUCCESSOR_SHARES, Contexts, NextItemLaw
from aprec_like.interactions import PADDING, Histories
from aprec_like.types import Array


@dataclass(frozen=True, eq=False)
class Truth:
    """The true law of the next item.

    Args:
        law: of the next item given the type.
        has_repeats: whether a user may have an item twice; if not, the law is renormalised over unseen items.
    """

    law: NextItemLaw
    has_repeats: bool

    def probabilities(self, histories: Histories) -> Array:
        """(users, num_items) float64: P(i | history) of every item; each row sums to 1."""
        law, users = self.law, len(histories)
        steps = _Steps(histories)
        ahead = _next_contexts(histories)
        shares = law.component_shares(ahead)
        weights = self.type_posterior(histories)
        if not self.has_repeats:
            weights = weights / self._unseen_mass(steps, np.arange(users), histories.lengths, ahead)
        total = weights.sum(axis=1)
        result = (total * shares[:, 0])[:, None] * law.popularity
        result += (weights * shares[:, 1, None])[:, law.item_types] * law.preference
        for part, successors in zip((2, 3), law.successors(ahead), strict=True):
            portions = (total * shares[:, part])[:, None] * SUCCESSOR_SHARES
            np.add.at(result, (np.arange(users)[:, None], successors), portions)
        if not self.has_repeats:
            result[histories.rows, histories.items] = 0.0
        return result

    def type_posterior(self, histories: Histories) -> Array:
        """(users, num_types) P(type | history), all types being equally likely before."""
        steps = _Steps(histories)
        likelihoods = self._likelihoods(steps)
        if not self.has_repeats:
            likelihoods /= self._unseen_mass(steps, steps.rows, steps.positions, steps.contexts)
        log_likelihoods = np.log(likelihoods)
        totals = [np.bincount(steps.rows, column, len(histories)) for column in log_likelihoods.T]
        logits = np.stack(totals, axis=1)
        posterior = np.exp(logits - logits.max(axis=1, keepdims=True))
        return posterior / posterior.sum(axis=1, keepdims=True)

    def _likelihoods(self, steps: _Steps) -> Array:
        """(interactions, num_types) the law's probability of each item of the histories, seen items not left out."""
        law, items = self.law, steps.items
        shares = law.component_shares(steps.contexts)
        first, second = law.successors(steps.contexts)
        common = shares[:, 0] * law.popularity[items]
        common += shares[:, 2] * ((first == items[:, None]) @ SUCCESSOR_SHARES)
        common += shares[:, 3] * ((second == items[:, None]) @ SUCCESSOR_SHARES)
        result = np.repeat(common[:, None], law.num_types, axis=1)
        result[np.arange(len(items)), law.item_types[items]] += shares[:, 1] * law.preference[items]
        return result

    def _unseen_mass(self, steps: _Steps, rows: Array, positions: Array, contexts: Contexts) -> Array:
        """(n, num_types) the law's probability of all items that the user has not had before a position."""
        law = self.law
        shares = law.component_shares(contexts)
        first, second = law.successors(contexts)
        index = steps.offsets[rows] + positions
        seen = shares[:, 0] * steps.sum_before(law.popularity[steps.items], index, rows)
        seen += shares[:, 2] * (steps.is_seen(first, rows, positions) @ SUCCESSOR_SHARES)
        seen += shares[:, 3] * (steps.is_seen(second, rows, positions) @ SUCCESSOR_SHARES)
        result = np.empty([len(rows), law.num_types])
        for kind in range(law.num_types):
            preferred = np.where(law.item_types[steps.items] == kind, law.preference[steps.items], 0.0)
            result[:, kind] = 1 - seen - shares[:, 1] * steps.sum_before(preferred, index, rows)
        return result


class _Steps:
    """Every item of some histories as a step: who, at which position, after what."""

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
        shifted = np.full(len(self.items), PADDING)
        shifted[distance:] = self.items[:-distance]
        return np.where(self.positions >= distance, shifted, PADDING)

    def sum_before(self, values: Array, index: Array, rows: Array) -> Array:
        """(n,) sums of `values` over the steps of each row before `index`."""
        cumulative = np.concatenate([[0.0], np.cumsum(values)])
        return cumulative[index] - cumulative[self.offsets[rows]]

    def is_seen(self, items: Array, rows: Array, positions: Array) -> Array:
        """(n, slots) whether each item occurs in the row before the position."""
        keys = rows[:, None] * self._span + np.minimum(items, self._span - 1)
        found = np.minimum(np.searchsorted(self._firsts, keys), max(len(self._firsts) - 1, 0))
        if len(self._firsts) == 0:
            return np.zeros(items.shape, bool)
        return (self._firsts[found] == keys) & (self._first_positions[found] < positions[:, None])


def _next_contexts(histories: Histories) -> Contexts:
    last_two = histories.last(2).astype(np.int64)
    return Contexts(last_two[:, 1], last_two[:, 0])
