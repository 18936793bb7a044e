"""Sizes at which `evaluation.benchmark --growth` measures a step: catalogue, sequence length, negatives."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from aprec_like.interactions import Interactions
from aprec_like.recipe import Trained

SWEEPS: dict[str, tuple[int, ...]] = {
    "items": (1_000, 10_000, 100_000, 1_271_638),
    "length": (25, 50, 100, 200),
    "negatives": (4, 16, 64, 256),
}
"""Values of each varied size; the largest catalogue is Gowalla's."""

DEFAULT_NUM_ITEMS, DEFAULT_LENGTH = 10_000, 50
"""Size of the catalogue where it is not varied, and length of the sequences of models without a maximum."""


@dataclass(frozen=True)
class Size:
    """One point of a sweep: one varied size; the others are as in the recipe, the catalogue 10,000 items."""

    varied: str
    value: int

    def apply(self, trained: Trained) -> tuple[Trained, Interactions]:
        """Return the model at this size, and random sequences of full length to train it on: two batches of users."""
        model: Any = trained.model
        loss: Any = trained.loss
        if self.varied == "length":
            model = replace(model, max_length=self.value)
        if self.varied == "negatives":
            loss = replace(loss, num_negatives=self.value)
        num_items = self.value if self.varied == "items" else DEFAULT_NUM_ITEMS
        length = getattr(model, "max_length", DEFAULT_LENGTH) + 1
        data = random_sequences(num_items, 2 * trained.training.batch_size, length)
        return replace(trained, model=model, loss=loss), data


def applicable_sizes(trained: Trained) -> list[Size]:
    """Return the sizes of all sweeps that apply to a model: not every one has sequences or negatives."""
    varied = ["items"]
    varied += ["length"] if hasattr(trained.model, "max_length") else []
    varied += ["negatives"] if hasattr(trained.loss, "num_negatives") else []
    return [Size(name, value) for name in varied for value in SWEEPS[name]]


def random_sequences(num_items: int, num_users: int, length: int) -> Interactions:
    """Return sequences of uniformly sampled items; the cost of a step does not depend on which items they are."""
    items = np.random.default_rng(0).integers(num_items, size=num_users * length)
    return Interactions.from_ids(np.repeat(np.arange(num_users), length), items, item_ids=np.arange(num_items))
