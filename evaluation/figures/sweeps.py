"""Runs that vary the loss: a grid of negatives and calibration (the gSASRec paper's Figure 3), losses against the
number of negatives (Figure 4)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from matplotlib.figure import Figure
from matplotlib.patches import Rectangle
from matplotlib.ticker import NullLocator

from aprec_like.errors import InputError
from aprec_like.types import Array, Json
from evaluation.analysis.comparison import ALPHA
from evaluation.analysis.significance import correct, paired_test
from evaluation.figures.style import legend_below, looks_of, make_figure, styled
from evaluation.results.load import LoadedRuns, ModelResults

MAX_METRICS = 2
CHOSEN = "#d55e00"
"""The colour of the frame around what validation chooses."""


@dataclass(frozen=True, eq=False)
class Grid:
    """Models of one architecture with gBCE, by number of negatives and calibration.

    Args:
        architecture: its class.
        negatives: the k, ascending.
        calibrations: the t, ascending.
        models: by (k, t); cells may be missing while a run goes on.
    """

    architecture: str
    negatives: tuple[int, ...]
    calibrations: tuple[float, ...]
    models: Mapping[tuple[int, float], ModelResults]

    @property
    def plainest(self) -> tuple[int, float]:
        """The cell with the fewest negatives and the least calibration: SASRec, if they are 1 and 0."""
        return self.negatives[0], self.calibrations[0]

    def chosen(self) -> tuple[tuple[int, float], float] | None:
        """The cell with the best validation value, and that value; `None` without validation."""
        values = {cell: model.best_validation for cell, model in self.models.items()}
        known = {cell: value for cell, value in values.items() if value is not None}
        return max(known.items(), key=lambda entry: entry[1]) if known else None


def find_grids(runs: LoadedRuns) -> list[Grid]:
    """The grids that a run's models form: at least two numbers of negatives by two calibrations."""
    cells: dict[str, dict[tuple[int, float], ModelResults]] = {}
    for model in runs.models:
        loss = model.settings.get("loss", {})
        if loss.get("class") == "GBCE":
            of_architecture = cells.setdefault(model.settings["model"]["class"], {})
            cell = (int(loss["num_negatives"]), float(loss["calibration"]))
            if cell in of_architecture:
                return []  # something else varies too: there is no grid of the two alone
            of_architecture[cell] = model
    grids = [
        Grid(architecture, tuple(sorted({k for k, _ in models})), tuple(sorted({t for _, t in models})), models)
        for architecture, models in cells.items()
    ]
    return [
        grid
        for grid in grids
        if min(len(grid.negatives), len(grid.calibrations)) > 1
        and len(grid.models) > max(len(grid.negatives), len(grid.calibrations))
    ]


def significance_of_grid(grid: Grid, metric: str) -> dict[tuple[int, float], float]:
    """P-values against the plainest cell, by cell: paired t-tests, Bonferroni over all other cells."""
    plainest = grid.models.get(grid.plainest)
    if plainest is None:
        return {}
    others = {cell: model for cell, model in grid.models.items() if model is not plainest}
    tests = [paired_test(model.per_user(metric), plainest.per_user(metric)) for model in others.values()]
    return dict(zip(others, correct([test.p_value for test in tests], "bonferroni"), strict=True))


def describe_grid(grid: Grid, metric: str) -> str:
    """Which cell validation chooses, and what it is worth in the test."""
    (k, t), num_tests = grid.plainest, max(0, len(grid.models) - 1)
    tested = f"paired t-test over users, p < {ALPHA:g}, Bonferroni over {num_tests} cells"
    text = f"* differs from k = {k}, t = {t:g} ({tested})."
    if (chosen := grid.chosen()) is None:
        return text
    (k, t), validation = chosen
    value = float(np.mean(grid.models[k, t].per_user(metric)))
    return f"Validation chooses k = {k}, t = {t:g} ({validation:.4f} there); its test {metric} is {value:.4f}. {text}"


