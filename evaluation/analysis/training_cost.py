"""What the training of each model has cost: time, processor and GPU time, energy, memory; minutes to a quality."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd

from aprec_like.errors import InputError
from evaluation.results.load import LoadedRuns, ModelResults
from evaluation.table import Table, TableRow

COST_CAPTION = (
    "Cost of one training with its ranking, mean over seeds, restarts added up: wall clock, processor time over all "
    "cores, time that GPUs were held, energy of the process as CodeCarbon measures or estimates it, and the largest "
    "memory of a process. Not measured: energy needs the extra energy, and results of earlier versions have wall clock "
    "and memory alone."
)
UNKNOWN = "not measured"


@dataclass(frozen=True)
class ModelCost:
    """The cost of a model, mean over seeds; `None` where a seed does not know it.

    Args:
        trainings: number of seeds.
        seconds: wall clock.
        cpu_seconds: processor time over all cores.
        gpu_seconds: time that GPUs were held, over all GPUs.
        energy_kwh: energy in kilowatt-hours.
        memory_gib: peak memory.
        gpu_memory_gib: peak memory of a GPU.
    """

    trainings: int
    seconds: float | None
    cpu_seconds: float | None
    gpu_seconds: float | None
    energy_kwh: float | None
    memory_gib: float | None
    gpu_memory_gib: float | None


def model_costs(runs: LoadedRuns) -> Mapping[str, ModelCost]:
    """Return the cost of every model that was trained or counted here, by name."""
    return {model.name: _model_cost(model) for model in runs.models if model.folders}


def _model_cost(model: ModelResults) -> ModelCost:
    statuses = [folder.status() for folder in model.folders]
    costs = [status.get("cost") or {} for status in statuses]
    return ModelCost(
        trainings=len(statuses),
        seconds=_mean(status.get("seconds_total") for status in statuses),
        cpu_seconds=_mean(cost.get("cpu_seconds") for cost in costs),
        gpu_seconds=_mean(cost.get("gpu_seconds") for cost in costs),
        energy_kwh=_mean(cost.get("energy_kwh") for cost in costs),
        memory_gib=_mean(status.get("peak_memory_gib") for status in statuses),
        gpu_memory_gib=_mean(status.get("peak_gpu_memory_gib") for status in statuses),
    )


def _mean(values: Iterable[Any]) -> float | None:
    """Return the mean; `None` if a value is missing."""
    known = list(values)
    return None if None in known else float(np.mean(known))


def cost_table(runs: LoadedRuns) -> Table:
    """Return a table with the cost of every model; columns on GPUs only where one was used."""
    costs = model_costs(runs)
    if not costs:
        raise InputError(f"{runs.title}: has no finished model whose cost is known")
    has_gpu = any(cost.gpu_seconds or cost.gpu_memory_gib for cost in costs.values())
    rows: list[TableRow] = [
        [
            name,
            f"{cost.trainings}",
            _text(cost.seconds, 60, ".1f"),
            _text(cost.cpu_seconds, 60, ".1f"),
            *([_text(cost.gpu_seconds, 60, ".1f")] if has_gpu else []),
            _text(cost.energy_kwh, 1e-3, ".3g"),
            _text(cost.memory_gib, 1, ".2f"),
            *([_text(cost.gpu_memory_gib, 1, ".2f")] if has_gpu else []),
        ]
        for name, cost in costs.items()
    ]
    gpu_minutes, gpu_memory = (["GPU minutes"], ["GPU memory, GiB"]) if has_gpu else ([], [])
    return Table(
        label=f"{runs.title}-cost",
        header=[
            "Model",
            "Trainings",
            "Minutes",
            "CPU minutes",
            *gpu_minutes,
            "Energy, Wh",
            "Memory, GiB",
            *gpu_memory,
        ],
        blocks=[rows],
        caption=COST_CAPTION,
    )


def _text(value: float | None, unit: float, form: str) -> str:
    return UNKNOWN if value is None else format(value / unit, form)


def time_table(runs: LoadedRuns, targets: Sequence[float]) -> Table:
    """Return a table of the minutes, validation included, until the validation metric first reached each target.

    Minutes are means over seeds; a cell is empty if a seed never reached the target. Models without validation are
    left out.
    """
    rows: list[TableRow] = []
    metrics: dict[str, None] = {}
    for model in runs.models:
        histories = [folder.read_history().dropna(subset="validation") for folder in model.folders]
        if not histories or any(history.empty for history in histories):
            continue
        metrics[model.settings["training"]["early_stopping"]["metric"]] = None
        best = float(np.mean([history["validation"].max() for history in histories]))
        total = float(np.mean([history["seconds"].iloc[-1] for history in histories])) / 60
        minutes = [_minutes_to(histories, target) for target in targets]
        rows.append([model.name, *minutes, f"{best:.4f}", f"{total:.1f}"])
    if not rows:
        raise InputError(f"{runs.title}: no finished model was validated while it trained")
    metric = " or ".join(metrics)
    return Table(
        label=f"{runs.title}-time",
        header=["Model", *(f"Minutes to {target:g}" for target in targets), f"Best {metric}", "Minutes in all"],
        blocks=[rows],
        caption=f"Minutes of training until {metric} of the validation users reached a value; empty where it did not.",
    )


def _minutes_to(histories: Sequence[pd.DataFrame], target: float) -> str:
    reached = [history.loc[history["validation"] >= target, "seconds"] for history in histories]
    if any(seconds.empty for seconds in reached):
        return ""
    return f"{np.mean([seconds.iloc[0] for seconds in reached]) / 60:.1f}"
