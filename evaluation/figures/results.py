"""Figures of a comparison: learning curves, quality against time, pairs, groups of users, the dataset."""

from __future__ import annotations

import itertools
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import pandas as pd
from matplotlib.figure import Figure

from evaluation.analysis.breakdown import Pairwise, Stratum
from evaluation.analysis.comparison import Comparison
from evaluation.analysis.significance import Interval
from evaluation.figures.style import INK, PALE, Look, legend_below, make_figure, plain_numbers, styled
from evaluation.results.load import LoadedRuns

SECONDS_PER_MINUTE = 60
LEAST_MINUTES = 0.01
"""Models that only count take no time, which a logarithmic axis has no place for."""


@dataclass(frozen=True, eq=False)
class LearningCurve:
    """The epochs of one training: validation values, and minutes since its start."""

    model: str
    epochs: np.ndarray
    minutes: np.ndarray
    values: np.ndarray


def read_learning_curves(runs: LoadedRuns) -> list[LearningCurve]:
    """One for every finished training that was validated, in the order of the table."""
    curves = []
    for model in runs.models:
        for folder in model.folders:
            history = folder.read_history().dropna(subset="validation")
            if len(history):
                columns = [history[name].to_numpy() for name in ("epoch", "seconds", "validation")]
                curves.append(LearningCurve(model.name, columns[0], columns[1] / SECONDS_PER_MINUTE, columns[2]))
    return curves


@styled
def draw_learning(curves: Sequence[LearningCurve], looks: Mapping[str, Look], metric: str) -> Figure:
    """Validation against epochs and against time; a large mark at each best epoch."""
    figure, panels = make_figure(7.2, 3.0, columns=2, sharey=True)
    named: set[str] = set()
    for curve in curves:
        look = looks[curve.model]
        label = None if curve.model in named else curve.model
        named.add(curve.model)
        best = int(np.argmax(curve.values))
        for axes, places in zip(panels[0], (curve.epochs, curve.minutes), strict=True):
            every = max(1, len(places) // 8)
            axes.plot(
                places, curve.values, color=look.colour, linestyle=look.line, marker=look.marker, markevery=every,
                markersize=3.5, label=label,
            )  # fmt: skip
            mark = {"marker": look.marker, "color": look.colour, "markersize": 8, "mec": INK, "mew": 0.8}
            axes.plot(places[best], curve.values[best], **mark, clip_on=False)
    panels[0][0].set_xlabel("epoch")
    panels[0][1].set_xlabel("minutes of training")
    panels[0][0].set_ylabel(f"validation {metric}")
    panels[0][0].set_ylim(bottom=0)
    for axes in panels[0]:
        axes.set_xlim(left=0)
    legend_below(figure)
    return figure


@styled
def draw_quality_against_time(comparison: Comparison, looks: Mapping[str, Look], metric: str) -> Figure:
    """The test metric with its interval against the minutes until the best epoch."""
    figure, panels = make_figure(5.4, 3.0)
    axes = panels[0][0]
    is_cut = False
    for row in comparison.rows:
        if row.seconds_to_best is not None:
            value, look = row.cells[metric].value, looks[row.name]
            minutes = max(row.seconds_to_best / SECONDS_PER_MINUTE, LEAST_MINUTES)
            is_cut |= minutes == LEAST_MINUTES
            marks = {"fmt": look.marker, "color": look.colour, "markersize": 5.5, "capsize": 4}
            axes.errorbar(minutes, value.mean, yerr=_errors([value]), label=row.name, **marks)
    for bound in comparison.bounds:
        axes.axhline(bound.cells[metric].value.mean, color=PALE, linestyle="--", linewidth=1, label=bound.name)
    axes.set_xscale("log")
    plain_numbers(axes.xaxis)
    axes.set_ylim(bottom=0)
    axes.set_xlabel("minutes until the best epoch" + (f", at least {LEAST_MINUTES:g}" if is_cut else ""))
    axes.set_ylabel(metric)
    legend_below(figure)
    return figure


@styled
def draw_pairwise(metric: str, pairs: Pairwise) -> Figure:
    """Differences of all pairs as a matrix, row minus column; a star where a pair differs."""
    names = pairs.names
    values = np.zeros([len(names), len(names)])
    for (row, column), test in pairs.tests.items():
        place = names.index(row), names.index(column)
        values[place], values[place[::-1]] = test.difference.mean, -test.difference.mean
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
            place = (names.index(other), names.index(one))
            axes.text(*place, f"{difference:+.3f}{mark}", ha="center", va="center", fontsize=7, color=colour)
    axes.set_title(f"{metric}, row minus column")
    figure.colorbar(image, shrink=0.8)
    return figure


@styled
def draw_strata(metric: str, strata: Sequence[Stratum], first: str, second: str) -> Figure:
    """The difference of two models among groups of users, with intervals."""
    groups = [(title, list(group)) for title, group in itertools.groupby(strata, key=lambda stratum: stratum.by)]
    figure, panels = make_figure(3.2 * len(groups), 2.8, columns=len(groups), sharey=True)
    for axes, (title, group) in zip(panels[0], groups, strict=True):
        means = [stratum.difference.mean for stratum in group]
        errors = _errors([stratum.difference for stratum in group])
        axes.axhline(0, color=PALE, linewidth=0.8)
        axes.errorbar(range(len(group)), means, yerr=errors, fmt="o", color=INK, capsize=3)
        labels = [f"{stratum.bounds[0]:.3g} to\n{stratum.bounds[1]:.3g}" for stratum in group]
        axes.set_xticks(range(len(group)), labels, fontsize=7)
        axes.set_xlabel(title)
    panels[0][0].set_ylabel(f"{metric}: {first} minus {second}")
    return figure


@styled
def draw_dataset(cases: pd.DataFrame, items: pd.DataFrame) -> Figure:
    """How long histories are, and how popular items."""
    figure, (panels,) = make_figure(7.2, 2.7, columns=2)
    lengths = cases["history_length"].to_numpy()
    panels[0].ecdf(lengths, color=INK)
    panels[0].axvline(np.median(lengths), color=PALE, linestyle="--", label=f"median {np.median(lengths):g}")
    panels[0].set_xscale("log")
    panels[0].set_xlabel("items before the target, at most")
    panels[0].set_ylabel("share of test users")
    panels[0].legend(loc="lower right")
    counts = np.sort(items["count"].to_numpy())[::-1]
    counts = counts[counts > 0]
    panels[1].loglog(np.arange(1, len(counts) + 1), counts, color=INK)
    panels[1].set_xlabel("place of the item by popularity")
    panels[1].set_ylabel("interactions")
    plain_numbers(panels[0].xaxis, panels[1].xaxis, panels[1].yaxis)
    return figure


def _errors(intervals: Sequence[Interval]) -> np.ndarray:
    """(2, n) how far intervals reach below and above their means."""
    return np.array([[value.mean - value.low, value.high - value.mean] for value in intervals]).T
