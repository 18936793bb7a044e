"""What `evaluation.benchmark` measures: a model's training data and a fresh network, and the naive code beside it."""

from __future__ import annotations

import importlib
import math
from pathlib import Path
from typing import Any

from aprec_like.interactions import Interactions

WARM_UP_STEPS = 2

MAX_SECONDS = 60
"""Steps that take so long together are enough, as soon as one of them was after the warm-up."""


def is_enough(seconds: list[float], num_steps: int) -> bool:
    """Whether steps that took these seconds, the warm-up included, are all that have to be measured."""
    measured = len(seconds) - WARM_UP_STEPS
    return measured >= num_steps or (measured > 0 and sum(seconds) > MAX_SECONDS)


def prepared(model: Any, split: Any) -> Any:
    """The training data of a model and a fresh network."""
    data = model.training_data(split)
    return data, fresh_network(model, data)


def fresh_network(model: Any, data: Interactions) -> Any:
    """A network that has learned nothing."""
    import keras

    keras.utils.set_random_seed(1)
    return model.build_network(data)


def naive_code() -> Any:
    """The reference that stands with the tests; `None` where the package is installed without them."""
    try:
        return importlib.import_module("evaluation.benchmarking.naive")
    except ModuleNotFoundError:
        return None


def _available_bytes() -> float:
    try:
        lines = Path("/proc/meminfo").read_text("ascii").splitlines()
    except OSError:
        return math.inf
    return next(int(line.split()[1]) * 1024 for line in lines if line.startswith("MemAvailable"))


def is_too_large(model: Any, data: Interactions) -> bool:
    """Whether naive code would need more memory than there is.

    It holds the rows of all candidates, or the logits of all items, about three times at once, and beside the weights
    and their two moments dense gradients and what they are made of.
    """
    from aprec_like.losses import SampledLoss

    loss, positions = model.loss, model.training.batch_size * model.model.examples().length
    per_position = loss.num_negatives * model.model.embedding_dim if isinstance(loss, SampledLoss) else data.num_items
    numbers = 3 * positions * per_position + 8 * model.model.num_parameters(data.num_items, data.num_users)
    return 4 * numbers > _available_bytes()
