"""Shared parts of the measurements: the network to measure, the number of steps, the memory that naive code needs."""

from __future__ import annotations

from collections.abc import Sequence

import keras

from aprec_like.interactions import Interactions
from aprec_like.losses import SampledLoss
from aprec_like.models import Network
from aprec_like.recipe import Trained
from evaluation.results.environment import available_memory

WARM_UP_STEPS = 2
"""Steps at the start that are not counted: the first is traced, the second allocates memory."""

MAX_SECONDS = 60
"""No more steps are measured after this time, warm-up included, if at least one step was measured."""

Measurement = dict[str, float]
"""Measured values by name, such as `step_seconds`; the names are those of the JSON output."""


def is_measured(seconds: Sequence[float], num_steps: int) -> bool:
    """Return whether enough steps were timed, given the seconds of all steps so far, warm-up included."""
    num_measured = len(seconds) - WARM_UP_STEPS
    return num_measured >= num_steps or (num_measured > 0 and sum(seconds) > MAX_SECONDS)


def build_seeded_network(model: Trained, data: Interactions) -> Network:
    """Build the network of a model with initial weights from a fixed seed."""
    keras.utils.set_random_seed(1)
    return model.build_network(data)


def sequence_length(model: Trained) -> int | None:
    """Return the positions per training sequence; `None` for models that learn from user-item pairs."""
    return getattr(model.model.examples(), "length", None)


def exceeds_memory(model: Trained, data: Interactions) -> bool:
    """Return whether the naive step would need more than the available memory.

    It holds the rows of all candidates, or the logits of all items, about three times at once; for every parameter it
    holds the weight, two moments, the dense gradient and the temporary arrays of the gradient.
    """
    loss, num_positions = model.loss, model.training.batch_size * (sequence_length(model) or 1)
    per_position = loss.num_negatives * model.model.embedding_dim if isinstance(loss, SampledLoss) else data.num_items
    num_floats = 3 * num_positions * per_position + 8 * model.model.num_parameters(data.num_items, data.num_users)
    return 4 * num_floats > available_memory()
