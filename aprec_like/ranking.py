"""Scores to ranks: where each target stands among all items of the catalogue, and which items stand first."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
import tensorflow as tf

from aprec_like.batches import Tensor
from aprec_like.interactions import PADDING, Array, Histories
from aprec_like.models import Network, Scorer
from aprec_like.splits import HeldOut

CHUNK_SCORES = 1 << 21
"""How many scores are held at once (8 MiB of float32 for each of a few buffers)."""

MAX_CHUNK_USERS = 512
"""How many users go through a network at once."""


class NotFiniteError(ArithmeticError):
    """A model gave a score or a loss that is not a number."""


@dataclass(frozen=True, eq=False)
class Rankings:
    """What ranking the catalogue for every case of a `HeldOut` gave; all rows in its order.

    Args:
        ranks: (cases,) 1 is the best; a tie stands half-way between the ranks that its items share; infinite
            where the target could not be ranked (a seen item that is excluded, or one that nobody has in training).
        target_scores: (cases,).
        sigmoid_sums: (cases,) sum of sigmoid(score) over the catalogue, seen items included.
        logsumexps: (cases,) log of the sum of exp(score) over the catalogue, seen items included.
        top_items: (cases, depth) best items first, PADDING where there are fewer.
        top_scores: (cases, depth) their scores.
        candidate_ranks: (cases,) the rank of the target among drawn candidates alone, where some were given.
    """

    ranks: Array
    target_scores: Array
    sigmoid_sums: Array
    logsumexps: Array
    top_items: Array
    top_scores: Array
    candidate_ranks: Array | None = None


@dataclass(frozen=True, eq=False)
class NetworkScorer(Scorer):
    """Scores items by the dot product of a network's last state and their rows."""

    network: Network

    def score(self, histories: Histories) -> Tensor:
        """(users, num_items)."""
        scores = tf.matmul(self.network.last_states(histories), self.network.item_table, transpose_b=True)
        return scores if self.network.logit_offset is None else scores + self.network.logit_offset


def rank(
    scorer: Scorer,
    held_out: HeldOut,
    *,
    exclude_seen: bool,
    depth: int = 0,
    candidates: Array | None = None,
    on_progress: Callable[[int], None] = lambda done: None,
) -> Rankings:
    """Rank the whole catalogue for every case, in chunks of users.

    The rank of a target is a count of the items with a better score, so nothing is sorted.

    Args:
        scorer: gives the scores.
        held_out: whose targets to rank, and what is known before them.
        exclude_seen: leave out the items of the user's history; a target among them has no rank.
        depth: how many of the best items to keep.
        candidates: (cases, n) items among which to rank the target as well.
        on_progress: called with the number of cases done after every chunk.

    Raises:
        NotFiniteError: if any score is not finite.
    """
    num_items = held_out.known.num_items
    depth = min(depth, num_items)
    chunk = int(np.clip(CHUNK_SCORES // num_items, 1, MAX_CHUNK_USERS))
    rows: list[tuple[Array, ...]] = []
    # Users with histories of about the same length go together, so that a network has little padding to pass.
    order = np.argsort(held_out.known.lengths[held_out.users], kind="stable")
    for start in range(0, len(held_out), chunk):
        cases = order[start : start + chunk]
        histories = held_out.histories(cases)
        seen = _seen_pairs(histories) if exclude_seen else np.zeros([0, 2], np.int32)
        scores, targets = scorer.score(histories), held_out.targets[cases]
        outcome = _rank_chunk(scores, targets, seen, depth)
        if candidates is not None:
            outcome += (_rank_among(scores, targets, candidates[cases]),)
        is_finite, *values = (value.numpy() for value in outcome)
        if not is_finite:
            raise NotFiniteError("a score is not finite: the model has diverged; a smaller learning rate may help")
        rows.append(tuple(values))
        on_progress(min(start + chunk, len(held_out)))
    places = np.argsort(order)
    columns = [np.concatenate(column)[places] for column in zip(*rows, strict=True)]
    ranks = np.where(held_out.is_learnable(), columns[0], np.inf)
    return Rankings(ranks, *columns[1:])


def _seen_pairs(histories: Histories) -> Array:
    """(interactions, 2) row and item of everything in the histories."""
    return np.stack([histories.rows, histories.items], axis=1).astype(np.int32)


@tf.function(reduce_retracing=True)
def _rank_chunk(scores: Tensor, targets: Tensor, seen: Tensor, depth: int) -> tuple[Tensor, ...]:
    """The columns of `Rankings` for some users, behind whether all scores are finite."""
    is_finite = tf.reduce_all(tf.math.is_finite(scores))
    target_scores = tf.gather(scores, targets, batch_dims=1)
    lowest = tf.constant(-np.inf, scores.dtype)
    ranked = tf.tensor_scatter_nd_update(scores, seen, tf.fill([tf.shape(seen)[0]], lowest))
    better = tf.math.count_nonzero(ranked > target_scores[:, None], axis=1, dtype=tf.int32)
    equal = tf.math.count_nonzero(tf.equal(ranked, target_scores[:, None]), axis=1, dtype=tf.int32)
    is_ranked = tf.math.is_finite(tf.gather(ranked, targets, batch_dims=1))
    halfway = 1.0 + tf.cast(better, tf.float64) + tf.cast(equal - 1, tf.float64) / 2
    ranks = tf.where(is_ranked, halfway, np.inf)
    top_scores, top_items = tf.math.top_k(ranked, depth)
    return (
        is_finite,
        ranks,
        target_scores,
        tf.reduce_sum(tf.sigmoid(scores), axis=1),
        tf.reduce_logsumexp(scores, axis=1),
        tf.where(tf.math.is_finite(top_scores), top_items, PADDING),
        top_scores,
    )


@tf.function(reduce_retracing=True)
def _rank_among(scores: Tensor, targets: Tensor, candidates: Tensor) -> Tensor:
    """(users,) the rank of the target among it and its candidates, ties half-way; it is no candidate to itself."""
    target_scores = tf.gather(scores, targets, batch_dims=1)[:, None]
    others = tf.gather(scores, candidates, batch_dims=1)
    is_other = candidates != tf.cast(targets, candidates.dtype)[:, None]
    better = tf.math.count_nonzero(is_other & (others > target_scores), axis=1, dtype=tf.int32)
    equal = tf.math.count_nonzero(is_other & tf.equal(others, target_scores), axis=1, dtype=tf.int32)
    return 1.0 + tf.cast(better, tf.float64) + tf.cast(equal, tf.float64) / 2
