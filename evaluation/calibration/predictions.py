"""Calibration of finished models: predicted probabilities of every user's top items, from the stored rankings."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np
import pandas as pd

from aprec_like.calibration import (
    NUM_TOP_ITEMS,
    OptimalSigmoid,
    Probability,
    SoftmaxProbability,
)
from aprec_like.datasets import Simulated
from aprec_like.errors import InputError
from aprec_like.interactions import PADDING
from aprec_like.losses import Loss
from aprec_like.negatives import Negatives
from aprec_like.out_of_core import ArrayWriter, empty_array, release, slices
from aprec_like.recipe_classes import DATA_CLASSES, LOSS_CLASSES
from aprec_like.settings import SettingsClasses, restore
from aprec_like.types import Array, Json
from evaluation.calibration.reliability import Predictions
from evaluation.results.load import LoadedRuns, ModelResults
from evaluation.results.load_split import load_split
from evaluation.results.own_classes import known_classes
from evaluation.results.user_columns import UserColumns

MAX_CHUNK_CELLS = 1 << 22
"""Number of true probabilities held at once."""


@dataclass(frozen=True, eq=False)
class CalibratedModel:
    """Model whose scores have a meaning as probabilities; with several seeds, the first of them.

    Args:
        name: name of the model.
        probability: definition of its probabilities.
        predictions: predictions of every user's top items.
        items: (users, depth) these items as catalogue rows, PADDING where a user has fewer.
        sums: (users,) sums of the predicted probabilities over the catalogue, or upper bounds if `is_sum_bound`.
        optimal_sigmoid: the sigmoid that minimises the loss with the sampler used, as a function of the true
            probability, and Theorem 1's as its `theorem_1`; `None` where there is no closed form.
        has_more_seeds: whether the model has further seeds.
        seen_shares: (users,) shares of the predicted mass on items of the history; `None` if they are not known, or if
            rankings do not exclude these items.
    """

    name: str
    probability: Probability
    predictions: Predictions
    items: Array
    sums: Array
    optimal_sigmoid: OptimalSigmoid | None
    has_more_seeds: bool = False
    seen_shares: Array | None = None

    @property
    def is_sum_bound(self) -> bool:
        """Whether `sums` are upper bounds."""
        return self.probability.is_sum_bound


def find_probability(settings: Json, num_items: int, classes: SettingsClasses = LOSS_CLASSES) -> Probability | None:
    """Return how scores of a model become probabilities; `None` if they don't.

    The Oracle scores by log P, whose softmax is P itself; for trained models the loss decides.

    Args:
        settings: settings of the model as recipe.json has them.
        num_items: size of the catalogue.
        classes: classes of losses by name.

    Raises:
        InputError: if the loss is of none of these classes.
    """
    if settings.get("class") == "Oracle":
        return SoftmaxProbability()
    if "loss" not in settings:
        return None
    return _restore_loss(settings, classes).probability(num_items, _restore_negatives(settings))


def find_optimal_sigmoid(
    settings: Json, num_items: int, classes: SettingsClasses = LOSS_CLASSES
) -> OptimalSigmoid | None:
    """Return the optimal sigmoid of a model for the sampler used; `None` where there is no closed form."""
    if "loss" not in settings:
        return None
    return _restore_loss(settings, classes).optimal_sigmoid(num_items, _restore_negatives(settings))


def _restore_loss(settings: Json, classes: SettingsClasses) -> Loss:
    loss = restore(settings["loss"], classes)
    if not isinstance(loss, Loss):
        raise InputError(f"recipe.json has a loss of the class {type(loss).__name__}, which is no loss")
    return loss


def _restore_negatives(settings: Json) -> Negatives:
    negatives: Negatives = restore(settings["negatives"], LOSS_CLASSES)
    return negatives


def models_with_probabilities(
    runs: LoadedRuns, names: Collection[str] | None = None, own: SettingsClasses | None = None
) -> list[tuple[ModelResults, Probability]]:
    """Return the finished models whose scores have a meaning as probabilities, and how.

    Args:
        runs: the results.
        names: of the models to consider; `None` for all.
        own: classes of the recipe's own, as `load_own_classes` returns them.
    """
    classes, num_items = _loss_classes(runs, own), len(runs.folders[0].read_items(["item"]))
    wanted = [model for model in runs.models if model.folders and (names is None or model.name in names)]
    known = [model for model in wanted if not _has_unknown_loss(model, classes)]
    found = [(model, find_probability(model.settings, num_items, classes)) for model in known]
    return [(model, probability) for model, probability in found if probability is not None]


def iterate_calibrated_models(
    runs: LoadedRuns, names: Collection[str] | None = None, own: SettingsClasses | None = None
) -> Iterator[CalibratedModel]:
    """Yield the models whose scores have a meaning as probabilities; `calibration_remarks` says which are missing.

    Their arrays are mapped from files if they are large.

    Args:
        runs: the results.
        names: of the models to read; `None` for all.
        own: classes of the recipe's own, as `load_own_classes` returns them.
    """
    classes, catalogue = _loss_classes(runs, own), pd.Index(runs.folders[0].read_items(["item"])["item"])
    for model, probability in models_with_probabilities(runs, names, own):
        found = _read_model(model, probability, catalogue, classes)
        if not runs.settings["evaluation"]["exclude_seen"]:
            found = replace(found, seen_shares=None)
        if found.items.shape[1]:
            yield found


def read_calibrated_models(
    runs: LoadedRuns, names: Collection[str] | None = None, own: SettingsClasses | None = None
) -> list[CalibratedModel]:
    """Return all models of `iterate_calibrated_models` at once."""
    return list(iterate_calibrated_models(runs, names, own))


def calibration_remarks(
    runs: LoadedRuns,
    read: Collection[str],
    names: Collection[str] | None = None,
    own: SettingsClasses | None = None,
) -> list[str]:
    """Return a remark on every model without predictions: its loss is unknown, or no item was left to rank.

    Args:
        runs: the results.
        read: names of the models with predictions.
        names: of the models that were asked for; `None` for all.
        own: classes of the recipe's own, as `load_own_classes` returns them.
    """
    classes = _loss_classes(runs, own)
    wanted = [model for model in runs.models if names is None or model.name in names]
    left_out = len(runs.models) - len(wanted)
    first = [f"The best {len(wanted)} models are shown, {left_out:,} others left out."] if left_out else []
    return (
        first
        + [
            f"{model.name} ranked no items, because every user has seen all of them: no predictions."
            for model in wanted
            if model.folders and model.name not in read and not _has_unknown_loss(model, classes)
            if find_probability(model.settings, 2, classes) is not None
        ]
        + [
            f"{model.name} has a loss that this version does not know: no probabilities; report --recipe FILE shows "
            "those of a recipe's own loss."
            for model in wanted
            if _has_unknown_loss(model, classes)
        ]
    )


def _loss_classes(runs: LoadedRuns, own: SettingsClasses | None) -> SettingsClasses:
    return known_classes(runs.settings, LOSS_CLASSES, own or {})


def _has_unknown_loss(model: ModelResults, classes: SettingsClasses) -> bool:
    try:
        if "loss" in model.settings:
            _restore_loss(model.settings, classes)
    except InputError:
        return True
    return False


def _read_model(
    model: ModelResults, probability: Probability, catalogue: pd.Index, classes: SettingsClasses
) -> CalibratedModel:
    folder = model.folders[0]
    with folder.open_per_user() as users, folder.open_top_items() as top:
        targets = users.find_targets(catalogue)
        logsumexps, sigmoid_sums = (users.read_numbers(name) for name in ("logsumexp", "sigmoid_sum"))
        shape = (users.num_users, top.read_depth())
        # 32 bits halve the arrays, of which there is one number for every user and item.
        probabilities, items, is_target = (empty_array(shape, dtype) for dtype in (np.float32, np.int32, np.bool_))
        sums = ArrayWriter(np.float64)
        for chunk in top.chunks(users, catalogue):
            rows = chunk.users
            probabilities[rows], items[rows] = probability(chunk.scores, logsumexps[rows]), chunk.items
            is_target[rows] = (chunk.items == targets[rows, None]) & (chunk.items != PADDING)
            sums.append(probability.catalogue_sums(chunk.scores, logsumexps[rows], sigmoid_sums[rows]))
            release(probabilities, items, is_target)
        seen_shares = _seen_shares(probability, users)
    return CalibratedModel(
        name=model.name,
        probability=probability,
        predictions=Predictions(probabilities, is_target),
        items=items,
        sums=sums.finish(),
        optimal_sigmoid=find_optimal_sigmoid(model.settings, len(catalogue), classes),
        has_more_seeds=len(model.folders) > 1,
        seen_shares=seen_shares,
    )


def _seen_shares(probability: Probability, users: UserColumns) -> Array | None:
    """Return shares of the mass on seen items; `None` for results of earlier versions, which do not have them."""
    names = ("sigmoid_sum", "seen_sigmoid_sum", "seen_softmax_sum")
    if not {*names} <= {*users.names}:
        return None
    return probability.seen_shares(*(users.read_numbers(name) for name in names))


def read_truths(runs: LoadedRuns, models: Sequence[CalibratedModel]) -> dict[str, Array] | None:
    """Return (users, depth) true probabilities of every user's top items by model; `None` where they are unknown.

    They come from the simulator, which is built again from its settings in the results folder.
    """
    dataset = _restore_simulator(runs)
    if dataset is None:
        return None
    truth = dataset.true_probabilities()
    test = load_split(runs.folders[0], Path()).test
    truths = {model.name: empty_array(model.items.shape, np.float64) for model in models}
    step = max(1, MAX_CHUNK_CELLS // dataset.num_items)
    for start in range(0, len(test), step):
        cases = np.arange(start, min(start + step, len(test)))
        true = truth.probabilities(test.histories(cases))
        for model in models:
            items = model.items[cases]
            true_of_items = np.take_along_axis(true, np.maximum(items, 0), axis=1)
            truths[model.name][cases] = np.where(items == PADDING, np.nan, true_of_items)
    return truths


def is_simulated(runs: LoadedRuns) -> bool:
    """Return whether the true probabilities of the data are known."""
    return _restore_simulator(runs) is not None


def _restore_simulator(runs: LoadedRuns) -> Simulated | None:
    settings = runs.settings.get("dataset", {})
    if settings.get("class") != Simulated.__name__:
        return None
    dataset: Simulated = restore(settings, DATA_CLASSES)
    return dataset


def top_gap(model: CalibratedModel, truths: Mapping[str, Array], num_items: int = NUM_TOP_ITEMS) -> float:
    """Return the mean |p - P| over the first items of each user."""
    truth, total, count = truths[model.name], 0.0, 0
    for users in slices(len(truth), MAX_CHUNK_CELLS // max(1, truth.shape[1])):
        distances = np.abs(model.predictions.probabilities[users] - truth[users])[:, :num_items]
        total, count = total + float(np.nansum(distances)), count + int(np.count_nonzero(~np.isnan(distances)))
    return total / count
