"""From a batch to the number that training minimises: states, candidates, logits, loss, mean over positions."""

from __future__ import annotations

from collections.abc import Callable

import tensorflow as tf

from aprec_like.batches import Batch, Tensor
from aprec_like.interactions import PADDING, Interactions
from aprec_like.losses import FullLoss, SampledLoss
from aprec_like.models import Network
from aprec_like.negatives import Negatives

MAX_GEMM_ITEMS_PER_CANDIDATE = 100
"""Up to this many items per candidate all logits are computed. A guess: only a ratio of 16 was timed, 3x faster."""

DROPOUT, NEGATIVES = 0, 1
"""What a step draws random numbers for."""

Objective = Callable[[Network, Batch, Tensor], Tensor]
"""The mean loss of a network over a batch, as a function of a (2,) seed."""


def make_objective(loss: SampledLoss | FullLoss, negatives: Negatives, train: Interactions) -> Objective:
    """What to minimise: the mean loss over the positions of a batch that have a target (long sequences weigh more).

    The same seed drops and draws the same.
    """
    position_losses = _sampled(loss, negatives, train) if isinstance(loss, SampledLoss) else _full(loss)

    def objective(network: Network, batch: Batch, seed: Tensor) -> Tensor:
        dropout_seed, negatives_seed = (
            tf.random.experimental.stateless_fold_in(seed, purpose, alg="philox") for purpose in (DROPOUT, NEGATIVES)
        )
        states = network.target_states(batch, dropout_seed)
        is_target = batch.targets != PADDING
        targets = tf.where(is_target, batch.targets, 0)
        losses = position_losses(network, states, batch.users, targets, negatives_seed)
        weights = tf.cast(is_target, losses.dtype)
        return tf.reduce_sum(losses * weights) / tf.reduce_sum(weights)

    return objective


def _full(loss: FullLoss) -> Callable[..., Tensor]:
    def losses(network: Network, states: Tensor, users: Tensor, targets: Tensor, seed: Tensor) -> Tensor:
        return loss(states, network.item_table, targets)

    return losses


def _sampled(loss: SampledLoss, negatives: Negatives, train: Interactions) -> Callable[..., Tensor]:
    sampler = negatives.sampler(train, loss.num_negatives)

    def losses(network: Network, states: Tensor, users: Tensor, targets: Tensor, seed: Tensor) -> Tensor:
        drawn = sampler(users, targets, seed)
        return sampled_losses(loss, states, network.item_table, targets, drawn, network.logit_offset)

    return losses


def sampled_losses(
    loss: SampledLoss, states: Tensor, item_table: Tensor, targets: Tensor, drawn: Tensor, offset: Tensor | None = None
) -> Tensor:
    """(batch, targets) losses of (batch, targets) targets against drawn items: their own, or shared ones."""
    is_shared = drawn.shape[1] == 1 and targets.shape[1] != 1
    logits = (
        shared_logits(states, item_table, targets, drawn)
        if is_shared
        else own_logits(states, item_table, targets, drawn)
    )
    positive, negative = logits if offset is None else (part + offset for part in logits)
    return loss(positive, negative, item_table.shape[0])


def own_logits(states: Tensor, item_table: Tensor, targets: Tensor, drawn: Tensor) -> tuple[Tensor, Tensor]:
    """(batch, targets) logits of the targets and (batch, targets, k) of every position's own drawn items.

    Gathering rows moves dim numbers per candidate; for a small catalogue it is cheaper to compute the logits
    of all items by one matrix product and to pick. The values are the same.
    """
    candidates = tf.concat([targets[..., None], drawn], axis=-1)
    if uses_all_logits(item_table.shape[0], candidates.shape[-1]):
        logits = _pick(_product(states, item_table), candidates)
    else:
        logits = tf.einsum("bld,blcd->blc", states, tf.gather(item_table, candidates))
    return logits[..., 0], logits[..., 1:]


def shared_logits(states: Tensor, item_table: Tensor, targets: Tensor, drawn: Tensor) -> tuple[Tensor, Tensor]:
    """The same for drawn items of shape (batch or 1, 1, k) that all positions share: matrix products."""
    positive = tf.einsum("bld,bld->bl", states, tf.gather(item_table, targets))
    rows = tf.gather(item_table, drawn[:, 0])
    if drawn.shape[0] != 1:
        return positive, tf.matmul(states, rows, transpose_b=True)
    return positive, tf.reshape(_product(states, rows[0]), [*tf.unstack(tf.shape(targets)), drawn.shape[-1]])


def _product(states: Tensor, rows: Tensor) -> Tensor:
    """(batch * targets, n) products of every state with every row.

    Of two matrices: as a batch of products its gradient would hold a copy of the rows per sequence.
    """
    return tf.matmul(tf.reshape(states, [-1, states.shape[-1]]), rows, transpose_b=True)


def _pick(logits: Tensor, candidates: Tensor) -> Tensor:
    """(batch, targets, c) entries of (batch * targets, num_items) logits; flat, so that the gradient is cheap."""
    starts = tf.range(tf.shape(logits, out_type=tf.int64)[0]) * logits.shape[1]
    places = tf.cast(candidates, tf.int64) + tf.reshape(starts, tf.shape(candidates[..., :1]))
    return tf.gather(tf.reshape(logits, [-1]), places)


def uses_all_logits(num_items: int, num_candidates: int) -> bool:
    """Whether the logits of all items are cheaper than gathering the rows of this many candidates per position."""
    return num_items <= MAX_GEMM_ITEMS_PER_CANDIDATE * num_candidates
