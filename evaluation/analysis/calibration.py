"""The overconfidence lab: what models predicted of every user's best items, from what ranking stored."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pandas as pd

from aprec_like.calibration import (
    TOP,
    Predictions,
    Probability,
    SampledSoftmaxProbability,
    SamplingLaw,
    confidence_curve,
    reliability,
    sigmoid_probability,
    softmax_probability,
)
from aprec_like.datasets import Simulated
from aprec_like.interactions import PADDING
from aprec_like.settings import restore
from aprec_like.types import Array, Json
from evaluation.results.load import LoadedRuns, ModelResults
from evaluation.results.load_split import DATA_CLASSES, load_split
from evaluation.table import Table

CHUNK_CELLS = 1 << 22
"""How many true probabilities are held at once."""


@dataclass(frozen=True, eq=False)
class Subject:
    """A model whose scores mean probabilities; with several seeds, the first of them.

    Args:
        name: of the model.
        predictions: of every user's best items.
        items: (users, depth) places of these items in the catalogue, PADDING where a user has fewer.
        sums: (users,) of the predicted probabilities over the whole catalogue.
        is_sum_bound: whether `sums` are only what the sums can't exceed: sampled softmax would need all scores.
        law: what Theorem 1 needs to know; `None` where it says nothing.
        has_more_seeds: whether it has others beside this seed.
    """

    name: str
    predictions: Predictions
    items: Array
    sums: Array
    is_sum_bound: bool
    law: SamplingLaw | None
    has_more_seeds: bool = False


def probability_of(settings: Json, num_items: int) -> Probability | None:
    """How the scores of a model, whose settings recipe.json has, become probabilities; `None` if they don't.

    Binary losses give a sigmoid and softmax a softmax; the Oracle scores by log P, whose softmax is P itself.
    """
    loss = settings.get("loss", {})
    if settings.get("class") == "Oracle" or loss.get("class") == "Softmax":
        return softmax_probability
    if loss.get("class") in ("BCE", "GBCE"):
        return sigmoid_probability
    if loss.get("class") == "SampledSoftmax" and not settings["negatives"]["by_popularity"]:
        is_corrected, rejects = loss["is_corrected"], _rejects_positive(settings)
        return SampledSoftmaxProbability(loss["num_negatives"], num_items, rejects, is_corrected)
    return None


def law_of(settings: Json, num_items: int) -> SamplingLaw | None:
    """What Theorem 1 needs to know of a model; `None` where it says nothing."""
    loss = settings.get("loss", {})
    if loss.get("class") not in ("BCE", "GBCE") or settings["negatives"]["by_popularity"]:
        return None
    rate = loss["num_negatives"] / (num_items - 1)
    power = 1 - loss.get("calibration", 0.0) * (1 - rate)
    return SamplingLaw(loss["num_negatives"], num_items, power, _rejects_positive(settings))


def read_subjects(runs: LoadedRuns) -> list[Subject]:
    """The models of a run whose scores mean probabilities."""
    catalogue = runs.folders[0].read_items()
    found = [_read_subject(model, pd.Index(catalogue["item"])) for model in runs.models]
    return [subject for subject in found if subject is not None]


def _read_subject(model: ModelResults, catalogue: pd.Index) -> Subject | None:
    num_items = len(catalogue)
    probability = probability_of(model.settings, num_items)
    if probability is None or not model.folders:
        return None
    per_user, top = model.folders[0].read_per_user(), model.folders[0].read_top_items()
    rows = pd.Index(per_user["user"]).get_indexer(pd.Index(top["user"]))
    columns = top["position"].to_numpy() - 1
    shape = (len(per_user), int(columns.max(initial=-1)) + 1)
    # Half the width, twice the users: all models of a run are held at once.
    scores, items = np.full(shape, np.nan, np.float32), np.full(shape, PADDING, np.int32)
    scores[rows, columns] = top["score"]
    items[rows, columns] = catalogue.get_indexer(pd.Index(top["item"]))
    targets = catalogue.get_indexer(pd.Index(per_user["target"]))
    logsumexps = per_user["logsumexp"].to_numpy()
    if isinstance(probability, SampledSoftmaxProbability):
        sums = probability.largest_sums(scores, logsumexps)
    else:
        sums = np.ones(len(per_user)) if probability is softmax_probability else per_user["sigmoid_sum"].to_numpy()
    return Subject(
        name=model.name,
        predictions=Predictions(
            probability(scores, logsumexps).astype(np.float32), (items == targets[:, None]) & (items != PADDING)
        ),
        items=items,
        sums=sums,
        is_sum_bound=isinstance(probability, SampledSoftmaxProbability),
        law=law_of(model.settings, num_items),
        has_more_seeds=len(model.folders) > 1,
    )


def _rejects_positive(settings: Json) -> bool:
    return bool(settings["negatives"]["reject_positive"] or settings["negatives"]["reject_history"])


def read_truths(runs: LoadedRuns, subjects: Sequence[Subject]) -> dict[str, Array] | None:
    """(users, depth) the true probabilities of every user's best items, by model; `None` where they are not known.

    They are those of the simulator, which is asked again: the folder holds its settings.
    """
    if runs.settings.get("dataset", {}).get("class") != "Simulated":
        return None
    dataset: Simulated = restore(runs.settings["dataset"], DATA_CLASSES)
    truth = dataset.truth()
    test = load_split(runs.folders[0], Path()).test
    truths = {subject.name: np.full(subject.items.shape, np.nan) for subject in subjects}
    step = max(1, CHUNK_CELLS // dataset.num_items)
    for start in range(0, len(test), step):
        cases = np.arange(start, min(start + step, len(test)))
        true = truth.probabilities(test.histories(cases))
        for subject in subjects:
            items = subject.items[cases]
            of_items = np.take_along_axis(true, np.maximum(items, 0), axis=1)
            truths[subject.name][cases] = np.where(items == PADDING, np.nan, of_items)
    return truths


def top_gap(subject: Subject, truths: Mapping[str, Array], top: int = TOP) -> float:
    """Mean |p - P| over the first items of each user."""
    distances = np.abs(subject.predictions.probabilities - truths[subject.name])[:, :top]
    return float(np.nanmean(distances))


def remarks_on(subjects: Sequence[Subject]) -> str:
    """Sentences that a caption needs of what is special about these models; they begin with a space."""
    text = ""
    if any(subject.is_sum_bound for subject in subjects):
        text += (
            " The probability of sampled softmax is its own formula with k average negatives, e^s / (e^s + k mean "
            "e^s'), corrected where its loss is; ≤ is the largest sum that the stored scores allow."
        )
    if any(subject.has_more_seeds for subject in subjects):
        text += " Of models with several seeds the first one is shown."
    return text


def calibration_table(subjects: Sequence[Subject], truths: Mapping[str, Array] | None) -> Table:
    """One line per model: predicted against observed at the first place and over all stored ones."""
    lines = []
    for subject in subjects:
        predicted, precision = confidence_curve(subject.predictions)
        error = reliability(subject.predictions).expected_error
        line = [subject.name, f"{predicted[0]:.4f}", f"{precision[0]:.4f}"]
        expected = precision[:1] if truths is None else truths[subject.name][:, 0]
        line += ["" if subject.law is None else f"{np.nanmean(subject.law.optimal_sigmoid(expected)):.4f}"]
        line += [f"{error:.4f}", f"{'≤ ' if subject.is_sum_bound else ''}{np.mean(subject.sums):,.2f}"]
        lines.append(line if truths is None else [*line, f"{top_gap(subject, truths):.4f}"])
    depth = subjects[0].items.shape[1] if subjects else 0
    of_what = "that precision" if truths is None else "the true probability"
    caption = (
        "Predicted probability of the first item, how often it was the next one, and what Theorem 1 expects for "
        f"{of_what}; expected calibration error over the best {depth} items of every user; mean sum of the "
        "probabilities over the catalogue, which is 1 for probabilities."
    )
    caption += remarks_on(subjects)
    header = ["Model", "Predicted@1", "Precision@1", "Theorem 1", "ECE", "Sum"]
    if truths is not None:
        header.append(f"|p - P| top {TOP}")
        caption += f" |p - P|: mean distance to the true probability over each user's first {TOP} items."
    return Table("calibration", header, [lines], caption)
