"""How long models trained until they were good."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pandas as pd

from aprec_like.errors import InputError
from evaluation.results.load import LoadedRuns
from evaluation.table import Line, Table


def time_table(runs: LoadedRuns, targets: Sequence[float]) -> Table:
    """Minutes of training, validation included, until the validation metric first reached each target.

    Means over seeds; a target that one of them never reached has no time. Models that were not validated are left out.
    """
    lines: list[Line] = []
    metrics: dict[str, None] = {}
    for model in runs.models:
        histories = [folder.read_history().dropna(subset="validation") for folder in model.folders]
        if not histories or any(history.empty for history in histories):
            continue
        metrics[model.settings["training"]["early_stopping"]["metric"]] = None
        best = float(np.mean([history["validation"].max() for history in histories]))
        total = float(np.mean([history["seconds"].iloc[-1] for history in histories])) / 60
        lines.append([model.name, *(_minutes(histories, target) for target in targets), f"{best:.4f}", f"{total:.1f}"])
    if not lines:
        raise InputError(f"{runs.title}: no finished model was validated while it trained")
    metric = " or ".join(metrics)
    return Table(
        label="time",
        header=["Model", *(f"Minutes to {target:g}" for target in targets), f"Best {metric}", "Minutes in all"],
        blocks=[lines],
        caption=f"Minutes of training until {metric} of the validation users reached a value; empty where it did not.",
    )


def _minutes(histories: Sequence[pd.DataFrame], target: float) -> str:
    reached = [history.loc[history["validation"] >= target, "seconds"] for history in histories]
    if any(seconds.empty for seconds in reached):
        return ""
    return f"{np.mean([seconds.iloc[0] for seconds in reached]) / 60:.1f}"
