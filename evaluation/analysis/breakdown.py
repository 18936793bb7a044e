"""Where differences between models come from: architecture and loss, groups of users, and the items they recommend."""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import pandas as pd

from aprec_like.errors import InputError
from aprec_like.types import Array, Json
from evaluation.analysis.comparison import Rules
from evaluation.analysis.metric_tests import MetricTests
from evaluation.analysis.significance import Interval, correct_tests, mean_interval
from evaluation.results.load import LoadedRuns, ModelResults
from evaluation.table import Entry, Table, TableRow

NUM_BINS = 4
"""Groups of users by quantiles."""
CUTOFF = 10


def effects_table(runs: LoadedRuns, metric: str, rules: Rules) -> Table:
    """Return the table of architectures by losses with the tested effect of changing one while the other is fixed."""
    grid = _model_grid(runs)
    rows, columns = (list(dict.fromkeys(names)) for names in zip(*grid, strict=True))
    steps = [((row, columns[0]), (row, column)) for row in rows for column in columns[1:]]
    steps += [((rows[0], column), (row, column)) for column in columns for row in rows[1:]]
    models = MetricTests(runs.tested_models, metric)
    tests = {step: models.test(grid[step[1]], grid[step[0]], rules.test) for step in steps}
    p_corrected = correct_tests(tests, rules.correction)

    def effect(before: tuple[str, str], after: tuple[str, str]) -> Entry:
        start = float(np.mean(grid[before].per_user(metric)))
        relative = tests[before, after].difference.mean / start if start else float("nan")
        return Entry(f"{relative:+.1%}", mark="*" if p_corrected[before, after] < rules.alpha else "")

    def value(row: str, column: str) -> str:
        return f"{np.mean(grid[row, column].per_user(metric)):.4f}"

    in_grid = {model.name for model in grid.values()}
    others = [model.name for model in runs.tested_models if model.name not in in_grid]
    across = [f"{columns[0]} to {column}" for column in columns[1:]]
    body: list[TableRow] = [
        [
            row,
            *(value(row, column) for column in columns),
            *(effect((row, columns[0]), (row, column)) for column in columns[1:]),
        ]
        for row in rows
    ]
    down: list[TableRow] = [
        [f"{rows[0]} to {row}", *(effect((rows[0], column), (row, column)) for column in columns), *[""] * len(across)]
        for row in rows[1:]
    ]
    return Table(
        label=f"{runs.title}-effects-{metric}",
        header=[metric, *columns, *across],
        blocks=[body, down],
        caption=f"Effects on {metric}, relative to where the step begins; "
        f"{rules.explain_star(f'{len(steps)} steps', models.scope(rules.test))}"
        + (f"; not in this grid: {', '.join(others)}." if others else "."),
    )


def _model_grid(runs: LoadedRuns) -> dict[tuple[str, str], ModelResults]:
    """Return the largest part of the trained models in which every architecture has every loss, by both names.

    Of several models with the same architecture and loss the first is taken. Raises `InputError` if there are not two
    architectures with two losses in common.
    """
    found: dict[tuple[str, str], ModelResults] = {}
    for model in runs.models:
        if model.settings.get("class") == "Trained":
            found.setdefault((model.settings["model"]["class"], _loss_name(model.settings["loss"])), model)
    architectures, losses = (list(dict.fromkeys(key[place] for key in found)) for place in (0, 1))
    best: dict[tuple[str, str], ModelResults] = {}
    for size in range(2, len(architectures) + 1):
        for chosen in itertools.combinations(architectures, size):
            common = [loss for loss in losses if all((each, loss) in found for each in chosen)]
            if len(common) >= 2 and size * len(common) > len(best):
                best = {(each, loss): found[each, loss] for each in chosen for loss in common}
    if not best:
        raise InputError(
            "effects need every architecture with every loss, at least two of each, finished. "
            f"Received: {', '.join(' with '.join(key) for key in found) or 'none'}"
        )
    return best


def _loss_name(loss: Json) -> str:
    count = loss.get("num_negatives")
    calibration = f", t={loss['calibration']:g}" if "calibration" in loss else ""
    return loss["class"] + (f"(k={count}{calibration})" if count else "")


def beyond_accuracy_table(runs: LoadedRuns, cutoff: int = CUTOFF) -> Table:
    """Return the share of the catalogue that the top items of all users cover, and the popularity of these items."""
    items = runs.folders[0].read_items()
    popularity_ranks = items["count"].rank(ascending=False, method="average").set_axis(items["item"])
    rows: list[TableRow] = []
    for model in runs.models:
        frames = [folder.read_top_items() for folder in model.folders]
        tops = [frame.loc[frame["position"] <= cutoff, "item"] for frame in frames]
        if tops:
            coverage = np.mean([top.nunique() / len(items) for top in tops])
            popularity = np.mean([top.map(popularity_ranks).mean() for top in tops])
            rows.append([model.name, f"{coverage:.1%}", f"{popularity:,.1f}"])
    return Table(
        label=f"{runs.title}-beyond-accuracy",
        header=["Model", f"Coverage@{cutoff}", f"Popularity rank@{cutoff}"],
        blocks=[rows],
        caption=f"Coverage: share of the {len(items):,} items that stand in someone's first {cutoff}; popularity rank: "
        "mean place, 1 being the most popular, of the items that do.",
    )


@dataclass(frozen=True)
class Stratum:
    """A group of users, and the difference of two models over them.

    Args:
        by: what the users are grouped by.
        bounds: smallest and largest value in the group.
        num_users: number of users.
        difference: mean difference and its 95 % interval.
    """

    by: str
    bounds: tuple[float, float]
    num_users: int
    difference: Interval


STRATA = {
    "history_length": "history length",
    "target_count": "popularity of the target",
    "activity": "interactions per day",
}
"""Columns of cases.parquet that users are grouped by, with their titles."""


def stratify(runs: LoadedRuns, metric: str, first: str, second: str) -> list[Stratum]:
    """Return the difference of two models in groups of users by each of `STRATA` that the results folder has."""
    cases = runs.folders[0].read_cases()
    differences = runs.find(first).per_user(metric) - runs.find(second).per_user(metric)
    strata = []
    for column, title in STRATA.items():
        if column in cases:
            values = cases[column].to_numpy()
            for users in _quantile_bins(values):
                bounds = (float(values[users].min()), float(values[users].max()))
                strata.append(Stratum(title, bounds, len(users), mean_interval(differences[users])))
    return strata


def strata_table(strata: Sequence[Stratum], metric: str, first: str, second: str) -> Table:
    """Return a table with one row per group of users."""
    blocks = [
        [
            [
                title,
                f"{stratum.bounds[0]:g} to {stratum.bounds[1]:g}",
                f"{stratum.num_users:,}",
                f"{stratum.difference.mean:+.4f}",
                f"{stratum.difference.low:+.4f} to {stratum.difference.high:+.4f}",
            ]
            for stratum in group
        ]
        for title, group in itertools.groupby(strata, key=lambda stratum: stratum.by)
    ]
    return Table(
        label=f"why-{metric}",
        header=["By", "From", "Users", f"{first} minus {second}", "95 % interval"],
        blocks=blocks,
        caption=f"{metric} of {first} minus that of {second} among users in quarters by what they are like; intervals "
        "are not corrected for their number.",
    )


def _quantile_bins(values: Array) -> list[Array]:
    """Return the indices of up to `NUM_BINS` groups of about equal size; equal values are in one group."""
    codes = pd.qcut(values, NUM_BINS, labels=False, duplicates="drop")
    return [np.flatnonzero(codes == code) for code in np.unique(codes)]
