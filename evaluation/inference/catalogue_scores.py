"""Scores of the catalogue as TensorFlow operations on item numbers, for models that leave this package."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable
from functools import singledispatch

import tensorflow as tf
from typing_extensions import override

from aprec_like.errors import InputError
from aprec_like.models import CommonScorer, Scorer
from aprec_like.models.markov import MarkovChainScorer
from aprec_like.ranking import NetworkScorer
from aprec_like.types import Array, Tensor


class CatalogueScores(tf.Module):
    """The scores of a model for any part of the catalogue; its arrays are variables, which an export stores once.

    Args:
        num_items: size of the catalogue.
    """

    def __init__(self, num_items: int) -> None:
        super().__init__()
        self.num_items = num_items

    @abstractmethod
    def states(self, items: Tensor) -> Tensor:
        """Return what the scores of (users, length) histories, padded on the left, are computed from: (users, ...)."""

    @abstractmethod
    def scores(self, states: Tensor, start: Tensor, stop: Tensor) -> Tensor:
        """Return the (users, stop - start) float32 scores of the items from `start` to before `stop`."""

    def item_vectors(self, items: Tensor) -> Tensor | None:
        """Return the (..., dim) vectors of items; `None` for models without any."""
        return None


@singledispatch
def catalogue_scores(scorer: Scorer, num_items: int) -> CatalogueScores:
    """Return the scores of a loaded model as TensorFlow operations; raises `InputError` for a kind that has none."""
    raise InputError(f"{type(scorer).__name__} cannot be exported: networks, Markov chains and Popularity can")


class NetworkScores(CatalogueScores):
    """Dot products of a network's states and its item table, plus the bias of all logits.

    Of the network only the variables are stored: saving a Keras model with it would trace calls that nobody needs.
    """

    def __init__(self, scorer: NetworkScorer, num_items: int) -> None:
        super().__init__(num_items)
        network = scorer.network
        self.stored = [variable.value for variable in network.variables]
        self._next_item_states = network.next_item_states
        self._score_table: Callable[[], Tensor] = lambda: network.score_table
        self._bias: Callable[[], Tensor] = lambda: scorer.logit_bias

    @override
    def states(self, items: Tensor) -> Tensor:
        return tf.cast(self._next_item_states(items), tf.float32)

    @override
    def scores(self, states: Tensor, start: Tensor, stop: Tensor) -> Tensor:
        return tf.matmul(states, self._score_table()[start:stop], transpose_b=True) + self._bias()

    @override
    def item_vectors(self, items: Tensor) -> Tensor:
        return tf.gather(self._score_table(), items)


class MarkovChainScores(CatalogueScores):
    """Counts of the transitions from the last item plus popularity; the sparse matrix stays sparse."""

    def __init__(self, scorer: MarkovChainScorer, num_items: int) -> None:
        super().__init__(num_items)
        transitions = scorer.transitions.tocsr()
        self.offsets = _variable(transitions.indptr.astype("int64"), "offsets")
        self.next_items = _variable(transitions.indices.astype("int32"), "next_items")
        self.counts = _variable(transitions.data.astype("float32"), "counts")
        self.popularity = _variable(scorer.popularity.astype("float64"), "popularity")

    @override
    def states(self, items: Tensor) -> Tensor:
        """Return the (users,) last items."""
        return items[:, -1]

    @override
    def scores(self, states: Tensor, start: Tensor, stop: Tensor) -> Tensor:
        last, is_known = tf.maximum(states, 0), states >= 0
        starts = tf.gather(self.offsets, last)
        lengths = tf.where(is_known, tf.gather(self.offsets, last + 1) - starts, 0)
        rows = tf.repeat(tf.range(tf.shape(last, tf.int64)[0]), lengths)
        first_entries = tf.cumsum(lengths, exclusive=True)
        entries = tf.range(tf.reduce_sum(lengths)) + tf.gather(starts - first_entries, rows)
        columns = tf.gather(self.next_items, entries) - start
        is_inside = (columns >= 0) & (columns < stop - start)
        cells = tf.boolean_mask(tf.stack([rows, tf.cast(columns, tf.int64)], axis=1), is_inside)
        counts = tf.boolean_mask(tf.gather(self.counts, entries), is_inside)
        shape = tf.stack([tf.shape(last, tf.int64)[0], tf.cast(stop - start, tf.int64)])
        counted = tf.cast(tf.scatter_nd(cells, counts, shape), tf.float64)
        return tf.cast(counted + self.popularity[start:stop], tf.float32)


class CommonScores(CatalogueScores):
    """The same scores for everybody."""

    def __init__(self, scorer: CommonScorer, num_items: int) -> None:
        super().__init__(num_items)
        self.common_scores = _variable(scorer.common_scores, "common_scores")

    @override
    def states(self, items: Tensor) -> Tensor:
        return items[:, -1]

    @override
    def scores(self, states: Tensor, start: Tensor, stop: Tensor) -> Tensor:
        return tf.tile(self.common_scores[None, start:stop], [tf.shape(states)[0], 1])


catalogue_scores.register(NetworkScorer, NetworkScores)
catalogue_scores.register(MarkovChainScorer, MarkovChainScores)
catalogue_scores.register(CommonScorer, CommonScores)


def _variable(values: Array, name: str) -> Tensor:
    return tf.Variable(values, trainable=False, name=name)
