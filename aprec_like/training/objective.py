"""The training objective: mean loss over the targets of a batch, with four ways to choose the items of the loss.

Full losses score the whole catalogue. Sampled losses score negatives that are drawn per position, per sequence or per
batch (`Negatives.shared_by`).
"""

from __future__ import annotations

from collections.abc import Callable

import tensorflow as tf

from aprec_like.batches.layouts import Batch
from aprec_like.batches.shards import Shard, take_shard
from aprec_like.interactions import PADDING, Interactions
from aprec_like.losses import FullLoss, SampledLoss
from aprec_like.losses.chunked_sampled import sampled_loss_sum
from aprec_like.models import Network
from aprec_like.models.base import gather_targets
from aprec_like.negatives import Negatives, Sampler
from aprec_like.training.seen_items import SeenItems
from aprec_like.types import Tensor

DROPOUT, NEGATIVES = 0, 1
"""Folded into the seed of a step to get independent seeds of dropout and of negative sampling."""

Objective = Callable[[Network, Batch, Tensor], Tensor]
"""Function of a network, a batch and a (2,) seed that returns the mean loss over the batch's targets; in a replica, its
part of the mean, so that the sum over replicas is the mean."""

LossSum = Callable[[Network, Shard, Tensor, Tensor, Tensor], Tensor]
"""Function of a network, a replica's part of a batch, (targets,) weights, the seed of dropout and the seed of negative
sampling; returns the weighted sum of the losses of the part's targets."""


def make_objective(loss: SampledLoss | FullLoss, negatives: Negatives, train: Interactions) -> Objective:
    """Return the objective of a loss: its mean over the targets of a batch, to which long sequences contribute more."""
    if isinstance(loss, SampledLoss):
        make = {"position": _per_position, "sequence": _per_sequence, "batch": _per_batch}[negatives.shared_by]
        loss_sum = make(loss, negatives.sampler(train, loss.num_negatives))
    else:
        loss_sum = _over_catalogue(loss, SeenItems(train) if loss.leaves_out_history else None)

    def objective(network: Network, batch: Batch, seed: Tensor) -> Tensor:
        dropout_seed, negatives_seed = (
            tf.random.experimental.stateless_fold_in(seed, purpose, alg="philox") for purpose in (DROPOUT, NEGATIVES)
        )
        shard, num_targets = take_shard(batch), tf.reduce_sum(tf.cast(batch.targets != PADDING, tf.float32))
        weights = tf.cast(shard.batch.targets != PADDING, tf.float32)
        shard = shard._replace(batch=_fill_targets(shard.batch), whole=_fill_targets(batch))
        return loss_sum(network, shard, weights / num_targets, dropout_seed, negatives_seed)

    return objective


def _fill_targets(batch: Batch) -> Batch:
    """Return the batch with some item in the place of missing targets."""
    return batch._replace(targets=tf.where(batch.targets == PADDING, tf.zeros_like(batch.targets), batch.targets))


def _over_catalogue(loss: FullLoss, seen_items: SeenItems | None) -> LossSum:
    """Loss over all items of the catalogue, or without the items that the user has seen."""

    def loss_sum(network: Network, shard: Shard, weights: Tensor, dropout_seed: Tensor, seed: Tensor) -> Tensor:
        batch = shard.batch
        states = network.target_states(batch, dropout_seed)
        left_out = None if seen_items is None else seen_items.left_out(batch)
        return tf.reduce_sum(weights * loss(states, network.item_table, batch.targets, left_out))

    return loss_sum


def _per_position(loss: SampledLoss, sampler: Sampler) -> LossSum:
    """Loss over negatives that are drawn for every target."""

    def loss_sum(network: Network, shard: Shard, weights: Tensor, dropout_seed: Tensor, seed: Tensor) -> Tensor:
        states = network.target_states(shard.batch, dropout_seed)
        negatives = shard.own_targets(sampler(shard.whole.users, shard.whole.targets, seed))
        candidates = tf.concat([shard.batch.targets[:, None], negatives], axis=1)
        table, logit_bias = network.score_table, network.logit_bias
        return sampled_loss_sum(loss, states, table, candidates, weights, network.num_items, logit_bias)

    return loss_sum


def _per_sequence(loss: SampledLoss, sampler: Sampler) -> LossSum:
    """Loss over negatives that all targets of a sequence share."""

    def loss_sum(network: Network, shard: Shard, weights: Tensor, dropout_seed: Tensor, seed: Tensor) -> Tensor:
        batch = shard.batch
        bucket_states = [network.project(states) for states in network.bucket_states(batch, dropout_seed)]
        users = tf.concat([bucket.users for bucket in shard.whole.buckets], axis=0)
        negatives = shard.own_sequences(sampler(users, tf.zeros_like(users, batch.targets.dtype), seed))
        rows = network.item_rows(negatives)
        bucket_rows = tf.split(rows, [bucket.users.shape[0] for bucket in batch.buckets])
        bucket_logits = [
            tf.matmul(states, rows, transpose_b=True) for states, rows in zip(bucket_states, bucket_rows, strict=True)
        ]
        states, negative_logits = (gather_targets(values, batch) for values in (bucket_states, bucket_logits))
        return _weighted_sum(loss, network, states, batch.targets, negative_logits, weights)

    return loss_sum


def _per_batch(loss: SampledLoss, sampler: Sampler) -> LossSum:
    """Loss over negatives that all targets of a batch share."""

    def loss_sum(network: Network, shard: Shard, weights: Tensor, dropout_seed: Tensor, seed: Tensor) -> Tensor:
        batch = shard.batch
        states = network.target_states(batch, dropout_seed)
        negatives = sampler(shard.whole.users[:1], shard.whole.targets[:1], seed)[0]
        negative_logits = tf.matmul(states, network.item_rows(negatives), transpose_b=True)
        return _weighted_sum(loss, network, states, batch.targets, negative_logits, weights)

    return loss_sum


def _weighted_sum(
    loss: SampledLoss, network: Network, states: Tensor, targets: Tensor, negative_logits: Tensor, weights: Tensor
) -> Tensor:
    """Return the weighted sum of the losses of (n, dim) states with (n,) targets and (n, k) logits of negatives."""
    positive_logits = tf.reduce_sum(states * network.item_rows(targets), axis=1)
    if network.logit_bias is not None:
        positive_logits, negative_logits = positive_logits + network.logit_bias, negative_logits + network.logit_bias
    return tf.reduce_sum(weights * loss(positive_logits, negative_logits, network.num_items))
