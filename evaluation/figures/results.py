"""Figures of results: learning curves, quality against time, pairs of models, groups of users, the dataset."""

from __future__ import annotations

import itertools
import textwrap
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import pandas as pd
from matplotlib.figure import Figure

from aprec_like.types import Array
from evaluation.analysis.breakdown import ItemCounts, Stratum
from evaluation.analysis.comparison import Comparison
from evaluation.analysis.pairwise import Pairwise
from evaluation.analysis.significance import Interval
from evaluation.figures.style import (
    GRID_COLOUR,
    TEXT_COLOUR,
    PlotStyle,
    add_legend_below,
    format_log_axes,
    make_figure,
    styled,
)
from evaluation.results.load import LoadedRuns
from evaluation.table import signed

SECONDS_PER_MINUTE = 60
MIN_MINUTES = 0.01
"""Shorter times are drawn at this value: counting models take no time, and a logarithmic axis has no zero."""


MAX_TITLE = 100
"""Characters in a line of a figure's title."""

MIN_LENGTH = 1
"""Histories without items are drawn at this length, for the same reason."""


@dataclass(frozen=True, eq=False)
class LearningCurve:
    """Validation values of one training by epoch and by minutes since its start; all arrays (epochs,)."""

    model: str
    epochs: Array
    minutes: Array
    values: Array


def read_learning_curves(runs: LoadedRuns, names: Collection[str] | None = None) -> list[LearningCurve]:
    """Read the learning curves of finished models with validation, one per seed, in table order.

    Args:
        runs: the results.
        names: of the models; `None` for all.
    """
    curves = []
    for model in runs.models:
        if names is not None and model.name not in names:
            continue
        for folder in model.folders:
            history = folder.read_history().dropna(subset="validation")
            if len(history):
                columns = [history[name].to_numpy() for name in ("epoch", "seconds", "validation")]
                curves.append(LearningCurve(model.name, columns[0], columns[1] / SECONDS_PER_MINUTE, columns[2]))
    return curves


