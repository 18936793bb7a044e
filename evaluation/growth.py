"""How the cost of a training step grows with the catalogue, the length of sequences and the number of negatives."""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import matplotlib as mpl
import numpy as np
from matplotlib.figure import Figure
from matplotlib.ticker import NullFormatter

from aprec_like.interactions import Interactions
from evaluation.documents import write_figure
from evaluation.layout import Table

SWEEPS: dict[str, tuple[int, ...]] = {
    "items": (1_000, 10_000, 100_000, 1_271_638),
    "length": (25, 50, 100, 200),
    "negatives": (4, 16, 64, 256),
}
"""What is varied, one at a time: the catalogue (up to Gowalla's), the sequences, the negatives per target."""

TITLES = {"items": "Items", "length": "Length of sequences", "negatives": "Negatives per target"}
MARKERS = "osD^vX"


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


def draw_growth(path: Path, measured: Measured) -> None:
    """Seconds per step and peak memory against what is varied, all axes logarithmic."""
    shown = [varied for varied in TITLES if any(varied in sweeps for sweeps in measured.values())]
    rows = (("step_seconds", "Seconds per step"), ("peak_memory_gib", "Peak memory, GiB"))
    with mpl.rc_context({"font.size": 9, "axes.spines.top": False, "axes.spines.right": False}):
        figure = Figure(figsize=(3.2 * len(shown), 5.0), layout="constrained")
        panels = figure.subplots(len(rows), len(shown), sharex="col", sharey="row", squeeze=False)
        for line, (key, title) in zip(panels, rows, strict=True):
            line[0].set_ylabel(title)
            for axes, varied in zip(line, shown, strict=True):
                _draw_panel(axes, measured, varied, key)
        for axes, varied in zip(panels[-1], shown, strict=True):
            axes.set_xlabel(TITLES[varied])
        handles, labels = panels[0][0].get_legend_handles_labels()
        figure.legend(handles, labels, loc="outside upper center", ncols=min(4, len(labels)), frameon=False)
        write_figure(path, lambda temporary: figure.savefig(temporary, format=path.suffix[1:], dpi=150))


def _draw_panel(axes: Any, measured: Measured, varied: str, key: str) -> None:
    for number, (name, sweeps) in enumerate(measured.items()):
        points: Sequence[tuple[int, float]] = [(value, found[key]) for value, found in sweeps.get(varied, {}).items()]
        x, y = [point[0] for point in points], [point[1] for point in points]
        axes.plot(x, y, marker=MARKERS[number % len(MARKERS)], markersize=4, label=name, color=f"C{number}")
    axes.set_xscale("log")
    axes.set_yscale("log")
    axes.grid(which="major", color="0.9")
    axes.xaxis.set_minor_formatter(NullFormatter())
