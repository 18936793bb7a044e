"""Figures of the overconfidence lab, after Figures 1 and 2 of the gSASRec paper, and a reliability diagram."""

from __future__ import annotations

import math
import textwrap
from collections.abc import Mapping, Sequence

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from aprec_like.calibration import Predictions, confidence_curve, reliability
from aprec_like.types import Array
from evaluation.analysis.calibration import Subject
from evaluation.figures.style import INK, PALE, Look, legend_below, make_figure, plain_numbers, styled

MAX_COLUMNS, TITLE_LETTERS = 5, 16
LEAST = 1e-6
"""Smaller probabilities are not told apart in a figure."""


@styled
def draw_one_user(subjects: Sequence[Subject], looks: Mapping[str, Look], case: int, user: object) -> Figure:
    """The predicted probability of one user's best items, models side by side, with the sum over the catalogue."""
    rows = math.ceil(len(subjects) / MAX_COLUMNS)
    columns = math.ceil(len(subjects) / rows)
    size = (max(3.0, 1.4 * columns + 0.6), 1.8 * rows + 0.5)
    figure, panels = make_figure(*size, rows, columns, sharex=True, sharey=True)
    for unused in panels.flat[len(subjects) :]:
        unused.set_visible(False)
    for subject, axes in zip(subjects, panels.flat, strict=False):
        probabilities = np.maximum(subject.predictions.probabilities[case], LEAST)
        ranks, colour = np.arange(1, len(probabilities) + 1), looks[subject.name].colour
        axes.fill_between(ranks, LEAST, probabilities, color=colour, alpha=0.25, linewidth=0)
        axes.plot(ranks, probabilities, color=colour)
        if (found := np.flatnonzero(subject.predictions.is_target[case])).size:
            axes.plot(ranks[found], probabilities[found], "o", mfc="white", mec=INK, markersize=5)
        bound = "≤ " if subject.is_sum_bound else "= "
        axes.set_title(f"{textwrap.fill(subject.name, TITLE_LETTERS)}\nsum {bound}{subject.sums[case]:,.2f}")
        axes.set_yscale("log")
        axes.xaxis.set_tick_params(labelbottom=True)
    plain_numbers(panels[0][0].yaxis)
    smallest = min(float(np.nanmin(subject.predictions.probabilities[case])) for subject in subjects)
    panels[0][0].set_ylim(max(LEAST, smallest / 2), 1.5)
    figure.supxlabel(f"rank of the item for user {user}", fontsize=9)
    figure.supylabel("predicted probability", fontsize=9)
    return figure


@styled
def draw_confidence(
    subjects: Sequence[Subject], looks: Mapping[str, Look], truths: Mapping[str, Array] | None = None
) -> Figure:
    """Mean predicted probability of the first K items against mean Precision@K, with Theorem 1's curves.

    The theorem is of one item. Where the true probabilities of all items are known, its curve is the mean over them;
    else it is, as in the paper, that of an item with the mean precision.
    """
    figure, panels = make_figure(5.4, 4.0)
    axes = panels[0][0]
    precisions: list[float] = []
    for subject in subjects:
        predicted, precision = confidence_curve(subject.predictions)
        is_hit, look = precision > 0, looks[subject.name]
        marks = [place - 1 for place in (1, 2, 5, 10, 20, 50, 100) if place <= len(precision)]
        axes.plot(
            precision[is_hit], predicted[is_hit], color=look.colour, marker=look.marker, label=subject.name,
            markevery=[mark for mark in marks if mark < is_hit.sum()],
        )  # fmt: skip
        precisions.extend(precision[is_hit])
        if subject.law is not None:
            sigmoids = subject.law.optimal_sigmoid(precision)
            if truths is not None:
                items = Predictions(subject.law.optimal_sigmoid(truths[subject.name]), subject.predictions.is_target)
                sigmoids, _ = confidence_curve(items)
            axes.plot(precision[is_hit], sigmoids[is_hit], color=look.colour, linestyle="--", linewidth=1)
    if any(subject.law is not None for subject in subjects):
        axes.plot([], [], color=INK, linestyle="--", linewidth=1, label="Theorem 1")
    axes.set_xscale("log")
    axes.set_yscale("log")
    plain_numbers(axes.xaxis, axes.yaxis)
    _draw_diagonal(axes, precisions)
    axes.set_xlabel(f"mean Precision@K, from K = {len(precision)} (left) to K = 1 (right)")
    axes.set_ylabel("mean predicted probability of the first K items")
    legend_below(figure)
    return figure


@styled
def draw_reliability(subjects: Sequence[Subject], looks: Mapping[str, Look]) -> Figure:
    """How often predictions of each level came true, in bins of equal size; bins that never did are left out."""
    figure, panels = make_figure(5.4, 4.0)
    axes = panels[0][0]
    levels: list[float] = []
    for subject in subjects:
        found, look = reliability(subject.predictions), looks[subject.name]
        is_hit = found.observed > 0
        predicted, observed = found.predicted[is_hit], found.observed[is_hit]
        errors = [observed - found.low[is_hit], found.high[is_hit] - observed]
        axes.errorbar(
            predicted, observed, yerr=errors, color=look.colour, marker=look.marker, linestyle=look.line, linewidth=1,
            elinewidth=0.8, label=f"{subject.name} (ECE {found.expected_error:.4f})",
        )  # fmt: skip
        levels.extend(observed)
    axes.set_xscale("log")
    axes.set_yscale("log")
    plain_numbers(axes.xaxis, axes.yaxis)
    _draw_diagonal(axes, levels)
    axes.set_xlabel("mean predicted probability")
    axes.set_ylabel("share that came true")
    legend_below(figure)
    return figure


def _draw_diagonal(axes: Axes, levels: Sequence[float]) -> None:
    """Where predictions are what comes true."""
    if levels:
        ends = [min(levels), max(levels)]
        axes.plot(ends, ends, color=PALE, linewidth=3, alpha=0.5, zorder=0, label="calibrated")
