"""What a run would do, before it does it: sizes, parameters, steps, memory."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import numpy as np

from aprec_like.batches import PairExamples, num_steps_per_epoch
from aprec_like.datasets import Sizes
from aprec_like.errors import InputError
from aprec_like.interactions import Interactions
from aprec_like.losses import BinaryLoss, SampledLoss
from aprec_like.losses.chunks import chunk_numbers
from aprec_like.models import CountingModel
from aprec_like.recipe import Recipe, Trained

BYTES = 4
COPIES_OF_WEIGHTS = 4
"""Weights, gradients and two moments of Adam; the weights of the best epoch are on disk."""
COPIES_ON_DISK = 3 * 3 + 2
"""Three states (two kept, one being written) of weights and two moments each, and two times the best weights."""
NUMBERS_PER_CANDIDATE = 8
"""Of a candidate of one target alone: the item, the gradient of its logit, and its entry in a sparse matrix."""
BYTES_PER_VALUE, BYTES_PER_PLACE = 8, 24
"""Of a user's value, and of an item in a user's list, in a Parquet file; on the safe side."""


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
    steps = num_steps_per_epoch(num_cases, training.batch_settings)
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
        # The table's gradient is made in parts, put together and extended by the rows of special tokens.
        output = 2 * sizes.items * model.embedding_dim + 4 * chunk_numbers()
    elif trained.negatives.shared_by != "position":
        output = 4 * targets * loss.num_negatives
    else:
        output = NUMBERS_PER_CANDIDATE * targets * loss.num_negatives + 4 * chunk_numbers()
    return BYTES * (weights + activations + output)


def batch_size_within(trained: Trained, sizes: Sizes, memory: float) -> int | None:
    """The largest power of two of sequences per step that fits into this many bytes, if any does."""
    for exponent in range(trained.training.batch_size.bit_length() - 1, -1, -1):
        smaller = replace(trained, training=replace(trained.training, batch_size=1 << exponent))
        if predict_memory(smaller, sizes) <= memory:
            return 1 << exponent
    return None


def predict_disk(recipe: Recipe, jobs: Sequence[str], sizes: Sizes) -> int:
    """Bytes that models need on disk until all are finished: checkpoints of one at a time, and the results of all."""
    columns = len(recipe.evaluation.columns) + 6
    per_user = columns * BYTES_PER_VALUE + recipe.evaluation.depth * BYTES_PER_PLACE
    weights = [
        BYTES * model.model.num_parameters(sizes.items, sizes.users)
        for name in jobs
        if isinstance(model := recipe.models[name], Trained)
    ]
    return len(jobs) * sizes.users * per_user + sum(weights) + COPIES_ON_DISK * max(weights, default=0)


def memory_savers(model: Trained | CountingModel) -> str:
    """The settings of a model that would save memory, in the order of what they cost its results."""
    if not isinstance(model, Trained):
        return "a dataset with fewer items"
    loss, is_sampled = model.loss, isinstance(model.loss, SampledLoss)
    settings = {
        "a smaller batch_size": True,
        'Negatives(shared_by="batch")': is_sampled and model.negatives.shared_by == "position",
        "fewer num_negatives": isinstance(loss, SampledLoss) and loss.num_negatives > 1,
        "a sampled loss instead of a full one": not is_sampled,
        "a smaller max_length": hasattr(model.model, "max_length"),
        "a smaller embedding_dim": True,
    }
    return ", ".join(name for name, is_useful in settings.items() if is_useful)
