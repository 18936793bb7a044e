"""Minutes of training until the validation metric reaches given values."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pandas as pd

from aprec_like.errors import InputError
from evaluation.results.load import LoadedRuns
from evaluation.table import Table, TableRow


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
