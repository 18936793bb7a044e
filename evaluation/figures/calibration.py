"""Calibration figures: Figures 1 and 2 of the gSASRec paper, and a reliability diagram."""

from __future__ import annotations

import math
import textwrap
from collections.abc import Mapping, Sequence

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from aprec_like.calibration import Predictions, confidence_curve, reliability
from aprec_like.types import Array
from evaluation.analysis.calibration import CalibratedModel
from evaluation.figures.style import (
    GRID_COLOUR,
    TEXT_COLOUR,
    PlotStyle,
    add_legend_below,
    format_log_axes,
    make_figure,
    styled,
)
from evaluation.printable import printable

MAX_COLUMNS, TITLE_WIDTH = 5, 16
MIN_PROBABILITY = 1e-6
"""Smaller probabilities are drawn at this value."""


@styled
def draw_one_user(
    models: Sequence[CalibratedModel], styles: Mapping[str, PlotStyle], case: int, user: object
) -> Figure:
    """Draw the predicted probabilities of one user's top items and the sum over the catalogue, one panel per model."""
    rows = math.ceil(len(models) / MAX_COLUMNS)
    columns = math.ceil(len(models) / rows)
    size = (max(3.0, 1.4 * columns + 0.6), 1.8 * rows + 0.5)
    figure, panels = make_figure(*size, rows, columns, sharex=True, sharey=True)
    for unused in panels.flat[len(models) :]:
        unused.set_visible(False)
    for model, axes in zip(models, panels.flat, strict=False):
        probabilities = np.maximum(model.predictions.probabilities[case], MIN_PROBABILITY)
        ranks, colour = np.arange(1, len(probabilities) + 1), styles[model.name].colour
        axes.fill_between(ranks, MIN_PROBABILITY, probabilities, color=colour, alpha=0.25, linewidth=0)
        axes.plot(ranks, probabilities, color=colour)
        if (hits := np.flatnonzero(model.predictions.is_target[case])).size:
            axes.plot(ranks[hits], probabilities[hits], "o", mfc="white", mec=TEXT_COLOUR, markersize=5)
        bound = "≤ " if model.is_sum_bound else "= "
        axes.set_title(f"{textwrap.fill(model.name, TITLE_WIDTH)}\nsum {bound}{model.sums[case]:,.2f}")
        axes.set_yscale("log")
        axes.xaxis.set_tick_params(labelbottom=True)
    format_log_axes(panels[0][0].yaxis)
    smallest = float(
        np.nanmin([np.nan_to_num(model.predictions.probabilities[case], nan=1.0).min() for model in models])
    )
    panels[0][0].set_ylim(max(MIN_PROBABILITY, smallest / 2), 1.5)
    figure.supxlabel(f"rank of the item for user {printable(user)}", fontsize=9)
    figure.supylabel("predicted probability", fontsize=9)
    return figure


@styled
def draw_confidence(
    models: Sequence[CalibratedModel], styles: Mapping[str, PlotStyle], truths: Mapping[str, Array] | None = None
) -> Figure:
    """Draw the mean predicted probability of the top K items against mean Precision@K, with the optima of the losses.

    Dashed is the optimum for the sampler used, dotted that of Theorem 1, whose sampler never draws the positive. Both
    are about a single item. If the true probabilities of all items are known, a curve is the mean over the items;
    otherwise it is, as in the paper, that of an item with the mean precision.
    """
    figure, panels = make_figure(5.4, 4.0)
    axes = panels[0][0]
    precisions: list[float] = []
    for model in models:
        predicted, precision = confidence_curve(model.predictions)
        is_hit, style = precision > 0, styles[model.name]
        marks = [k - 1 for k in (1, 2, 5, 10, 20, 50, 100) if k <= len(precision)]
        axes.plot(
            precision[is_hit], predicted[is_hit], color=style.colour, marker=style.marker, label=model.name,
            markevery=[mark for mark in marks if mark < is_hit.sum()],
        )  # fmt: skip
        precisions.extend(precision[is_hit])
        if model.optimal_sigmoid is not None:
            for optimum, line_style in ((model.optimal_sigmoid, "--"), (model.optimal_sigmoid.theorem_1, ":")):
                sigmoids = optimum(precision)
                if truths is not None:
                    items = Predictions(optimum(truths[model.name]), model.predictions.is_target)
                    sigmoids, _ = confidence_curve(items)
                axes.plot(precision[is_hit], sigmoids[is_hit], color=style.colour, linestyle=line_style, linewidth=1)
    if any(model.optimal_sigmoid is not None for model in models):
        for label, line_style in (("optimum of the sampler used", "--"), ("Theorem 1", ":")):
            axes.plot([], [], color=TEXT_COLOUR, linestyle=line_style, linewidth=1, label=label)
    axes.set_xscale("log")
    axes.set_yscale("log")
    format_log_axes(axes.xaxis, axes.yaxis)
    _draw_diagonal(axes, precisions)
    axes.set_xlabel(f"mean Precision@K, from K = {len(precision)} (left) to K = 1 (right)")
    axes.set_ylabel("mean predicted probability of the first K items")
    add_legend_below(figure)
    return figure


@styled
def draw_reliability(models: Sequence[CalibratedModel], styles: Mapping[str, PlotStyle]) -> Figure:
    """Draw the observed against the predicted probability in bins of equal size; bins without a hit are left out."""
    figure, panels = make_figure(5.4, 4.0)
    axes = panels[0][0]
    levels: list[float] = []
    for model in models:
        diagram, style = reliability(model.predictions), styles[model.name]
        is_hit = diagram.observed > 0
        predicted, observed = diagram.predicted[is_hit], diagram.observed[is_hit]
        errors = [observed - diagram.low[is_hit], diagram.high[is_hit] - observed]
        axes.errorbar(
            predicted, observed, yerr=errors, **style.options, linewidth=1, elinewidth=0.8,
            label=f"{model.name} (ECE {diagram.expected_error:.4f})",
        )  # fmt: skip
        levels.extend(observed)
    axes.set_xscale("log")
    axes.set_yscale("log")
    format_log_axes(axes.xaxis, axes.yaxis)
    _draw_diagonal(axes, levels)
    axes.set_xlabel("mean predicted probability")
    axes.set_ylabel("share that came true")
    add_legend_below(figure)
    return figure


def _draw_diagonal(axes: Axes, levels: Sequence[float]) -> None:
    """Draw the line of perfect calibration."""
    if levels:
        ends = [min(levels), max(levels)]
        axes.plot(ends, ends, color=GRID_COLOUR, linewidth=3, alpha=0.5, zorder=0, label="calibrated")
