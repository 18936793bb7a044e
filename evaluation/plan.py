"""What a run would do, before it does it: sizes, parameters, steps, memory."""

from __future__ import annotations

from pathlib import Path

import numpy as np

from aprec_like.batches import steps_per_epoch, trainable_users
from aprec_like.datasets import Sizes
from aprec_like.errors import InputError
from aprec_like.losses import BinaryLoss, SampledLoss
from aprec_like.models import SASRec
from aprec_like.objective import uses_all_logits
from aprec_like.recipe import Recipe, Trained

BYTES = 4
COPIES_OF_WEIGHTS = 5
"""Weights, gradients, two moments of Adam, and the weights of the best epoch."""


def describe_plan(recipe: Recipe, names: list[str], data_dir: Path) -> str:
    """The plan in lines; reads the data if it is on disk, and never fetches it."""
    if recipe.dataset.is_on_disk(data_dir):
        interactions = recipe.dataset.load(data_dir)
        split = recipe.split.split(interactions)
        sizes = Sizes(interactions.num_users, interactions.num_items, interactions.num_interactions)
        num_trainable, source = len(trainable_users(split.train)), "read from disk"
        lengths = np.sort(interactions.lengths)
        shape = f", {lengths[0]}-{lengths[-1]} per user (median {int(np.median(lengths))})"
    elif recipe.dataset.sizes is not None:
        sizes = recipe.dataset.sizes
        num_trainable, source, shape = sizes.users, "not on disk: published numbers", ""
    else:
        raise InputError(
            f"{type(recipe.dataset).__name__} is not in {data_dir}, and its numbers are not known without it"
        )
    lines = [
        f"{type(recipe.dataset).__name__} ({source}): {sizes.users:,} users, {sizes.items:,} items, "
        f"{sizes.interactions:,} interactions{shape}"
    ]
    for name in names:
        model = recipe.models[name]
        details = (
            _describe_training(model, sizes.items, num_trainable)
            if isinstance(model, Trained)
            else ["counts, no training"]
        )
        lines.append(f"{name}: " + "; ".join(details))
    return "\n".join(lines)


def _describe_training(trained: Trained, num_items: int, num_users: int) -> list[str]:
    training = trained.training
    steps = steps_per_epoch(num_users, training.batch_size, training.max_steps_per_epoch)
    details = [
        f"{trained.model.num_parameters(num_items) + trained.prior_start:,} parameters",
        f"{steps} steps per epoch of {training.batch_size} users, at most {training.max_epochs:,} epochs",
    ]
    if isinstance(trained.loss, BinaryLoss):
        alpha, beta = trained.loss.sampling_rate(num_items), trained.loss.power(num_items)
        details.append(f"alpha {alpha:.6f}, beta {beta:.5f}")
    if isinstance(trained.model, SASRec):
        details.append(f"about {predict_memory(trained, num_items) / 2**30:.1f} GiB of memory beside TensorFlow")
    return details


def predict_memory(trained: Trained, num_items: int) -> int:
    """Bytes that a training step needs at its peak, roughly: weights, activations kept for the gradient, logits."""
    model, loss = trained.model, trained.loss
    assert isinstance(model, SASRec)
    positions = trained.training.batch_size * model.max_length
    weights = COPIES_OF_WEIGHTS * model.num_parameters(num_items)
    block = 16 * positions * model.embedding_dim + 4 * positions * model.num_heads * model.max_length
    if isinstance(loss, SampledLoss):
        candidates = loss.num_negatives + 1
        picked = 4 * positions * candidates
        logits = (
            2 * positions * num_items
            if uses_all_logits(num_items, candidates)
            else 2 * positions * candidates * model.embedding_dim
        )
        output = picked + logits
    else:
        output = 3 * positions * num_items
    return BYTES * (weights + model.num_blocks * block + output)
