"""Figures of a search for settings: its history, the importance of settings, parallel coordinates, best curves."""

from __future__ import annotations

import math
from collections.abc import Collection, Mapping, Sequence
from typing import Any

import matplotlib as mpl
import numpy as np
import pandas as pd
from matplotlib.figure import Figure

from aprec_like.types import Array
from evaluation.figures.style import (
    COLOURS,
    GRID_COLOUR,
    TEXT_COLOUR,
    add_legend_below,
    assign_styles,
    make_figure,
    styled,
)

STATE_STYLES: Mapping[str, Mapping[str, Any]] = {
    "complete": {"color": COLOURS[0], "marker": "o", "label": "trained to its end"},
    "pruned": {"color": GRID_COLOUR, "marker": "x", "label": "ended early"},
}
MAX_TICKS = 6
"""Up to this many different numbers are all named; of more, the ends and the middle."""
MAX_LABEL = 24
"""Characters of a choice that a figure shows."""
COLOUR_MAP = "viridis"


@styled
def draw_search_history(trials: pd.DataFrame, metric: str, own_value: float | None) -> Figure:
    """Draw the value of every trial by its number, and the best so far.

    Args:
        trials: columns trial, state and value.
        metric: name of the validation metric.
        own_value: of the recipe's own settings, a reference line; `None` for none.
    """
    figure, panels = make_figure(5.4, 2.8)
    axes = panels[0][0]
    for state, style in STATE_STYLES.items():
        shown = trials[(trials["state"] == state) & trials["value"].notna()]
        if len(shown):
            axes.plot(shown["trial"], shown["value"], linestyle="none", **style)
    complete = trials[trials["state"] == "complete"]
    best = np.maximum.accumulate(complete["value"].to_numpy(float))
    axes.step(complete["trial"], best, where="post", color=COLOURS[1], label="best so far")
    if own_value is not None:
        axes.axhline(own_value, color=GRID_COLOUR, linestyle="--", linewidth=1, label="the recipe's own settings")
    axes.set_xlabel("trial")
    axes.set_ylabel(f"validation {metric}")
    axes.xaxis.get_major_locator().set_params(integer=True)
    add_legend_below(figure)
    return figure


@styled
def draw_importance(importance: Mapping[str, float]) -> Figure:
    """Draw the share of each setting in being among the best trials."""
    names = sorted(importance, key=importance.__getitem__)
    figure, panels = make_figure(5.4, 0.8 + 0.3 * len(names))
    axes = panels[0][0]
    axes.barh(names, [importance[name] for name in names], color=COLOURS[0])
    axes.set_xlabel("importance")
    axes.set_xlim(0, 1)
    axes.grid(axis="y", visible=False)
    return figure


@styled
def draw_parallel_coordinates(
    trials: pd.DataFrame, settings: Sequence[str], log_settings: Collection[str], metric: str
) -> Figure:
    """Draw every complete trial as a line through its settings, in the colour of its value.

    Args:
        trials: columns state, value and one per setting.
        settings: names of these columns.
        log_settings: those on a logarithmic scale.
        metric: name of the validation metric.
    """
    complete = trials[trials["state"] == "complete"].sort_values("value")
    values = complete["value"].to_numpy(float)
    figure, panels = make_figure(max(5.4, 1.5 * (len(settings) + 1)), 3.2)
    axes = panels[0][0]
    columns = [_scaled(complete[name], name in log_settings) for name in settings]
    columns.append(_scaled(complete["value"], False))
    norm = mpl.colors.Normalize(values.min(), max(values.max(), values.min() + 1e-9))
    colours = mpl.colormaps[COLOUR_MAP](norm(values))
    for number, colour in enumerate(colours):
        heights = [scaled[number] for scaled, _ in columns]
        axes.plot(range(len(columns)), heights, color=colour, linewidth=1.0, alpha=0.9)
    for place, (_, ticks) in enumerate(columns):
        axes.axvline(place, color=TEXT_COLOUR, linewidth=0.8)
        for height, text in ticks:
            axes.annotate(text, (place, height), xytext=(4, 0), textcoords="offset points", fontsize=7, va="center")
    axes.set_xticks(range(len(columns)), [*settings, metric])
    axes.set_yticks([])
    axes.grid(False)
    axes.set_xlim(-0.1, len(columns) - 0.4)
    for side in ("left", "bottom"):
        axes.spines[side].set_visible(False)
    return figure


def _scaled(column: pd.Series, is_log: bool) -> tuple[Array, list[tuple[float, str]]]:
    """Return a column between 0 and 1, and ticks with their texts: numbers by size, choices side by side."""
    is_numeric = all(isinstance(value, (int, float)) and not isinstance(value, bool) for value in column)
    distinct = list(dict.fromkeys(column))
    if not is_numeric:
        texts = sorted(map(str, distinct))
        places = {text: index / max(1, len(texts) - 1) for index, text in enumerate(texts)}
        return np.array([places[str(value)] for value in column]), [
            (place, text[:MAX_LABEL]) for text, place in places.items()
        ]
    numbers = column.to_numpy(float)
    low, high = float(numbers.min()), float(numbers.max())
    scale = math.log if is_log else float
    width = scale(high) - scale(low) or 1.0
    scaled = np.array([(scale(value) - scale(low)) / width for value in numbers])
    if len(distinct) <= MAX_TICKS:
        return scaled, [(float(height), f"{value:.3g}") for height, value in set(zip(scaled, numbers, strict=True))]
    middle = math.sqrt(low * high) if is_log else (low + high) / 2
    return scaled, [(height, f"{value:.3g}") for height, value in ((0.0, low), (0.5, middle), (1.0, high))]


@styled
def draw_best_curves(curves: Mapping[int, pd.DataFrame], metric: str) -> Figure:
    """Draw the validation values of trials by epoch, best trial first.

    Args:
        curves: columns epoch and validation by number of the trial.
        metric: name of the validation metric.
    """
    figure, panels = make_figure(5.4, 2.8)
    axes = panels[0][0]
    names = {number: f"trial {number}" for number in curves}
    styles = assign_styles(names.values())
    for number, curve in curves.items():
        options = styles[names[number]].options
        every = max(1, len(curve) // 8)
        axes.plot(curve["epoch"], curve["validation"], **options, markevery=every, markersize=3.5, label=names[number])
    axes.set_xlabel("epoch")
    axes.set_ylabel(f"validation {metric}")
    axes.set_ylim(bottom=0)
    axes.set_xlim(left=0)
    axes.xaxis.get_major_locator().set_params(integer=True)
    add_legend_below(figure)
    return figure
