"""Which parts of a split the models of a recipe learn from."""

from __future__ import annotations

from typing import Literal, get_args

from aprec_like.interactions import Interactions
from aprec_like.splits.base import Split

FitOn = Literal["train", "train+validation", "mixed"]
"""Interactions that the models of a recipe learn from.

- `train`: all models learn from the training part alone.
- `train+validation`: all models learn from everything before the test targets. A network with early stopping is trained
  on the training part first; then a new network is trained on both parts for as many epochs as validation chose.
- `mixed`: networks learn from the training part; models without validation (counting models, and `Training` with
  `learns_validation_targets`) from both parts, as in the gSASRec paper. Only for few validation users, as there: models
  that learn from more data are not compared with equals.
"""

FIT_ON: tuple[str, ...] = get_args(FitOn)


def counted_interactions(split: Split, fit_on: FitOn) -> Interactions:
    """Return the interactions that counting models are fitted to."""
    return split.train if fit_on == "train" else split.test.known
