"""The plan of a run, for --dry-run and preflight checks: sizes, parameters, steps, memory, disk."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import numpy as np

from aprec_like.batches import num_steps_per_epoch
from aprec_like.datasets import Sizes
from aprec_like.datasets.user_file import UserFile
from aprec_like.devices import gpu_memory, has_gpu, pretend_gpu
from aprec_like.errors import InputError
from aprec_like.interactions import Interactions
from aprec_like.losses import BinaryLoss, SampledLoss
from aprec_like.losses.chunks import chunk_elements
from aprec_like.models import CountingModel, NeuralModel
from aprec_like.models.matrix_factorisation import PairExamples
from aprec_like.recipe import Recipe, Trained
from aprec_like.recipe.space import describe_space
from aprec_like.settings import describe
from aprec_like.splits import Split
from evaluation.caveats.data import data_sentences
from evaluation.results.environment import total_memory
from evaluation.results.folder_names import title_of_data
from evaluation.running.data_description import describe_data, latex_row

TENSORFLOW_BYTES = 1 << 30
"""Approximate memory of TensorFlow and a small dataset; on a GPU, of CUDA's context and libraries."""
GPU_MEMORY = {"A100": 40 << 30, "RTX 4090": 24 << 30, "T4": 16 << 30}
"""Bytes of memory of the GPUs that plans name, from their makers' data sheets."""
BYTES_PER_FLOAT = 4
COPIES_OF_WEIGHTS = 4
"""In memory: weights, gradients and the two moments of Adam; the best epoch's weights are on disk."""
COPIES_ON_DISK = 3 * 3 + 2
"""Three checkpoints (two kept, one being written) of weights and two moments each, and the best weights twice."""
COPIES_KEPT = 1 + 3 + 1
"""The weights, and where a limit ended training the last state and the best weights, to go on from."""
FLOATS_PER_CANDIDATE = 8
"""Of a candidate of a single target: item id, gradient of the logit, and entry in a sparse matrix."""
BYTES_PER_USER_VALUE, BYTES_PER_TOP_ITEM = 8, 24
"""Upper estimates for per_user.parquet and top_items.parquet."""


def describe_plan(recipe: Recipe, names: list[str], data_dir: Path) -> str:
    """Return the plan as text; reads the data if it is on disk, and never downloads it.

    It ends with what to change where a model does not fit into this machine or a named GPU.
    """
    name, train, sentences = type(recipe.dataset).__name__, None, []
    if recipe.dataset.is_on_disk(data_dir):
        interactions = recipe.load(data_dir)
        split = recipe.split_interactions(interactions)
        train, description = split.train, describe_data(recipe, interactions, split)
        sentences = [_describe_split(split), *data_sentences(description)]
        row = latex_row(title_of_data(describe(recipe)), interactions)
        sentences.append(f"a row for a LaTeX table of datasets: {row}")
        sizes = Sizes(interactions.num_users, interactions.num_items, interactions.num_interactions)
        lengths = interactions.lengths
        source = "read from disk"
        shape = f", {lengths.min()}-{lengths.max()} per user (median {int(np.median(lengths))})"
    elif (publication := recipe.dataset.publication) is not None:
        unfiltered = ", before filters" if recipe.filters else ""
        sizes, source, shape = publication.sizes, f"not on disk: published numbers{unfiltered}", ""
    else:
        if isinstance(recipe.dataset, UserFile):
            recipe.load(data_dir)  # raises the error that names all places
        raise InputError(f"{name} is not in {data_dir}, and its sizes are not known without the data")
    counts = f"{sizes.users:,} users, {sizes.items:,} items, {sizes.interactions:,} interactions"
    lines = [f"{name} ({source}): {counts}{shape}", *sentences]
    for name in names:
        model = recipe.models[name]
        details = (
            _describe_training(model, sizes, train) if isinstance(model, Trained) else ["counting model, no training"]
        )
        if name in recipe.spaces:
            details.append(f"search space: {describe_space(recipe.spaces[name])}")
        lines.append(f"{name}: " + "; ".join(details))
    lines += memory_shortages(recipe, names, sizes)
    for name in names:
        lines += gpu_shortages(name, recipe.models[name], sizes).values()
    return "\n".join(lines)


def _describe_split(split: Split) -> str:
    return (
        f"{split.train.num_interactions:,} training interactions, {len(split.validation):,} validation users, "
        f"{len(split.test):,} test users"
    )


def _describe_training(trained: Trained, sizes: Sizes, train: Interactions | None) -> list[str]:
    training, examples = trained.training, trained.model.examples()
    has_pairs = isinstance(examples, PairExamples)
    num_cases = sizes.interactions - sizes.users if has_pairs else sizes.users
    if train is not None and not has_pairs:
        num_cases = len(examples.cases(train))
    steps = num_steps_per_epoch(num_cases, training.batch_settings)
    unit = "interactions" if has_pairs else "users"
    num_parameters = trained.model.num_parameters(sizes.items, sizes.users) + trained.prior_start
    is_exact = type(trained.model).num_parameters is not NeuralModel.num_parameters
    details = [
        f"{num_parameters:,} parameters" if is_exact else f"about {num_parameters:,} parameters",
        f"{steps} steps per epoch of {training.batch_size} {unit}, at most {training.max_epochs:,} epochs",
    ]
    if isinstance(trained.loss, BinaryLoss):
        alpha, beta = trained.loss.sampling_rate(sizes.items), trained.loss.power(sizes.items)
        more = " (more negatives than other items: Softmax, which scores each once, costs less)" if alpha > 1 else ""
        details.append(f"alpha {alpha:.6f}, beta {beta:.5f}{more}")
    return [*details, f"about {predict_peak_memory(trained, sizes) / 2**30:.1f} GiB of memory"]