@styled
def draw_learning(curves: Sequence[LearningCurve], styles: Mapping[str, PlotStyle], metric: str) -> Figure:
    """Draw validation values against epochs and against time; a large marker shows the best epoch."""
    figure, panels = make_figure(7.2, 3.0, columns=2, sharey=True)
    named: set[str] = set()
    for curve in curves:
        style = styles[curve.model]
        label = None if curve.model in named else curve.model
        named.add(curve.model)
        best = int(np.argmax(curve.values))
        for axes, x in zip(panels[0], (curve.epochs, curve.minutes), strict=True):
            every = max(1, len(x) // 8)
            axes.plot(x, curve.values, **style.options, markevery=every, markersize=3.5, label=label)
            marker = {"marker": style.marker, "color": style.colour, "markersize": 8, "mec": TEXT_COLOUR, "mew": 0.8}
            axes.plot(x[best], curve.values[best], **marker, clip_on=False)
    panels[0][0].set_xlabel("epoch")
    panels[0][1].set_xlabel("minutes of training")
    panels[0][0].set_ylabel(f"validation {metric}")
    panels[0][0].set_ylim(bottom=0)
    for axes in panels[0]:
        axes.set_xlim(left=0)
    add_legend_below(figure)
    return figure


@styled
def draw_quality_against_time(comparison: Comparison, styles: Mapping[str, PlotStyle], metric: str) -> Figure:
    """Draw the test metric with its interval against the minutes until the best epoch."""
    figure, panels = make_figure(5.4, 3.0)
    axes = panels[0][0]
    is_clipped = False
    for row in comparison.rows:
        if row.seconds_to_best is not None:
            value, style = row.cells[metric].value, styles[row.name]
            minutes = max(row.seconds_to_best / SECONDS_PER_MINUTE, MIN_MINUTES)
            is_clipped |= minutes == MIN_MINUTES
            options = {"fmt": style.marker, "color": style.colour, "markersize": 5.5, "capsize": 4}
            axes.errorbar(minutes, value.mean, yerr=_errors([value]), label=row.name, **options)
    for bound in comparison.bounds:
        axes.axhline(bound.cells[metric].value.mean, color=GRID_COLOUR, linestyle="--", linewidth=1, label=bound.name)
    axes.set_xscale("log")
    format_log_axes(axes.xaxis)
    axes.set_ylim(bottom=0)
    axes.set_xlabel("minutes until the best epoch" + (f", at least {MIN_MINUTES:g}" if is_clipped else ""))
    axes.set_ylabel(metric)
    add_legend_below(figure)
    return figure


@styled
def draw_pairwise(metric: str, pairs: Pairwise) -> Figure:
    """Draw the differences of all pairs of models as a matrix, row minus column; a star marks significant ones."""
    names = pairs.names
    values = np.zeros([len(names), len(names)])
    for (row, column), test in pairs.tests.items():
        index = names.index(row), names.index(column)
        values[index], values[index[::-1]] = test.difference.mean, -test.difference.mean
    limit = max(float(np.abs(values).max()), 1e-9)
    size = 1.6 + 0.62 * len(names)
    figure, panels = make_figure(size + 0.8, size)
    axes = panels[0][0]
    image = axes.imshow(values, cmap="PuOr_r", vmin=-limit, vmax=limit)
    axes.grid(False)
    axes.set_xticks(range(len(names)), names, rotation=45, ha="right", rotation_mode="anchor")
    axes.set_yticks(range(len(names)), names)
    for (row, column), test in pairs.tests.items():
        mark = "*" if pairs.p_corrected[row, column] < pairs.rules.alpha else ""
        for one, other, sign in ((row, column, 1), (column, row, -1)):
            difference = sign * test.difference.mean
            colour = "white" if abs(difference) > 0.6 * limit else "black"
            position = (names.index(other), names.index(one))
            axes.text(*position, signed(difference, ".3f") + mark, ha="center", va="center", fontsize=7, color=colour)
    axes.set_title(f"{metric}, row minus column")
    figure.colorbar(image, shrink=0.8)
    return figure


@styled
def draw_strata(metric: str, strata: Sequence[Stratum], first: str, second: str) -> Figure:
    """Draw the difference of two models in groups of users, with intervals."""
    groups = [(title, list(group)) for title, group in itertools.groupby(strata, key=lambda stratum: stratum.by)]
    figure, panels = make_figure(3.2 * len(groups), 2.8, columns=len(groups), sharey=True)
    for axes, (title, group) in zip(panels[0], groups, strict=True):
        means = [stratum.difference.mean for stratum in group]
        errors = _errors([stratum.difference for stratum in group])
        axes.axhline(0, color=GRID_COLOUR, linewidth=0.8)
        axes.errorbar(range(len(group)), means, yerr=errors, fmt="o", color=TEXT_COLOUR, capsize=3)
        labels = [f"{stratum.bounds[0]:.3g} to\n{stratum.bounds[1]:.3g}" for stratum in group]
        axes.set_xticks(range(len(group)), labels, fontsize=7)
        axes.set_xlabel(title)
    panels[0][0].set_ylabel(f"{metric}: difference")
    figure.suptitle(textwrap.fill(f"{first} minus {second}", MAX_TITLE), fontsize=9)
    return figure


@styled
def draw_dataset(cases: pd.DataFrame, items: ItemCounts) -> Figure:
    """Draw the distributions of history lengths and of item popularity."""
    figure, (panels,) = make_figure(7.2, 2.7, columns=2)
    lengths = np.maximum(cases["history_length"].to_numpy(), MIN_LENGTH)
    panels[0].ecdf(lengths, color=TEXT_COLOUR)
    panels[0].axvline(np.median(lengths), color=GRID_COLOUR, linestyle="--", label=f"median {np.median(lengths):g}")
    panels[0].set_xscale("log")
    panels[0].set_xlabel("items before the target, at most")
    panels[0].set_ylabel("share of test users")
    panels[0].legend(loc="lower right")
    panels[1].loglog(items.places, items.counts, color=TEXT_COLOUR)
    panels[1].set_xlabel("place of the item by popularity")
    panels[1].set_ylabel("interactions")
    format_log_axes(panels[0].xaxis, panels[1].xaxis, panels[1].yaxis)
    return figure


def _errors(intervals: Sequence[Interval]) -> Array:
    """Return the distances from the means to the lower and the upper ends of intervals, (2, intervals)."""
    return np.array([[value.mean - value.low, value.high - value.mean] for value in intervals]).T
