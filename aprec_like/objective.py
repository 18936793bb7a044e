"""From a batch to the number that training minimises: states, candidates, logits, loss, mean over positions."""

from __future__ import annotations

import tensorflow as tf

from aprec_like.batches import Batch, Tensor
from aprec_like.interactions import PADDING
from aprec_like.losses import FullLoss, SampledLoss
from aprec_like.models import Network
from aprec_like.negatives import Negatives

MAX_GEMM_ITEMS_PER_CANDIDATE = 100
"""A product with the whole table costs as much as gathering about this many times fewer rows (measured on CPU)."""

DROPOUT, NEGATIVES = 0, 1
"""What a step draws random numbers for."""


def batch_loss(
    network: Network, loss: SampledLoss | FullLoss, negatives: Negatives, batch: Batch, seed: Tensor
) -> Tensor:
    """The mean loss over the positions of the batch that have a target (long sequences weigh more).

    Args:
        network: gives states and the item table.
        loss: of every position.
        negatives: the law of the negatives; used by sampled losses only.
        batch: of items and targets.
        seed: (2,) integers; the same seed drops and draws the same.
    """
    dropout_seed = tf.random.experimental.stateless_fold_in(seed, DROPOUT, alg="philox")
    states = network(batch.items, dropout_seed)
    is_target = batch.targets != PADDING
    targets = tf.where(is_target, batch.targets, 0)
    if isinstance(loss, SampledLoss):
        negatives_seed = tf.random.experimental.stateless_fold_in(seed, NEGATIVES, alg="philox")
        drawn = negatives.draw(loss.num_negatives, network.num_items, targets, batch.rejected, negatives_seed)
        losses = sampled_losses(loss, states, network.item_table, targets, drawn, network.logit_offset)
    else:
        losses = loss(states, network.item_table, targets)
    weights = tf.cast(is_target, losses.dtype)
    return tf.reduce_sum(losses * weights) / tf.reduce_sum(weights)


def sampled_losses(
    loss: SampledLoss, states: Tensor, item_table: Tensor, targets: Tensor, drawn: Tensor, offset: Tensor | None = None
) -> Tensor:
    """(batch, length) losses of (batch, length) targets against (batch, length, k) drawn items."""
    candidates = tf.concat([targets[..., None], drawn], axis=-1)
    logits = candidate_logits(states, item_table, candidates)
    if offset is not None:
        logits += offset
    return loss(logits[..., 0], logits[..., 1:], item_table.shape[0])


def candidate_logits(states: Tensor, item_table: Tensor, candidates: Tensor) -> Tensor:
    """(batch, length, c) dot products of every state with the rows of its candidates.

    Gathering rows moves dim numbers per candidate; for a small catalogue it is cheaper to compute the logits
    of all items by one matrix product and to pick. The values are the same.
    """
    if uses_all_logits(item_table.shape[0], candidates.shape[-1]):
        return tf.gather(tf.matmul(states, item_table, transpose_b=True), candidates, batch_dims=2)
    return tf.einsum("bld,blcd->blc", states, tf.gather(item_table, candidates))


def uses_all_logits(num_items: int, num_candidates: int) -> bool:
    """Whether the logits of all items are cheaper than gathering the rows of this many candidates per position."""
    return num_items <= MAX_GEMM_ITEMS_PER_CANDIDATE * num_candidates
