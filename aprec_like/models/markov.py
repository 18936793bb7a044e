"""First-order Markov chain: what attention must beat."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import scipy.sparse

from aprec_like.interactions import PADDING, Histories, Interactions
from aprec_like.models.base import CountingModel, Scorer
from aprec_like.types import Array


@dataclass(frozen=True)
class MarkovChain(CountingModel):
    """Ranks items by how often they followed the user's last item; among equals, by popularity."""

    def fit(self, known: Interactions) -> Scorer:
        """Count transitions between neighbouring interactions of a user."""
        is_same_user = np.ones(max(known.num_interactions - 1, 0), bool)
        boundaries = known.offsets[1:-1] - 1
        is_same_user[boundaries[(boundaries >= 0) & (boundaries < len(is_same_user))]] = False
        last, following = known.items[:-1][is_same_user], known.items[1:][is_same_user]
        shape = (known.num_items, known.num_items)
        transitions = scipy.sparse.csr_array((np.ones(len(last), np.float32), (last, following)), shape=shape)
        counts = known.item_counts()
        return MarkovChainScorer(transitions, counts / (counts.max() + 1))


@dataclass(frozen=True, eq=False)
class MarkovChainScorer(Scorer):
    """Scores an item by its count after the last item, plus its popularity as a number below 1.

    Args:
        transitions: (num_items, num_items) counts, sparse; rows are last items.
        popularity: (num_items,) from 0 to less than 1.
    """

    transitions: scipy.sparse.csr_array
    popularity: Array

    def score(self, histories: Histories) -> Array:
        """(users, num_items); by popularity alone where the history is empty."""
        last = histories.last(1)[:, 0]
        scores = self.transitions[np.maximum(last, 0)].toarray()
        scores[last == PADDING] = 0
        return (scores + self.popularity).astype(np.float32)
