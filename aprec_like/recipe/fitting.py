"""The trainings of a network for a recipe's `fit_on`: which interactions each learns from, and for how long."""

from __future__ import annotations

from dataclasses import replace

from aprec_like.splits import FitOn
from aprec_like.training.settings import Trained


def validated_training(trained: Trained, fit_on: FitOn) -> Trained:
    """Return the settings of the first training: with validation, if the model has early stopping."""
    if fit_on == "mixed" or trained.training.early_stopping is not None:
        return trained
    return _learning_validation(trained, fit_on == "train+validation")


def refitting(trained: Trained, fit_on: FitOn, num_epochs: int) -> Trained | None:
    """Return the settings of the second training, on both parts for `num_epochs`; `None` if there is none."""
    if fit_on != "train+validation" or trained.training.early_stopping is None:
        return None
    training = replace(trained.training, early_stopping=None, max_epochs=num_epochs)
    return _learning_validation(replace(trained, training=training), True)


def _learning_validation(trained: Trained, is_learned: bool) -> Trained:
    return replace(trained, training=replace(trained.training, learns_validation_targets=is_learned))
