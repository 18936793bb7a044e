"""What tables and figures show of a model's calibration: a few hundred numbers, small enough to be published."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from aprec_like.calibration import NUM_TOP_ITEMS, OptimalSigmoid
from aprec_like.types import Array, Json
from evaluation.calibration.predictions import CalibratedModel, top_gap
from evaluation.calibration.reliability import Predictions, Reliability, confidence_curve, reliability
from evaluation.table import Table

CURVES = ("predicted", "precision", "optimum", "theorem_1")
BINS = ("predicted", "observed", "low", "high", "counts")
PLAIN = ("mean_sum", "is_sum_bound", "note", "has_more_seeds", "seen_share", "top_gap")


@dataclass(frozen=True, eq=False)
class UserPredictions:
    """Predictions for one user.

    Args:
        user: id of the user.
        probabilities: (items,) predicted probabilities of the user's top items, best first.
        target_rank: rank of the item that came next among them, from 1; `None` if it is not among them.
        catalogue_sum: sum of the predicted probabilities over the catalogue, or an upper bound of it.
    """

    user: str
    probabilities: Array
    target_rank: int | None
    catalogue_sum: float


@dataclass(frozen=True, eq=False)
class CalibrationSummary:
    """Calibration of one model.

    Args:
        name: name of the model.
        predicted: (depth,) mean predicted probability of the first K items, K = 1, 2, ...
        precision: (depth,) mean Precision@K.
        optimum: (depth,) what minimises the loss with the sampler used, for the true probabilities of these items, or
            if they are unknown for an item with that precision; `None` where there is no closed form.
        theorem_1: (depth,) the same for a sampler that never draws the positive.
        bins: predictions in bins of equal size.
        mean_sum: mean sum of the probabilities over the catalogue, or of upper bounds if `is_sum_bound`.
        is_sum_bound: whether the sums are upper bounds.
        user: predictions for one user.
        note: what a caption must say about the definition of the probabilities.
        has_more_seeds: whether the model has further seeds.
        seen_share: mean share of the predicted mass on items of the history; `None` if it is not known.
        top_gap: mean |p - P| over each user's first 10 items; `None` if the true P is unknown.
    """

    name: str
    predicted: Array
    precision: Array
    optimum: Array | None
    theorem_1: Array | None
    bins: Reliability
    mean_sum: float
    is_sum_bound: bool
    user: UserPredictions
    note: str = ""
    has_more_seeds: bool = False
    seen_share: float | None = None
    top_gap: float | None = None

    def to_json(self) -> Json:
        """Return the summary without its name as a JSON object."""
        curves = {name: _as_list(getattr(self, name)) for name in CURVES}
        bins = {name: _as_list(getattr(self.bins, name)) for name in BINS}
        user = {
            "user": self.user.user,
            "probabilities": _as_list(self.user.probabilities),
            "target_rank": self.user.target_rank,
            "catalogue_sum": self.user.catalogue_sum,
        }
        return curves | {"bins": bins, "user": user} | {name: getattr(self, name) for name in PLAIN}

    @classmethod
    def from_json(cls, name: str, value: Json) -> CalibrationSummary:
        """Return the summary of a model from the object that `to_json` returned."""
        parts: Json = {curve: None if value[curve] is None else np.array(value[curve]) for curve in CURVES}
        parts |= {each: value[each] for each in PLAIN}
        parts["bins"] = Reliability(**{each: np.array(value["bins"][each]) for each in BINS})
        user: Json = value["user"] | {"probabilities": np.array(value["user"]["probabilities"])}
        return cls(name=name, user=UserPredictions(**user), **parts)


def _as_list(values: Array | None) -> list[float] | None:
    return None if values is None else np.asarray(values, np.float64).tolist()


def summarise(
    model: CalibratedModel, truths: Mapping[str, Array] | None, case: int, user: object
) -> CalibrationSummary:
    """Summarise the predictions of a model.

    Args:
        model: the model.
        truths: (users, depth) true probabilities of the top items by model; `None` if they are unknown.
        case: row of the user whose predictions are kept.
        user: id of this user.
    """
    predicted, precision = confidence_curve(model.predictions)
    probabilities, hits = model.predictions.probabilities[case], np.flatnonzero(model.predictions.is_target[case])
    optimal = model.optimal_sigmoid
    return CalibrationSummary(
        name=model.name,
        predicted=predicted,
        precision=precision,
        optimum=_optimal_curve(optimal, model, precision, truths),
        theorem_1=_optimal_curve(optimal.theorem_1 if optimal else None, model, precision, truths),
        bins=reliability(model.predictions),
        mean_sum=float(np.mean(model.sums)),
        is_sum_bound=model.is_sum_bound,
        user=UserPredictions(
            user=str(user),
            probabilities=probabilities[~np.isnan(probabilities)],
            target_rank=int(hits[0]) + 1 if hits.size else None,
            catalogue_sum=float(model.sums[case]),
        ),
        note=model.probability.note,
        has_more_seeds=model.has_more_seeds,
        seen_share=None if model.seen_shares is None else float(np.mean(model.seen_shares)),
        top_gap=None if truths is None else top_gap(model, truths),
    )


def _optimal_curve(
    optimum: OptimalSigmoid | None, model: CalibratedModel, precision: Array, truths: Mapping[str, Array] | None
) -> Array | None:
    """Return (depth,) the optimal prediction: the mean over the items, or of an item with the mean precision."""
    if optimum is None or truths is None:
        return None if optimum is None else optimum(precision)
    return confidence_curve(Predictions(optimum(truths[model.name]), model.predictions.is_target))[0]


def caption_notes(summaries: Sequence[CalibrationSummary]) -> str:
    """Return the sentences that a caption needs about these models, each after a space."""
    notes = dict.fromkeys(summary.note for summary in summaries if summary.note)
    if any(summary.has_more_seeds for summary in summaries):
        notes["Of models with several seeds the first one is shown."] = None
    return "".join(f" {note}" for note in notes)


def calibration_table(summaries: Sequence[CalibrationSummary], remarks: Sequence[str] = ()) -> Table:
    """Return a table of predicted against observed probabilities, one row per model."""
    has_truth = any(summary.top_gap is not None for summary in summaries)
    has_seen = any(summary.seen_share is not None for summary in summaries)
    depth = len(summaries[0].predicted) if summaries else 0
    expected_of = "the true probability" if has_truth else "that precision"
    header = ["Model", "Predicted@1", "Precision@1", "Optimum of the sampler", "Theorem 1", "ECE", "Sum"]
    caption = (
        "Predicted probability of the first item, how often it was the next one, the prediction that minimises the "
        f"loss for {expected_of} with the sampler used, and that of Theorem 1, whose sampler never draws the positive, "
        "each with the distance of the prediction from it; expected calibration error over the best "
        f"{depth} items of every user; mean sum of the probabilities over the catalogue, seen items included, which is "
        "1 for probabilities."
    )
    if has_seen:
        header.append("On seen items")
        caption += (
            " On seen items: mean share of that sum on items of the user's history, which the rankings leave out; "
            "probabilities are not rescaled for it."
        )
    caption += caption_notes(summaries)
    if has_truth:
        header.append(f"|p - P| top {NUM_TOP_ITEMS}")
        caption += f" |p - P|: mean distance to the true probability over each user's first {NUM_TOP_ITEMS} items."
    rows = [
        [
            summary.name,
            f"{summary.predicted[0]:.4f}",
            f"{summary.precision[0]:.4f}",
            _distance(summary.predicted, summary.optimum),
            _distance(summary.predicted, summary.theorem_1),
            f"{summary.bins.expected_error:.4f}",
            f"{'≤ ' if summary.is_sum_bound else ''}{summary.mean_sum:,.2f}",
            *([_format(summary.seen_share, ".1%")] if has_seen else []),
            *([_format(summary.top_gap, ".4f")] if has_truth else []),
        ]
        for summary in summaries
    ]
    return Table("calibration", header, [rows], " ".join([caption, *remarks]))


def _format(value: float | None, form: str) -> str:
    return "" if value is None else format(value, form)


def _distance(predicted: Array, optimum: Array | None) -> str:
    """Return the optimal prediction for the first item, with the distance of the prediction from it."""
    if optimum is None or not optimum[0]:
        return ""
    return f"{optimum[0]:.4f} ({predicted[0] / optimum[0] - 1:+.0%})"
