"""How the cost of a training step grows with the catalogue, the length of sequences and the number of negatives."""

from __future__ import annotations

import dataclasses
from dataclasses import dataclass
from typing import Any

import numpy as np
from matplotlib.figure import Figure

from aprec_like.interactions import Interactions
from evaluation.figures.style import legend_below, looks_of, make_figure, plain_numbers, styled
from evaluation.table import Table

SWEEPS: dict[str, tuple[int, ...]] = {
    "items": (1_000, 10_000, 100_000, 1_271_638),
    "length": (25, 50, 100, 200),
    "negatives": (4, 16, 64, 256),
}
"""What is varied, one at a time: the catalogue (up to Gowalla's), the sequences, the negatives per target."""

TITLES = {"items": "Items", "length": "Length of sequences", "negatives": "Negatives per target"}


@dataclass(frozen=True)
class Size:
    """One point of a sweep; what is not varied is as in the recipe, the catalogue 10,000 items."""

    varied: str
    value: int

    def applied(self, trained: Any) -> tuple[Any, Interactions]:
        """The model at this size, and random full-length sequences of this size for it to train on."""
        model, loss = trained.model, trained.loss
        if self.varied == "length":
            model = dataclasses.replace(model, max_length=self.value)
        if self.varied == "negatives":
            loss = dataclasses.replace(loss, num_negatives=self.value)
        num_items = self.value if self.varied == "items" else 10_000
        data = random_sequences(num_items, 2 * trained.training.batch_size, getattr(model, "max_length", 50) + 1)
        return dataclasses.replace(trained, model=model, loss=loss), data


def sizes_for(trained: Any) -> list[Size]:
    """The sizes at which a model can be measured: one without sequences or negatives has none to vary."""
    applicable = ["items"]
    applicable += ["length"] if hasattr(trained.model, "max_length") else []
    applicable += ["negatives"] if hasattr(trained.loss, "num_negatives") else []
    return [Size(varied, value) for varied in applicable for value in SWEEPS[varied]]


def random_sequences(num_items: int, num_users: int, length: int) -> Interactions:
    """Sequences of uniformly drawn items: their content does not matter to the cost."""
    items = np.random.default_rng(0).integers(num_items, size=num_users * length)
    return Interactions.from_ids(np.repeat(np.arange(num_users), length), items, item_ids=np.arange(num_items))


Measured = dict[str, dict[str, dict[int, dict[str, float]]]]
"""Seconds and memory by model, by what is varied, by its value."""


def growth_table(measured: Measured) -> Table:
    """One line per model and size."""
    lines = [
        [name, TITLES[varied], f"{value:,}", f"{found['step_seconds']:.3f}", f"{found['peak_memory_gib']:.2f}"]
        for name, sweeps in measured.items()
        for varied, values in sweeps.items()
        for value, found in values.items()
    ]
    return Table("growth", ["Model", "Varied", "Value", "Step, s", "Memory, GiB"], [lines])


@styled
def draw_growth(measured: Measured) -> Figure:
    """Seconds per step and peak memory against what is varied, all axes logarithmic."""
    shown = [varied for varied in TITLES if any(varied in sweeps for sweeps in measured.values())]
    rows = (("step_seconds", "seconds per step"), ("peak_memory_gib", "peak memory, GiB"))
    figure, panels = make_figure(2.9 * len(shown), 4.4, len(rows), len(shown), sharex="col", sharey="row")
    for line, (key, title) in zip(panels, rows, strict=True):
        line[0].set_ylabel(title)
        for axes, varied in zip(line, shown, strict=True):
            _draw_panel(axes, measured, varied, key)
    for axes, varied in zip(panels[-1], shown, strict=True):
        axes.set_xlabel(TITLES[varied].lower())
    legend_below(figure)
    return figure


def _draw_panel(axes: Any, measured: Measured, varied: str, key: str) -> None:
    for name, look in looks_of(measured).items():
        points = measured[name].get(varied, {})
        values = [found[key] for found in points.values()]
        axes.plot([*points], values, color=look.colour, marker=look.marker, linestyle=look.line, label=name)
    axes.set_xscale("log")
    axes.set_yscale("log")
    plain_numbers(axes.xaxis, axes.yaxis)
