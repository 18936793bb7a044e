"""Scores to ranks: where each target stands among all items of the catalogue, and which items stand first."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace

import numpy as np
import scipy.special
import tensorflow as tf

from aprec_like.errors import NotFiniteError
from aprec_like.interactions import PADDING, Histories
from aprec_like.models import CommonScorer, Network, Scorer
from aprec_like.ranking.catalogue_scan import NEAR, Cells, Found, Shape, Task, scan_of_products, scan_of_scores
from aprec_like.splits import HeldOut
from aprec_like.types import Array, Tensor

CHUNK_USERS = 128
"""How many users are ranked at once."""

CHUNK_SCORES = 1 << 24
"""How many scores of a model that gives them all are held at once."""


@dataclass(frozen=True, eq=False)
class Rankings:
    """What ranking the catalogue for every case of a `HeldOut` gave; all rows in its order.

    Args:
        ranks: (cases,) 1 is the best; a tie stands half-way between the ranks that its items share; infinite
            where the target could not be ranked (a seen item that is excluded, or one that nobody has in training).
        target_scores: (cases,).
        sigmoid_sums: (cases,) sum of sigmoid(score) over the catalogue, seen items included; NaN without a depth.
        logsumexps: (cases,) log of the sum of exp(score) over the catalogue, likewise.
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
        return tf.matmul(self.states(histories), self.network.item_table, transpose_b=True) + self.offset

    def states(self, histories: Histories) -> Tensor:
        """(users, dim) float32."""
        return tf.cast(self.network.last_states(histories), tf.float32)

    @property
    def offset(self) -> Tensor:
        """What is added to every product."""
        offset = self.network.logit_bias
        return tf.zeros([]) if offset is None else tf.cast(offset, tf.float32)


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
        depth: how many of the best items to keep; 0 finds the ranks and nothing that costs more.
        candidates: (cases, n) items among which to rank the target as well.
        on_progress: called with the number of cases done after every chunk.

    Raises:
        NotFiniteError: if any score is not finite.
    """
    num_items = held_out.known.num_items
    holds_all_scores = not isinstance(scorer, (NetworkScorer, CommonScorer))
    most = np.clip(CHUNK_SCORES // num_items, 1, CHUNK_USERS) if holds_all_scores else CHUNK_USERS
    num_chunks = -(-len(held_out) // int(most))
    num_users = -(-len(held_out) // num_chunks)
    scan = _scan_of(scorer, Shape(num_items, num_users, min(depth, num_items), exclude_seen, is_near=False))
    # Users with histories of about the same length go together, so that a network has little padding to pass; the
    # last chunk is filled up, so that all have the same shape.
    order = np.argsort(held_out.known.lengths[held_out.users], kind="stable")
    filled = np.pad(order, (0, num_chunks * num_users - len(order)), mode="edge")
    rows: list[tuple[Array, ...]] = []
    for number, cases in enumerate(filled.reshape(num_chunks, num_users), start=1):
        histories, targets = held_out.histories(cases), held_out.targets[cases]
        target_scores, found, pick = scan(histories, _task(histories, targets, num_items))
        is_ranked = ~_is_seen(histories, targets) if exclude_seen else True
        ranks = np.where(is_ranked, (num_items + 1 + found.lead) / 2, np.inf)
        outcome = [ranks, target_scores, *_sums(found, depth), *_top(found)]
        if candidates is not None:
            outcome.append(_rank_among(pick, targets, candidates[cases]))
        rows.append(tuple(outcome))
        on_progress(min(number * num_users, len(held_out)))
    places = np.argsort(order)
    columns = [np.concatenate(column)[places] for column in zip(*rows, strict=True)]
    columns[0] = np.where(held_out.is_learnable(), columns[0], np.inf)
    return Rankings(*columns)


Pick = Callable[[Array], Array]
"""Gives the (users, n) scores of n items for each user."""

Scan = Callable[[Histories, Task], tuple[Array, Found, Pick]]
"""Scans the catalogue for the users of some histories: scores of the targets, what is found, all as NumPy arrays."""


def _scan_of(scorer: Scorer, shape: Shape) -> Scan:
    if isinstance(scorer, NetworkScorer):
        return _scan_products(scorer, shape)
    return _scan_common(scorer, shape) if isinstance(scorer, CommonScorer) else _scan_scores(scorer, shape)


def _scan_products(scorer: NetworkScorer, shape: Shape) -> Scan:
    """For networks: scores are made from states and rows, chunk by chunk."""
    table, offset = tf.cast(scorer.network.item_table, tf.float32), scorer.offset
    dim, largest_row = table.shape[1], _largest_norm(table)

    def scan_users(histories: Histories, task: Task) -> tuple[Array, Found, Pick]:
        states = scorer.states(histories)
        bound = _largest_norm(states) * largest_row + abs(float(offset))
        _check_finite(bound)
        scan = scan_of_products(replace(shape, is_near=bound <= NEAR), dim)
        target_scores, found = scan(table, states, task, offset)

        def pick(items: Array) -> Array:
            return np.asarray(tf.linalg.matvec(tf.gather(table, items), states))

        return target_scores.numpy(), found.numpy(), pick

    return scan_users


def _scan_scores(scorer: Scorer, shape: Shape) -> Scan:
    """For other models, which give all scores of a user at once."""

    def scan_users(histories: Histories, task: Task) -> tuple[Array, Found, Pick]:
        scores = tf.convert_to_tensor(scorer.score(histories), tf.float32)
        bound = float(tf.maximum(tf.reduce_max(scores), -tf.reduce_min(scores)))
        _check_finite(bound)
        target_scores, found = scan_of_scores(replace(shape, is_near=bound <= NEAR))(scores, task)
        return target_scores.numpy(), found.numpy(), lambda items: np.take_along_axis(scores.numpy(), items, axis=1)

    return scan_users


def _scan_common(scorer: CommonScorer, shape: Shape) -> Scan:
    """For models that score the same for everyone: sorted once, and then looked up."""
    scores, num_items = scorer.common_scores, shape.num_items
    _check_finite(float(np.abs(scores).max()))
    order = np.argsort(-scores, kind="stable")
    ascending, places = scores[order[::-1]], np.argsort(order)
    highest = np.float64(scores.max())
    reference, exp_sum, sigmoid_sum = (
        np.full(shape.num_users, value)
        for value in (highest, np.exp(scores - highest).sum(), scipy.special.expit(scores).sum(dtype=np.float64))
    )
    users, wanted = np.arange(shape.num_users), np.arange(shape.depth)

    def scan_users(histories: Histories, task: Task) -> tuple[Array, Found, Pick]:
        target_scores = scores[task.targets.numpy()]
        worse = np.searchsorted(ascending, target_scores, side="left")
        better = num_items - np.searchsorted(ascending, target_scores, side="right")
        keys = histories.rows * num_items + places[histories.items]
        rows, seen = np.divmod(np.unique(keys if shape.excludes_seen else keys[:0]), num_items)
        # Whatever is seen counts as worse.
        excess = np.bincount(rows, np.sign(scores[order[seen]] - target_scores[rows]) + 1, shape.num_users)
        # The j-th place that is not seen is j plus the number of seen ones before it: those with s_i - i <= j.
        starts = np.searchsorted(rows, users)
        unseen_before = seen - (np.arange(len(seen)) - starts[rows])
        keys = np.searchsorted(rows * num_items + unseen_before, users[:, None] * num_items + wanted, side="right")
        top = wanted + keys - starts[:, None]
        top_items = order[np.minimum(top, num_items - 1)]
        top_scores = np.where(top < num_items, scores[top_items], -np.inf)
        found = Found(better - worse - excess, reference, exp_sum, sigmoid_sum, top_scores, top_items)
        return target_scores, found, lambda items: scores[items]

    return scan_users


def _task(histories: Histories, targets: Array, num_items: int) -> Task:
    own = Cells.of(targets, np.arange(len(targets)), num_items)
    return Task(tf.constant(targets, tf.int32), own, Cells.of(histories.items, histories.rows, num_items))


def _is_seen(histories: Histories, targets: Array) -> Array:
    """(users,) whether the target is in the history."""
    rows = histories.rows
    return np.bincount(rows[histories.items == targets[rows]], minlength=len(targets)) > 0


@tf.function(input_signature=[tf.TensorSpec([None, None])], jit_compile=True)
def _squared_norms(rows: Tensor) -> Tensor:
    return tf.reduce_sum(tf.square(rows), axis=1)


def _largest_norm(rows: Tensor) -> float:
    """The largest Euclidean norm of a row, NaN where one is: no product is larger than the norms of its factors."""
    return float(tf.reduce_max(_squared_norms(rows))) ** 0.5


def _check_finite(bound: float) -> None:
    """Raise `NotFiniteError` if what all scores are bounded by is not a number of float32."""
    if not bound <= float(np.finfo(np.float32).max):
        raise NotFiniteError("a score is not finite: the model has diverged; a smaller learning rate may help")


def _sums(found: Found, depth: int) -> tuple[Array, Array]:
    """(users,) sums of sigmoids and logarithms of sums of exponentials."""
    if depth == 0:
        return (np.full(found.lead.shape, np.nan, np.float32),) * 2
    return found.sigmoid_sum.astype(np.float32), (found.reference + np.log(found.exp_sum)).astype(np.float32)


def _top(found: Found) -> tuple[Array, Array]:
    """(users, depth) best items and their scores."""
    top_items = np.where(np.isfinite(found.top_scores), found.top_items, PADDING)
    return top_items.astype(np.int32), found.top_scores.astype(np.float32)


def _rank_among(pick: Pick, targets: Array, candidates: Array) -> Array:
    """(users,) the rank of the target among it and its candidates, ties half-way; it is no candidate to itself."""
    scores = pick(np.concatenate([targets[:, None], candidates], axis=1))
    is_other = candidates != targets[:, None]
    lead = np.where(is_other, np.sign(scores[:, 1:] - scores[:, :1]), 0).sum(axis=1)
    return (is_other.sum(axis=1) + lead) / 2 + 1
