"""First-order Markov chain: a baseline that counts transitions between items."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import scipy.sparse
from typing_extensions import override

from aprec_like.interactions import PADDING, Histories, Interactions
from aprec_like.models.base import CountingModel, Scorer
from aprec_like.types import Array


@dataclass(frozen=True)
class MarkovChain(CountingModel):
    """Ranks items by how often they followed the user's last item; ties by popularity."""

    @override
    def fit(self, known: Interactions) -> Scorer:
        shape = (known.num_items, known.num_items)
        none = known.items[:0]
        transitions = scipy.sparse.csr_array((np.zeros(0, np.float32), (none, none)), shape=shape)
        for part in known.parts():
            items, rows = part.content.items, part.content.rows
            is_same_user = rows[1:] == rows[:-1]
            last, following = items[:-1][is_same_user], items[1:][is_same_user]
            ones = np.ones(len(last), np.float32)
            transitions = transitions + scipy.sparse.csr_array((ones, (last, following)), shape=shape)
        counts = known.item_counts()
        return MarkovChainScorer(transitions, counts / (counts.max() + 1))


@dataclass(frozen=True, eq=False)
class MarkovChainScorer(Scorer):
    """Scores an item by the count of its transitions from the last item, plus its popularity scaled below 1.

    Args:
        transitions: (num_items, num_items) sparse counts; rows are last items, columns next items.
        popularity: (num_items,) from 0 to less than 1.
    """

    transitions: scipy.sparse.csr_array
    popularity: Array

    @override
    def score(self, histories: Histories) -> Array:
        """Score as described above; by popularity alone for an empty history."""
        last = histories.last(1)[:, 0]
        scores = self.transitions[np.maximum(last, 0)].toarray()
        scores[last == PADDING] = 0
        return (scores + self.popularity).astype(np.float32)