def predict_peak_memory(model: Trained | CountingModel, sizes: Sizes) -> int:
    """Estimate the peak memory in bytes of the process that trains a model, TensorFlow included."""
    return TENSORFLOW_BYTES + (predict_memory(model, sizes) if isinstance(model, Trained) else 0)


def predict_memory(trained: Trained, sizes: Sizes) -> int:
    """Estimate the peak memory of a training step in bytes: weights, activations kept for the gradient, logits."""
    model, loss, batch_size = trained.model, trained.loss, trained.training.batch_size
    weights = COPIES_OF_WEIGHTS * model.num_parameters(sizes.items, sizes.users)
    activations = batch_size * model.activations_per_case()
    targets = model.examples().max_targets(batch_size)
    if not isinstance(loss, SampledLoss):
        # The table's gradient is computed in parts, concatenated and extended by the rows of special tokens.
        output = 2 * sizes.items * model.embedding_dim + 4 * chunk_elements()
    elif trained.negatives.shared_by != "position":
        output = 4 * targets * loss.num_negatives
    else:
        output = FLOATS_PER_CANDIDATE * targets * loss.num_negatives + 4 * chunk_elements()
    return BYTES_PER_FLOAT * (weights + activations + output)


def batch_size_within(trained: Trained, sizes: Sizes, memory: float) -> int | None:
    """Return the largest power of two as batch size that fits into this many bytes; `None` if none does."""
    for exponent in range(trained.training.batch_size.bit_length() - 1, -1, -1):
        smaller = replace(trained, training=replace(trained.training, batch_size=1 << exponent))
        if predict_memory(smaller, sizes) <= memory:
            return 1 << exponent
    return None


def memory_shortages(recipe: Recipe, names: Sequence[str], sizes: Sizes) -> list[str]:
    """Return a sentence for every model that needs more memory than the device that it would be trained on has."""
    device, memory = ("the GPU", gpu_memory()) if has_gpu() else ("this machine", total_memory())
    if memory is None:
        return []
    found = [memory_shortage(name, recipe.models[name], sizes, device, memory) for name in dict.fromkeys(names)]
    return [sentence for sentence in found if sentence]


def gpu_shortages(name: str, model: Trained | CountingModel, sizes: Sizes) -> dict[str, str]:
    """Return a sentence, by the name of the GPU, for every named GPU that a model does not fit into."""
    with pretend_gpu():  # whose losses go in larger chunks
        found = {
            gpu: memory_shortage(name, model, sizes, f"a GPU such as {gpu}", memory)
            for gpu, memory in GPU_MEMORY.items()
        }
    return {gpu: sentence for gpu, sentence in found.items() if sentence}


def memory_shortage(name: str, model: Trained | CountingModel, sizes: Sizes, device: str, memory: float) -> str | None:
    """Return how much memory a model needs, how much a device has, and what to change; `None` if the model fits."""
    available = memory - TENSORFLOW_BYTES
    if not isinstance(model, Trained) or (needed := predict_memory(model, sizes)) <= available:
        return None
    fitting = batch_size_within(model, sizes, available)
    smallest = replace(model, training=replace(model.training, batch_size=1))
    remedy = f"no batch_size fits; to save memory: {memory_savers(smallest)}"
    hint = f"batch_size={fitting} would fit" if fitting else remedy
    return (
        f"{name} needs about {needed / 2**30:.1f} GiB of memory beside TensorFlow, and {device} has "
        f"{available / 2**30:.1f} GiB beside it; {hint}"
    )


def predict_disk(recipe: Recipe, jobs: Sequence[str], sizes: Sizes, num_at_once: int = 1) -> int:
    """Estimate the disk space of jobs in bytes: checkpoints of the models that train at once, results of all."""
    num_ranked = min(sizes.users, recipe.evaluation.users or sizes.users)
    columns = len(recipe.evaluation.columns) + 6
    per_user = columns * BYTES_PER_USER_VALUE + recipe.evaluation.depth * BYTES_PER_TOP_ITEM
    weights = [
        BYTES_PER_FLOAT * model.model.num_parameters(sizes.items, sizes.users)
        for name in jobs
        if isinstance(model := recipe.models[name], Trained)
    ]
    at_once = sum(sorted(weights, reverse=True)[:num_at_once])
    return len(jobs) * num_ranked * per_user + COPIES_KEPT * sum(weights) + COPIES_ON_DISK * at_once


def memory_savers(model: Trained | CountingModel) -> str:
    """Return the settings of a model that would save memory, the least harmful to its results first."""
    if not isinstance(model, Trained):
        return "a dataset with fewer items"
    loss, is_sampled = model.loss, isinstance(model.loss, SampledLoss)
    settings = {
        "a smaller batch_size": model.training.batch_size > 1,
        'Negatives(shared_by="batch")': is_sampled and model.negatives.shared_by == "position",
        "fewer num_negatives": isinstance(loss, SampledLoss) and loss.num_negatives > 1,
        "a sampled loss instead of a full one": not is_sampled,
        "a smaller max_length": hasattr(model.model, "max_length"),
        "a smaller embedding_dim": True,
    }
    return ", ".join(name for name, is_useful in settings.items() if is_useful)
