"""From a batch to the number that training minimises: states, candidates, logits, loss, mean over targets."""

from __future__ import annotations

from collections.abc import Callable

import tensorflow as tf

from aprec_like.batches import Batch
from aprec_like.interactions import PADDING, Interactions
from aprec_like.losses import FullLoss, SampledLoss
from aprec_like.losses.chunked_sampled import own_losses
from aprec_like.models import Network
from aprec_like.negatives import Negatives, Sampler
from aprec_like.types import Tensor

DROPOUT, NEGATIVES = 0, 1
"""What a step draws random numbers for."""

Objective = Callable[[Network, Batch, Tensor], Tensor]
"""The mean loss of a network over a batch, as a function of a (2,) seed."""


def make_objective(loss: SampledLoss | FullLoss, negatives: Negatives, train: Interactions) -> Objective:
    """What to minimise: the mean loss over the targets of a batch (long sequences weigh more).

    The same seed drops and draws the same.
    """
    if isinstance(loss, SampledLoss):
        sampler = negatives.sampler(train, loss.num_negatives)
        by = {"position": _own, "sequence": _shared_by_sequence, "batch": _shared_by_batch}[negatives.shared_by]
        total_loss = by(loss, sampler)
    else:
        total_loss = _full(loss)

    def objective(network: Network, batch: Batch, seed: Tensor) -> Tensor:
        dropout_seed, negatives_seed = (
            tf.random.experimental.stateless_fold_in(seed, purpose, alg="philox") for purpose in (DROPOUT, NEGATIVES)
        )
        is_target = batch.targets != PADDING
        batch = batch._replace(targets=tf.where(is_target, batch.targets, 0))
        weights = tf.cast(is_target, tf.float32)
        return total_loss(network, batch, weights / tf.reduce_sum(weights), dropout_seed, negatives_seed)

    return objective


WeightedLoss = Callable[[Network, Batch, Tensor, Tensor, Tensor], Tensor]
"""The sum of the losses of a batch's targets, each times its weight; two seeds, of dropout and of negatives."""


def _full(loss: FullLoss) -> WeightedLoss:
    def total(network: Network, batch: Batch, weights: Tensor, dropout_seed: Tensor, seed: Tensor) -> Tensor:
        states = network.target_states(batch, dropout_seed)
        return tf.reduce_sum(weights * loss(states, network.item_table, batch.targets))

    return total


def _own(loss: SampledLoss, sampler: Sampler) -> WeightedLoss:
    def total(network: Network, batch: Batch, weights: Tensor, dropout_seed: Tensor, seed: Tensor) -> Tensor:
        states = network.target_states(batch, dropout_seed)
        drawn = sampler(batch.users, batch.targets, seed)
        candidates = tf.concat([batch.targets[:, None], drawn], axis=1)
        table, offset = network.score_table, network.logit_bias
        return own_losses(loss, states, table, candidates, weights, network.num_items, offset)

    return total


def _shared_by_batch(loss: SampledLoss, sampler: Sampler) -> WeightedLoss:
    def total(network: Network, batch: Batch, weights: Tensor, dropout_seed: Tensor, seed: Tensor) -> Tensor:
        states = network.target_states(batch, dropout_seed)
        drawn = sampler(batch.users[:1], batch.targets[:1], seed)[0]
        negative = tf.matmul(states, network.item_rows(drawn), transpose_b=True)
        return _weighted(loss, network, states, batch.targets, negative, weights)

    return total


def _shared_by_sequence(loss: SampledLoss, sampler: Sampler) -> WeightedLoss:
    def total(network: Network, batch: Batch, weights: Tensor, dropout_seed: Tensor, seed: Tensor) -> Tensor:
        pieces = [network.project(states) for states in network.piece_states(batch, dropout_seed)]
        users = tf.concat([piece.users for piece in batch.pieces], axis=0)
        rows = network.item_rows(sampler(users, tf.zeros_like(users, tf.int32), seed))
        sizes = [piece.users.shape[0] for piece in batch.pieces]
        products = [
            tf.matmul(states, own, transpose_b=True) for states, own in zip(pieces, tf.split(rows, sizes), strict=True)
        ]
        flat_states, flat_products = (
            tf.gather(tf.concat([tf.reshape(part, [-1, part.shape[-1]]) for part in parts], axis=0), batch.places)
            for parts in (pieces, products)
        )
        return _weighted(loss, network, flat_states, batch.targets, flat_products, weights)

    return total


def _weighted(
    loss: SampledLoss, network: Network, states: Tensor, targets: Tensor, negative: Tensor, weights: Tensor
) -> Tensor:
    """The weighted loss of (n, dim) states of (n,) targets against (n, k) logits of negatives."""
    positive = tf.reduce_sum(states * network.item_rows(targets), axis=1)
    if network.logit_bias is not None:
        positive, negative = positive + network.logit_bias, negative + network.logit_bias
    return tf.reduce_sum(weights * loss(positive, negative, network.num_items))
