"""Calibration figures: Figures 1 and 2 of the gSASRec paper, and a reliability diagram."""

from __future__ import annotations

import math
import textwrap
from collections.abc import Mapping, Sequence

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from evaluation.calibration.summary import CalibrationSummary
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
def draw_one_user(summaries: Sequence[CalibrationSummary], styles: Mapping[str, PlotStyle]) -> Figure:
    """Draw the predicted probabilities of one user's top items and the sum over the catalogue, one panel per model."""
    rows = math.ceil(len(summaries) / MAX_COLUMNS)
    columns = math.ceil(len(summaries) / rows)
    size = (max(3.0, 1.4 * columns + 0.6), 1.8 * rows + 0.5)
    figure, panels = make_figure(*size, rows, columns, sharex=True, sharey=True)
    for unused in panels.flat[len(summaries) :]:
        unused.set_visible(False)
    smallest = 1.0
    for summary, axes in zip(summaries, panels.flat, strict=False):
        user, colour = summary.user, styles[summary.name].colour
        probabilities = np.maximum(user.probabilities, MIN_PROBABILITY)
        smallest = min(smallest, float(probabilities.min(initial=1.0)))
        ranks = np.arange(1, len(probabilities) + 1)
        axes.fill_between(ranks, MIN_PROBABILITY, probabilities, color=colour, alpha=0.25, linewidth=0)
        axes.plot(ranks, probabilities, color=colour)
        if user.target_rank is not None:
            place = user.target_rank - 1
            axes.plot(ranks[place], probabilities[place], "o", mfc="white", mec=TEXT_COLOUR, markersize=5)
        bound = "≤ " if summary.is_sum_bound else "= "
        axes.set_title(f"{textwrap.fill(summary.name, TITLE_WIDTH)}\nsum {bound}{user.catalogue_sum:,.2f}")
        axes.set_yscale("log")
        axes.xaxis.set_tick_params(labelbottom=True)
    format_log_axes(panels[0][0].yaxis)
    panels[0][0].set_ylim(max(MIN_PROBABILITY, smallest / 2), 1.5)
    figure.supxlabel(f"rank of the item for user {printable(summaries[0].user.user)}", fontsize=9)
    figure.supylabel("predicted probability", fontsize=9)
    return figure


@styled
def draw_confidence(summaries: Sequence[CalibrationSummary], styles: Mapping[str, PlotStyle]) -> Figure:
    """Draw the mean predicted probability of the top K items against mean Precision@K, with the optima of the losses.

    Dashed is the optimum for the sampler used, dotted that of Theorem 1, whose sampler never draws the positive.
    """
    figure, panels = make_figure(5.4, 4.0)
    axes = panels[0][0]
    precisions: list[float] = []
    for summary in summaries:
        precision, style = summary.precision, styles[summary.name]
        is_hit = precision > 0
        marks = [k - 1 for k in (1, 2, 5, 10, 20, 50, 100) if k <= len(precision)]
        axes.plot(
            precision[is_hit], summary.predicted[is_hit], color=style.colour, marker=style.marker, label=summary.name,
            markevery=[mark for mark in marks if mark < is_hit.sum()],
        )  # fmt: skip
        precisions.extend(precision[is_hit])
        for optimum, line_style in ((summary.optimum, "--"), (summary.theorem_1, ":")):
            if optimum is not None:
                axes.plot(precision[is_hit], optimum[is_hit], color=style.colour, linestyle=line_style, linewidth=1)
    if any(summary.optimum is not None for summary in summaries):
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
def draw_reliability(summaries: Sequence[CalibrationSummary], styles: Mapping[str, PlotStyle]) -> Figure:
    """Draw the observed against the predicted probability in bins of equal size; bins without a hit are left out."""
    figure, panels = make_figure(5.4, 4.0)
    axes = panels[0][0]
    levels: list[float] = []
    for summary in summaries:
        bins, style = summary.bins, styles[summary.name]
        is_hit = bins.observed > 0
        predicted, observed = bins.predicted[is_hit], bins.observed[is_hit]
        errors = [observed - bins.low[is_hit], bins.high[is_hit] - observed]
        axes.errorbar(
            predicted, observed, yerr=errors, **style.options, linewidth=1, elinewidth=0.8,
            label=f"{summary.name} (ECE {bins.expected_error:.4f})",
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
