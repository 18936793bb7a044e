"""Ranks of targets among all items of the catalogue, and each user's top items."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace

import numpy as np
import tensorflow as tf
from typing_extensions import override

from aprec_like.interactions import PADDING, Histories
from aprec_like.models import CommonScorer, Network, Scorer
from aprec_like.out_of_core import empty_array
from aprec_like.ranking.catalogue_scan import (
    MAX_UNSHIFTED_SCORE,
    Cells,
    ScanInputs,
    ScanResult,
    ScanSpec,
    make_product_scan,
    make_score_scan,
)
from aprec_like.ranking.common_scores import scan_common_scores
from aprec_like.ranking.scan_interface import Scan, ScoreItems, check_finite
from aprec_like.ranking.seen_mass import sum_seen
from aprec_like.splits import HeldOut
from aprec_like.types import Array, Tensor

CHUNK_USERS = 128
"""Users ranked at once."""

CHUNK_SCORES = 1 << 24
"""Scores held at once, for models that return the scores of all items."""


@dataclass(frozen=True, eq=False)
class Rankings:
    """Rankings of the catalogue for every case of a `HeldOut`, in its order.

    Args:
        ranks: (cases,) 1 is the best; tied items share the mean of their ranks; infinite where the target cannot be
            ranked (a seen item that is excluded, or one that does not occur in training).
        target_scores: (cases,) scores of the targets.
        sigmoid_sums: (cases,) sum of sigmoid(score) over the catalogue, seen items included; NaN with a depth of 0.
        logsumexps: (cases,) log of the sum of exp(score) over the catalogue, likewise.
        seen_sigmoid_sums: (cases,) sum of sigmoid(score) over the distinct items of the history; NaN with a depth of 0.
        seen_softmax_sums: (cases,) sum of the softmax over the catalogue of the same items, likewise.
        top_items: (cases, depth) best items first, PADDING where there are fewer.
        top_scores: (cases, depth) their scores.
        candidate_ranks: (cases,) rank of the target among sampled candidates only, if candidates were given.
    """

    ranks: Array
    target_scores: Array
    sigmoid_sums: Array
    logsumexps: Array
    seen_sigmoid_sums: Array
    seen_softmax_sums: Array
    top_items: Array
    top_scores: Array
    candidate_ranks: Array | None = None


@dataclass(frozen=True, eq=False)
class NetworkScorer(Scorer):
    """Scorer by the dot product of a network's last state and the item embeddings."""

    network: Network

    @property
    @override
    def needs_times(self) -> bool:
        return self.network.needs_times

    @override
    def score(self, histories: Histories) -> Tensor:
        return tf.matmul(self.states(histories), self.network.item_table, transpose_b=True) + self.logit_bias

    def states(self, histories: Histories) -> Tensor:
        """Return the (users, dim) float32 states from which the next items are predicted."""
        return tf.cast(self.network.last_states(histories), tf.float32)

    @property
    def logit_bias(self) -> Tensor:
        """Scalar added to all scores; 0 for a network without a bias."""
        bias = self.network.logit_bias
        return tf.zeros([]) if bias is None else tf.cast(bias, tf.float32)


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

    The rank of a target is computed by counting the items with a higher score, without sorting.

    Args:
        scorer: model to rank with.
        held_out: targets to rank, and the histories before them.
        exclude_seen: exclude the items of the user's history; a target among them has no rank.
        depth: number of top items to keep; 0 computes the ranks only.
        candidates: (cases, n) items among which to rank the target as well.
        on_progress: called with the number of finished cases after every chunk.

    Raises:
        NotFiniteError: if any score is not finite.
    """
    num_items = held_out.known.num_items
    holds_all_scores = not isinstance(scorer, (NetworkScorer, CommonScorer))
    max_users = np.clip(CHUNK_SCORES // num_items, 1, CHUNK_USERS) if holds_all_scores else CHUNK_USERS
    num_chunks = -(-len(held_out) // int(max_users))
    num_users = -(-len(held_out) // num_chunks)
    scan = _make_scan(scorer, ScanSpec(num_items, num_users, min(depth, num_items), exclude_seen, is_unshifted=False))
    # Users with histories of similar length share a chunk, so that a network processes little padding; the last chunk
    # is padded, so that all have the same shape.
    order = np.argsort(held_out.known.lengths[held_out.users], kind="stable")
    padded = np.pad(order, (0, num_chunks * num_users - len(order)), mode="edge")
    columns: list[Array] = []
    for number, cases in enumerate(padded.reshape(num_chunks, num_users), start=1):
        histories, targets = held_out.histories(cases, with_times=scorer.needs_times), held_out.targets[cases]
        target_scores, result, score_items = scan(histories, _make_inputs(histories, targets, num_items))
        is_ranked = ~_is_seen(histories, targets) if exclude_seen else True
        ranks = np.where(is_ranked, (num_items + 1 + result.num_better_minus_worse) / 2, np.inf)
        sums = _catalogue_sums(result, depth)
        seen_sums = sum_seen(score_items, histories, sums[1], num_items) if depth else sums
        chunk = [ranks, target_scores, *sums, *seen_sums, *_top_items(result)]
        if candidates is not None:
            chunk.append(_rank_among(score_items, targets, candidates[cases]))
        columns = columns or [empty_array((len(held_out), *values.shape[1:]), values.dtype) for values in chunk]
        num_cases = len(order[(number - 1) * num_users : number * num_users])  # without padding
        for column, values in zip(columns, chunk, strict=True):
            column[cases[:num_cases]] = values[:num_cases]
        on_progress(min(number * num_users, len(held_out)))
    columns[0] = np.where(held_out.is_learnable(), columns[0], np.inf)
    return Rankings(*columns)


def _make_scan(scorer: Scorer, spec: ScanSpec) -> Scan:
    if isinstance(scorer, NetworkScorer):
        return _scan_network(scorer, spec)
    return scan_common_scores(scorer, spec) if isinstance(scorer, CommonScorer) else _scan_scores(scorer, spec)


def _scan_network(scorer: NetworkScorer, spec: ScanSpec) -> Scan:
    """Return a scan for networks, which computes scores from states and item embeddings chunk by chunk."""
    table, bias = tf.cast(scorer.network.item_table, tf.float32), scorer.logit_bias
    dim, max_row_norm = table.shape[1], _max_norm(table)

    def scan_users(histories: Histories, inputs: ScanInputs) -> tuple[Array, ScanResult, ScoreItems]:
        states = scorer.states(histories)
        bound = _max_norm(states) * max_row_norm + abs(float(bias))
        check_finite(bound)
        scan = make_product_scan(replace(spec, is_unshifted=bound <= MAX_UNSHIFTED_SCORE), dim)
        target_scores, result = scan(table, states, inputs, bias)

        def score_items(items: Array) -> Array:
            return np.asarray(tf.linalg.matvec(tf.gather(table, items), states) + bias)

        return target_scores.numpy(), result.numpy(), score_items

    return scan_users


def _scan_scores(scorer: Scorer, spec: ScanSpec) -> Scan:
    """Return a scan for models that return the scores of all items at once."""

    def scan_users(histories: Histories, inputs: ScanInputs) -> tuple[Array, ScanResult, ScoreItems]:
        scores = tf.convert_to_tensor(scorer.score(histories), tf.float32)
        bound = float(tf.maximum(tf.reduce_max(scores), -tf.reduce_min(scores)))
        check_finite(bound)
        scan = make_score_scan(replace(spec, is_unshifted=bound <= MAX_UNSHIFTED_SCORE))
        target_scores, result = scan(scores, inputs)
        return target_scores.numpy(), result.numpy(), lambda items: np.take_along_axis(scores.numpy(), items, axis=1)

    return scan_users


def _make_inputs(histories: Histories, targets: Array, num_items: int) -> ScanInputs:
    target_cells = Cells.from_pairs(targets, np.arange(len(targets)), num_items)
    seen_cells = Cells.from_pairs(histories.items, histories.rows, num_items)
    return ScanInputs(tf.constant(targets, tf.int32), target_cells, seen_cells)


def _is_seen(histories: Histories, targets: Array) -> Array:
    """Return (users,) whether the target is in the history."""
    rows = histories.rows
    return np.bincount(rows[histories.items == targets[rows]], minlength=len(targets)) > 0


@tf.function(input_signature=[tf.TensorSpec([None, None])], jit_compile=True)
def _squared_norms(rows: Tensor) -> Tensor:
    return tf.reduce_sum(tf.square(rows), axis=1)


def _max_norm(rows: Tensor) -> float:
    """Return the largest Euclidean norm of a row, NaN if a row has NaN; norms bound the products of rows and states."""
    return float(tf.reduce_max(_squared_norms(rows))) ** 0.5


def _catalogue_sums(result: ScanResult, depth: int) -> tuple[Array, Array]:
    """Return (users,) sums of sigmoids and logs of sums of exponentials; NaN with a depth of 0."""
    if depth == 0:
        return (np.full(result.num_better_minus_worse.shape, np.nan, np.float32),) * 2
    return result.sigmoid_sum.astype(np.float32), (result.exp_shift + np.log(result.exp_sum)).astype(np.float32)


def _top_items(result: ScanResult) -> tuple[Array, Array]:
    """Return (users, depth) top items and their scores."""
    top_items = np.where(np.isfinite(result.top_scores), result.top_items, PADDING)
    return top_items.astype(np.int32), result.top_scores.astype(np.float32)


def _rank_among(score_items: ScoreItems, targets: Array, candidates: Array) -> Array:
    """Return the (users,) ranks of the targets among their candidates; candidates equal to the target are ignored."""
    scores = score_items(np.concatenate([targets[:, None], candidates], axis=1))
    is_other = candidates != targets[:, None]
    num_better_minus_worse = np.where(is_other, np.sign(scores[:, 1:] - scores[:, :1]), 0).sum(axis=1)
    return (is_other.sum(axis=1) + num_better_minus_worse) / 2 + 1
