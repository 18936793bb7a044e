"""Figures, drawn into files; nothing is shown and no state is shared."""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from pathlib import Path

import matplotlib as mpl
import numpy as np
from matplotlib.figure import Figure

from evaluation.documents import write_figure
from evaluation.findings import Pairwise, Stratum

STYLE = {"font.size": 9, "axes.spines.top": False, "axes.spines.right": False, "svg.hashsalt": "aprec_like"}


def draw_pairwise(path: Path, metric: str, pairs: Pairwise) -> None:
    """Differences of all pairs as a matrix, row minus column; a star where a pair differs."""
    names = pairs.names
    values = np.zeros([len(names), len(names)])
    for (row, column), test in pairs.tests.items():
        place = names.index(row), names.index(column)
        values[place], values[place[::-1]] = test.difference.mean, -test.difference.mean
    limit = max(float(np.abs(values).max()), 1e-9)
    with mpl.rc_context(STYLE):
        size = 1.6 + 0.7 * len(names)
        figure = Figure(figsize=(size + 0.8, size), layout="constrained")
        axes = figure.subplots()
        image = axes.imshow(values, cmap="RdBu_r", vmin=-limit, vmax=limit)
        axes.set_xticks(range(len(names)), names, rotation=45, ha="right")
        axes.set_yticks(range(len(names)), names)
        for (row, column), test in pairs.tests.items():
            mark = "*" if pairs.p_corrected[row, column] < pairs.rules.alpha else ""
            for one, other, sign in ((row, column, 1), (column, row, -1)):
                difference = sign * test.difference.mean
                color = "white" if abs(difference) > 0.6 * limit else "black"
                place = (names.index(other), names.index(one))
                axes.text(*place, f"{difference:+.3f}{mark}", ha="center", va="center", fontsize=7, color=color)
        axes.set_title(f"{metric}, row minus column")
        figure.colorbar(image, shrink=0.8)
        _save(figure, path)


def draw_strata(path: Path, metric: str, strata: Sequence[Stratum], first: str, second: str) -> None:
    """The difference of two models among groups of users, with intervals."""
    groups = [(title, list(group)) for title, group in itertools.groupby(strata, key=lambda stratum: stratum.by)]
    with mpl.rc_context(STYLE):
        figure = Figure(figsize=(3.2 * len(groups), 2.8), layout="constrained")
        panels = figure.subplots(1, len(groups), sharey=True, squeeze=False)
        for axes, (title, group) in zip(panels[0], groups, strict=True):
            means = np.array([stratum.difference.mean for stratum in group])
            lows = np.array([stratum.difference.low for stratum in group])
            highs = np.array([stratum.difference.high for stratum in group])
            axes.axhline(0, color="0.6", linewidth=0.8)
            axes.errorbar(range(len(group)), means, yerr=[means - lows, highs - means], fmt="o", capsize=3)
            labels = [f"{stratum.bounds[0]:.3g} to\n{stratum.bounds[1]:.3g}" for stratum in group]
            axes.set_xticks(range(len(group)), labels, fontsize=7)
            axes.set_xlabel(title)
        panels[0][0].set_ylabel(f"{metric}: {first} minus {second}")
        _save(figure, path)


def _save(figure: Figure, path: Path) -> None:
    write_figure(path, lambda temporary: figure.savefig(temporary, format=path.suffix[1:]))
