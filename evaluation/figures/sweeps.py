"""Figures of runs that vary the loss: the grid of negatives and calibration (the gSASRec paper's Figure 3), and
losses against the number of negatives (Figure 4)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np
from matplotlib.figure import Figure
from matplotlib.patches import Rectangle
from matplotlib.ticker import NullLocator

from aprec_like.errors import InputError
from aprec_like.losses import Loss
from aprec_like.recipe_classes import LOSS_CLASSES
from aprec_like.settings import restore
from aprec_like.types import Array, Json
from evaluation.analysis.comparison import ALPHA
from evaluation.analysis.metric_tests import MetricTests
from evaluation.analysis.significance import PairedTest, correct_tests
from evaluation.figures.style import add_legend_below, assign_styles, make_figure, styled
from evaluation.results.load import LoadedRuns, ModelResults

Cell = tuple[int, float]
"""A number of negatives k and a calibration t."""

MAX_METRICS = 2
SELECTED_COLOUR = "#d55e00"
"""Colour of the frame around the cell with the best validation value."""


@dataclass(frozen=True, eq=False)
class Grid:
    """Models of one architecture with a calibrated loss (gBCE), by number of negatives k and calibration t.

    Args:
        architecture: class name.
        negatives: values of k, ascending.
        calibrations: values of t, ascending.
        models: by (k, t); unfinished models are missing.
    """

    architecture: str
    negatives: tuple[int, ...]
    calibrations: tuple[float, ...]
    models: Mapping[Cell, ModelResults]

    @property
    def reference(self) -> Cell:
        """The cell with the smallest k and t, which others are tested against; k = 1 and t = 0 is SASRec."""
        return self.negatives[0], self.calibrations[0]

    def selected(self) -> tuple[Cell, float] | None:
        """Return the cell with the best validation value, and this value; `None` without validation."""
        values = {cell: model.best_validation for cell, model in self.models.items()}
        known = {cell: value for cell, value in values.items() if value is not None}
        return max(known.items(), key=lambda entry: entry[1]) if known else None


def find_grids(runs: LoadedRuns) -> list[Grid]:
    """Return the grids of a run, by architecture: at least two values of k by two values of t.

    None if a pair (k, t) occurs twice: then another setting varies too.
    """
    cells: dict[str, dict[Cell, ModelResults]] = {}
    for model in runs.models:
        loss = model.settings.get("loss", {})
        if {"num_negatives", "calibration"} <= loss.keys():
            same_architecture = cells.setdefault(model.settings["model"]["class"], {})
            cell = (int(loss["num_negatives"]), float(loss["calibration"]))
            if cell in same_architecture:
                return []
            same_architecture[cell] = model
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


def grid_p_values(grid: Grid, metric: str) -> dict[Cell, float]:
    """Return one-sided p-values of paired t-tests that other cells beat the reference, Bonferroni-corrected."""
    reference = grid.models.get(grid.reference)
    if reference is None:
        return {}
    models = MetricTests(list(grid.models.values()), metric)
    tests = {cell: models.test(model, reference) for cell, model in grid.models.items() if model is not reference}
    return correct_tests({cell: _one_sided(test) for cell, test in tests.items()}, "bonferroni")


def _one_sided(test: PairedTest) -> PairedTest:
    """Return the test of whether the first model is better."""
    half = test.p_value / 2
    return replace(test, p_value=half if test.difference.mean > 0 else 1 - half)


def describe_grid(grid: Grid, metric: str) -> str:
    """Return sentences on the cell that validation selects, its test value, and the tests of the grid."""
    (k, t), num_tests = grid.reference, max(0, len(grid.models) - 1)
    scope = MetricTests(list(grid.models.values()), metric).scope("paired-t")
    tested = f"one-sided paired t-test {scope}, p < {ALPHA:g}, Bonferroni over {num_tests} cells"
    text = f"* better than k = {k}, t = {t:g} ({tested})."
    if (selected := grid.selected()) is None:
        return text
    (k, t), validation = selected
    value = float(np.mean(grid.models[k, t].per_user(metric)))
    return f"Validation chooses k = {k}, t = {t:g} ({validation:.4f} there); its test {metric} is {value:.4f}. {text}"


@styled
def draw_grid(grid: Grid, metric: str) -> Figure:
    """Draw the metric for every k and t; stars mark cells that beat the reference, a frame the one of validation."""
    shape = (len(grid.calibrations), len(grid.negatives))
    values, p_values = np.full(shape, np.nan), grid_p_values(grid, metric)
    figure, panels = make_figure(1.6 + 0.8 * shape[1], 1.2 + 0.55 * shape[0])
    axes = panels[0][0]
    for cell, model in grid.models.items():
        values[_index(grid, cell)] = float(np.mean(model.per_user(metric)))
    image = axes.imshow(values, cmap="viridis", aspect="auto", origin="lower")
    axes.grid(False)
    low, high = float(np.nanmin(values)), float(np.nanmax(values))
    for cell in grid.models:
        row, column = _index(grid, cell)
        mark = "*" if p_values.get(cell, 1.0) < ALPHA else ""
        colour = "black" if values[row, column] > low + 0.55 * (high - low) else "white"
        axes.text(column, row, f"{values[row, column]:.3f}{mark}", ha="center", va="center", color=colour, fontsize=8)
    if (selected := grid.selected()) is not None:
        row, column = _index(grid, selected[0])
        corner = (column - 0.47, row - 0.47)
        axes.add_patch(Rectangle(corner, 0.94, 0.94, fill=False, edgecolor=SELECTED_COLOUR, linewidth=2))
    axes.set_xticks(range(shape[1]), [str(k) for k in grid.negatives])
    axes.set_yticks(range(shape[0]), [f"{t:g}" for t in grid.calibrations])
    axes.set_xlabel("number of negatives k")
    axes.set_ylabel("calibration t")
    axes.set_title(f"{grid.architecture}, {metric}")
    axes.tick_params(length=0)
    figure.colorbar(image)
    return figure


def _index(grid: Grid, cell: Cell) -> tuple[int, int]:
    """Return the (row, column) of a cell in the figure."""
    return grid.calibrations.index(cell[1]), grid.negatives.index(cell[0])


@dataclass(frozen=True, eq=False)
class Sweep:
    """Models of one architecture and loss with different numbers of negatives, ascending."""

    architecture: str
    loss: str
    negatives: Array
    models: list[ModelResults]


def find_sweeps(runs: LoadedRuns) -> list[Sweep]:
    """Return the sweeps of a run: losses with at least two numbers of negatives.

    A loss is left out if a number occurs twice: then another setting varies too.
    """
    groups: dict[tuple[str, str], list[ModelResults]] = {}
    for model in runs.models:
        if model.settings.get("class") == "Trained" and "num_negatives" in model.settings["loss"]:
            groups.setdefault((model.settings["model"]["class"], describe_loss(model.settings)), []).append(model)
    sweeps = []
    for key, models in groups.items():
        models = sorted(models, key=_num_negatives)
        negatives = np.array([_num_negatives(model) for model in models])
        if len(models) > 1 and len(np.unique(negatives)) == len(models):
            sweeps.append(Sweep(*key, negatives, models))
    return sweeps


def describe_loss(settings: Json) -> str:
    """Return the loss of a model and how its negatives are sampled, without their number."""
    loss, sampling = settings["loss"], settings["negatives"]
    parts = [_loss_label(loss)]
    if sampling["shared_by"] != "position":
        parts.append(f"shared by {sampling['shared_by']}")
    rules = ("reject_positive", "reject_history", "by_popularity")
    return ", ".join([*parts, *(rule.replace("_", " ") for rule in rules if sampling[rule])])


def _loss_label(settings: Json) -> str:
    try:
        loss: Loss = restore(settings, LOSS_CLASSES)
        return loss.label
    except InputError:  # a loss that the recipe defines
        return str(settings["class"])


def _num_negatives(model: ModelResults) -> int:
    return int(model.settings["loss"]["num_negatives"])


@styled
def draw_sweeps(sweeps: Sequence[Sweep], metrics: Sequence[str]) -> Figure:
    """Draw metrics against the number of negatives: one row of panels per architecture, one line per loss."""
    if not sweeps:
        raise InputError("a figure of losses needs one with at least two numbers of negatives")
    architectures = list(dict.fromkeys(sweep.architecture for sweep in sweeps))
    styles = assign_styles(dict.fromkeys(sweep.loss for sweep in sweeps))
    shown = list(metrics)[:MAX_METRICS]
    figure, panels = make_figure(3.6 * len(shown), 2.5 * len(architectures), len(architectures), len(shown))
    for sweep in sweeps:
        options = styles[sweep.loss].options
        for axes, metric in zip(panels[architectures.index(sweep.architecture)], shown, strict=True):
            values = [float(np.mean(model.per_user(metric))) for model in sweep.models]
            axes.plot(sweep.negatives, values, **options, label=sweep.loss)
            axes.set_xscale("log", base=2)
            axes.set_xticks(sweep.negatives, [str(k) for k in sweep.negatives])
            axes.xaxis.set_minor_locator(NullLocator())
            axes.set_ylabel(metric)
            axes.set_title(sweep.architecture)
            axes.set_xlabel("number of negatives k")
    figure.align_ylabels()
    add_legend_below(figure)
    return figure
