"""What a run would do, before it does it: sizes, parameters, steps, memory."""

from __future__ import annotations

from pathlib import Path

import numpy as np

from aprec_like.batches import PairExamples, steps_per_epoch
from aprec_like.chunks import chunk_numbers
from aprec_like.datasets import Sizes
from aprec_like.errors import InputError
from aprec_like.interactions import Interactions
from aprec_like.losses import BinaryLoss, SampledLoss
from aprec_like.recipe import Recipe, Trained

BYTES = 4
COPIES_OF_WEIGHTS = 5
"""Weights, gradients, two moments of Adam, and the weights of the best epoch."""


def describe_plan(recipe: Recipe, names: list[str], data_dir: Path) -> str:
    """The plan in lines; reads the data if it is on disk, and never fetches it."""
    name, train = type(recipe.dataset).__name__, None
    if recipe.dataset.is_on_disk(data_dir):
        interactions = recipe.load(data_dir)
        train = recipe.split.split(interactions).train
        sizes = Sizes(interactions.num_users, interactions.num_items, interactions.num_interactions)
        lengths = interactions.lengths
        source = "read from disk"
        shape = f", {lengths.min()}-{lengths.max()} per user (median {int(np.median(lengths))})"
    elif (publication := recipe.dataset.publication) is not None:
        unfiltered = ", before filters" if recipe.filters else ""
        sizes, source, shape = publication.sizes, f"not on disk: published numbers{unfiltered}", ""
    else:
        raise InputError(f"{name} is not in {data_dir}, and its numbers are not known without it")
    counts = f"{sizes.users:,} users, {sizes.items:,} items, {sizes.interactions:,} interactions"
    lines = [f"{name} ({source}): {counts}{shape}"]
    for name in names:
        model = recipe.models[name]
        details = _describe_training(model, sizes, train) if isinstance(model, Trained) else ["counts, no training"]
        lines.append(f"{name}: " + "; ".join(details))
    return "\n".join(lines)


def _describe_training(trained: Trained, sizes: Sizes, train: Interactions | None) -> list[str]:
    training, examples = trained.training, trained.model.examples()
    is_of_pairs = isinstance(examples, PairExamples)
    num_cases = sizes.interactions - sizes.users if is_of_pairs else sizes.users
    if train is not None and not is_of_pairs:
        num_cases = len(examples.cases(train))
    steps = steps_per_epoch(num_cases, training.batch_size, training.max_steps_per_epoch)
    unit = "interactions" if is_of_pairs else "users"
    num_parameters = trained.model.num_parameters(sizes.items, sizes.users) + trained.prior_start
    details = [
        f"{num_parameters:,} parameters",
        f"{steps} steps per epoch of {training.batch_size} {unit}, at most {training.max_epochs:,} epochs",
    ]
    if isinstance(trained.loss, BinaryLoss):
        alpha, beta = trained.loss.sampling_rate(sizes.items), trained.loss.power(sizes.items)
        details.append(f"alpha {alpha:.6f}, beta {beta:.5f}")
    memory = predict_memory(trained, sizes)
    return [*details, f"about {memory / 2**30:.1f} GiB of memory beside TensorFlow"]


def predict_memory(trained: Trained, sizes: Sizes) -> int:
    """Bytes that a training step needs at its peak, roughly: weights, activations kept for the gradient, logits."""
    model, loss, batch_size = trained.model, trained.loss, trained.training.batch_size
    weights = COPIES_OF_WEIGHTS * model.num_parameters(sizes.items, sizes.users)
    activations = batch_size * model.activations_per_case()
    targets = batch_size * model.targets_per_case()
    if not isinstance(loss, SampledLoss):
        output = 3 * targets * sizes.items
    elif trained.negatives.shared_by != "position":
        output = 4 * targets * loss.num_negatives
    else:
        output = targets * loss.num_negatives + 4 * chunk_numbers()
    return BYTES * (weights + activations + output)
