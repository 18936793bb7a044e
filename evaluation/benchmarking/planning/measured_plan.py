"""The measured plan of a recipe (`run --dry-run --measure`): memory and minutes per epoch, here and on named GPUs."""

from __future__ import annotations

import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from aprec_like.datasets import Sizes
from aprec_like.devices import device_line
from aprec_like.errors import InputError
from aprec_like.recipe import Recipe, Trained
from aprec_like.types import Json
from evaluation.benchmarking.forecast import DEVICES
from evaluation.benchmarking.measurements import run_measurement
from evaluation.cli import DONE, FAILED
from evaluation.running.plan import describe_plan, gpu_shortages
from evaluation.table import Table, as_text

TITLES = {
    "epoch": "times steps, validation and ranking",
    "step_forecast": "forecasts a step on GPUs",
    "training": "trains two epochs",
}
"""Lines of progress by kind of measurement."""
CAPTION = (
    "This machine: steps, validation and ranking of some batches and users, timed now; memory is the peak of the "
    "process that did so. GPUs: minutes of an epoch's steps by a forecast from data sheets, not measured "
    "(docs/gpu.md)."
)


@dataclass(frozen=True)
class PlanSource:
    """What a plan is of.

    Args:
        recipe: the recipe.
        path: its file.
        data_dir: folder of data files.
        is_smoke: whether the recipe was shrunk.
    """

    recipe: Recipe
    path: Path
    data_dir: Path
    is_smoke: bool = False

    def trained_models(self, names: Sequence[str]) -> dict[str, Trained]:
        """Return the trained ones of some models; raises `InputError` if they can't be measured."""
        if not self.recipe.dataset.is_on_disk(self.data_dir):
            kind = type(self.recipe.dataset).__name__
            raise InputError(f"{kind} is not in {self.data_dir}, and steps are timed on its data; --smoke simulates it")
        models = {name: self.recipe.models[name] for name in names}
        return {name: model for name, model in models.items() if isinstance(model, Trained)}

    def measure(self, kind: str, name: str) -> Json | None:
        """Make a measurement of a model in a process of its own; `None` if it failed."""
        print(f"{name}: {TITLES[kind]}", file=sys.stderr, flush=True)
        return run_measurement(
            {
                "recipe": str(self.path),
                "model": name,
                "data": str(self.data_dir),
                "kind": kind,
                "smoke": self.is_smoke,
            }
        )


def print_measured_plan(source: PlanSource, names: Sequence[str]) -> int:
    """Print the plan, then a table with measured times and memory; returns the exit code."""
    models = source.trained_models(names)
    print(describe_plan(source.recipe, list(names), source.data_dir))
    print(device_line(), file=sys.stderr)
    found: dict[str, Json] = {}
    for name in models:
        epoch, forecast = source.measure("epoch", name), source.measure("step_forecast", name)
        found[name] = {"epoch": epoch, "milliseconds": (forecast or {}).get("milliseconds", {})}
    interactions = source.recipe.load(source.data_dir)
    sizes = Sizes(interactions.num_users, interactions.num_items, interactions.num_interactions)
    print()
    print(as_text(plan_table(models, sizes, found)), end="")
    has_failed = any(values["epoch"] is None or not values["milliseconds"] for values in found.values())
    return FAILED if has_failed else DONE


def plan_table(models: Mapping[str, Trained], sizes: Sizes, found: Mapping[str, Json]) -> Table:
    """Return a table with a row per model. What to change where a model does not fit is said by `describe_plan`.

    Args:
        models: the models by name.
        sizes: of the data.
        found: by model, the values of `measure_epoch` as "epoch" (`None` if it failed), and "milliseconds" of a step by
            name of a GPU.
    """
    rows = []
    for name, model in models.items():
        epoch, milliseconds = found[name]["epoch"] or {}, found[name]["milliseconds"]
        parameters = model.model.num_parameters(sizes.items, sizes.users) + model.prior_start
        row = [
            name,
            f"{parameters:,}",
            _cell(epoch, "steps_per_epoch", "{:,}"),
            _cell(epoch, "peak_memory_gib", "{:.1f}"),
            _cell(epoch, "step_seconds", "{:.4f}"),
            _cell(epoch, "epoch_seconds", "{:.2f}", 60),
            _cell(epoch, "ranking_seconds", "{:.2f}", 60),
        ]
        shortages = gpu_shortages(name, model, sizes)
        for gpu in DEVICES:
            seconds = epoch.get("steps_per_epoch", 0) * milliseconds.get(gpu, 0) / 1e3
            row.append("no room" if gpu in shortages else f"{seconds / 60:.3f}" if seconds else "")
        rows.append(row)
    header = ["Model", "Parameters", "Steps", "Memory, GiB", "Step, s", "Epoch, min", "Ranking, min", *DEVICES]
    spans = (("", 2), ("this machine", 4), ("epoch, min (forecast)", len(DEVICES)))
    return Table("plan", header, [rows], CAPTION, spans=spans)


def _cell(values: Json, name: str, form: str, unit: float = 1) -> str:
    return form.format(values[name] / unit if unit != 1 else values[name]) if name in values else ""
