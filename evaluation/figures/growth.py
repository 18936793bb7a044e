"""Figure of how the cost of a training step grows with the catalogue, the sequence length and the negatives."""

from __future__ import annotations

from matplotlib.axes import Axes
from matplotlib.figure import Figure

from evaluation.figures.style import add_legend_below, assign_styles, format_log_axes, make_figure, styled

Growth = dict[str, dict[str, dict[int, dict[str, float]]]]
"""Measurements `step_seconds` and `peak_memory_gib` by model, by what is varied, by its value."""

TITLES = {"items": "Items", "length": "Length of sequences", "negatives": "Negatives per target"}
"""Titles of what is varied."""


@styled
def draw_growth(growth: Growth) -> Figure:
    """Draw seconds per step and peak memory against each varied size; all axes are logarithmic."""
    shown = [varied for varied in TITLES if any(varied in sweeps for sweeps in growth.values())]
    rows = (("step_seconds", "seconds per step"), ("peak_memory_gib", "peak memory, GiB"))
    figure, panels = make_figure(2.9 * len(shown), 4.4, len(rows), len(shown), sharex="col", sharey="row")
    for row, (key, title) in zip(panels, rows, strict=True):
        row[0].set_ylabel(title)
        for axes, varied in zip(row, shown, strict=True):
            _draw_panel(axes, growth, varied, key)
    for axes, varied in zip(panels[-1], shown, strict=True):
        axes.set_xlabel(TITLES[varied].lower())
    add_legend_below(figure)
    return figure


def _draw_panel(axes: Axes, growth: Growth, varied: str, key: str) -> None:
    for name, style in assign_styles(growth).items():
        points = growth[name].get(varied, {})
        values = [measured[key] for measured in points.values()]
        axes.plot([*points], values, **style.options, label=name)
    axes.set_xscale("log")
    axes.set_yscale("log")
    format_log_axes(axes.xaxis, axes.yaxis)