@styled
def draw_grid(grid: Grid, metric: str) -> Figure:
    """A cell for every k and t; a star where it differs from the plainest, a frame around validation's choice."""
    shape = (len(grid.calibrations), len(grid.negatives))
    values, p_values = np.full(shape, np.nan), significance_of_grid(grid, metric)
    figure, panels = make_figure(1.6 + 0.8 * shape[1], 1.2 + 0.55 * shape[0])
    axes = panels[0][0]
    for cell, model in grid.models.items():
        values[_place(grid, cell)] = float(np.mean(model.per_user(metric)))
    image = axes.imshow(values, cmap="viridis", aspect="auto", origin="lower")
    axes.grid(False)
    low, high = float(np.nanmin(values)), float(np.nanmax(values))
    for cell in grid.models:
        row, column = _place(grid, cell)
        mark = "*" if p_values.get(cell, 1.0) < ALPHA else ""
        colour = "black" if values[row, column] > low + 0.55 * (high - low) else "white"
        axes.text(column, row, f"{values[row, column]:.3f}{mark}", ha="center", va="center", color=colour, fontsize=8)
    if (chosen := grid.chosen()) is not None:
        row, column = _place(grid, chosen[0])
        corner = (column - 0.47, row - 0.47)
        axes.add_patch(Rectangle(corner, 0.94, 0.94, fill=False, edgecolor=CHOSEN, linewidth=2))
    axes.set_xticks(range(shape[1]), [str(k) for k in grid.negatives])
    axes.set_yticks(range(shape[0]), [f"{t:g}" for t in grid.calibrations])
    axes.set_xlabel("number of negatives k")
    axes.set_ylabel("calibration t")
    axes.set_title(f"{grid.architecture}, {metric}")
    axes.tick_params(length=0)
    figure.colorbar(image)
    return figure


def _place(grid: Grid, cell: tuple[int, float]) -> tuple[int, int]:
    return grid.calibrations.index(cell[1]), grid.negatives.index(cell[0])


@dataclass(frozen=True, eq=False)
class Series:
    """One loss of one architecture with growing numbers of negatives."""

    architecture: str
    loss: str
    negatives: Array
    models: list[ModelResults]


def find_series(runs: LoadedRuns) -> list[Series]:
    """Losses with at least two numbers of negatives, each once: where one comes twice, something else varies too."""
    found: dict[tuple[str, str], list[ModelResults]] = {}
    for model in runs.models:
        if model.settings.get("class") == "Trained" and "num_negatives" in model.settings["loss"]:
            found.setdefault((model.settings["model"]["class"], loss_family(model.settings)), []).append(model)
    series = []
    for key, models in found.items():
        models = sorted(models, key=_num_negatives)
        negatives = np.array([_num_negatives(model) for model in models])
        if len(models) > 1 and len(np.unique(negatives)) == len(models):
            series.append(Series(*key, negatives, models))
    return series


def loss_family(settings: Json) -> str:
    """The loss of a model and the law of its negatives, whatever their number."""
    loss, law = settings["loss"], settings["negatives"]
    parts = [f"gBCE, t = {loss['calibration']:g}" if loss["class"] == "GBCE" else str(loss["class"])]
    if law["shared_by"] != "position":
        parts.append(f"shared by {law['shared_by']}")
    parts += [name.replace("_", " ") for name in ("reject_positive", "reject_history", "by_popularity") if law[name]]
    return ", ".join(parts)


def _num_negatives(model: ModelResults) -> int:
    return int(model.settings["loss"]["num_negatives"])


@styled
def draw_series(series: Sequence[Series], metrics: Sequence[str]) -> Figure:
    """Metrics against the number of negatives: one row of panels per architecture, one line per loss."""
    if not series:
        raise InputError("a figure of losses needs one with at least two numbers of negatives")
    architectures = list(dict.fromkeys(one.architecture for one in series))
    looks = looks_of(dict.fromkeys(one.loss for one in series))
    shown = list(metrics)[:MAX_METRICS]
    figure, panels = make_figure(3.6 * len(shown), 2.5 * len(architectures), len(architectures), len(shown))
    for one in series:
        look = looks[one.loss]
        for axes, metric in zip(panels[architectures.index(one.architecture)], shown, strict=True):
            values = [float(np.mean(model.per_user(metric))) for model in one.models]
            axes.plot(one.negatives, values, color=look.colour, marker=look.marker, linestyle=look.line, label=one.loss)
            axes.set_xscale("log", base=2)
            axes.set_xticks(one.negatives, [str(k) for k in one.negatives])
            axes.xaxis.set_minor_locator(NullLocator())
            axes.set_ylabel(metric)
            axes.set_title(one.architecture)
            axes.set_xlabel("number of negatives k")
    figure.align_ylabels()
    legend_below(figure)
    return figure
