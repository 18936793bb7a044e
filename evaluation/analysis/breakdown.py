"""Where differences between models come from: their settings, groups of users, and the items they recommend."""

from __future__ import annotations

import itertools
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import pandas as pd

from aprec_like.errors import InputError
from aprec_like.types import Array, Json
from evaluation.analysis.comparison import Rules
from evaluation.analysis.metric_tests import MetricTests
from evaluation.analysis.significance import Interval, correct_tests, mean_interval
from evaluation.results.load import LoadedRuns, ModelResults
from evaluation.results.store import ModelFolder
from evaluation.table import Entry, Table, TableRow, signed

NUM_BINS = 4
"""Groups of users by quantiles."""
CUTOFF = 10


Cell = tuple[str, str, str]
"""Architecture, learning rate and loss of a model; the learning rate is empty if it is no factor."""


def effects_table(runs: LoadedRuns, metric: str, rules: Rules) -> Table:
    """Return the table of architectures by losses with the tested effect of changing one while the rest is fixed.

    If every combination was trained with several learning rates, they are a third factor: architectures are compared at
    the same learning rate, and learning rates for the same architecture. All steps are one family of tests.
    """
    grid = _model_grid(runs)
    architectures, rates, losses = (list(dict.fromkeys(names)) for names in zip(*grid, strict=True))
    rows = [(architecture, rate) for rate in rates for architecture in architectures]
    across = [((*row, losses[0]), (*row, loss)) for row in rows for loss in losses[1:]]
    row_steps = [((architectures[0], rate), (each, rate)) for rate in rates for each in architectures[1:]]
    row_steps += [((each, rates[0]), (each, rate)) for rate in rates[1:] for each in architectures]
    down = [((*before, loss), (*after, loss)) for before, after in row_steps for loss in losses]
    models = MetricTests(runs.tested_models, metric)
    tests = {step: models.test(grid[step[1]], grid[step[0]], rules.test) for step in (*across, *down)}
    p_corrected = correct_tests(tests, rules.correction)

    def effect(before: Cell, after: Cell) -> Entry:
        start = float(np.mean(grid[before].per_user(metric)))
        relative = tests[before, after].difference.mean / start if start else float("nan")
        return Entry(signed(relative, ".1%"), mark="*" if p_corrected[before, after] < rules.alpha else "")

    def value(cell: Cell) -> str:
        return f"{np.mean(grid[cell].per_user(metric)):.4f}"

    in_grid = {model.name for model in grid.values()}
    others = [model.name for model in runs.tested_models if model.name not in in_grid]
    headings = [f"{losses[0]} to {loss}" for loss in losses[1:]]
    body: list[TableRow] = [
        [
            _row_name(row),
            *(value((*row, loss)) for loss in losses),
            *(effect((*row, losses[0]), (*row, loss)) for loss in losses[1:]),
        ]
        for row in rows
    ]
    steps: list[TableRow] = [
        [
            f"{_row_name(before)} to {_row_name(after)}",
            *(effect((*before, loss), (*after, loss)) for loss in losses),
            *[""] * len(headings),
        ]
        for before, after in row_steps
    ]
    return Table(
        label=f"{runs.title}-effects-{metric}",
        header=[metric, *losses, *headings],
        blocks=[body, steps],
        caption=f"Effects on {metric}, relative to where the step begins; "
        f"{rules.explain_star(f'{len(tests)} steps', models.scope(rules.test))}"
        + (f"; not in this grid: {', '.join(others)}." if others else "."),
    )


def _row_name(row: tuple[str, str]) -> str:
    """Return the architecture, and the learning rate if it is a factor."""
    architecture, rate = row
    return f"{architecture}, {rate}" if rate else architecture


def _model_grid(runs: LoadedRuns) -> dict[Cell, ModelResults]:
    """Return the largest part of the trained models in which every architecture has every loss, by their names.

    Learning rates are a factor if at least two of them are crossed with both. Of several models with the same factors
    the first is taken. Raises `InputError` if there are not two architectures with two losses in common.
    """
    trained = [model for model in runs.models if model.settings.get("class") == "Trained"]
    for by_rate in (True, False):
        found: dict[Cell, ModelResults] = {}
        for model in trained:
            rate = _rate_name(model.settings) if by_rate else ""
            found.setdefault((model.settings["model"]["class"], rate, _loss_name(model.settings["loss"])), model)
        if best := _largest_crossed_part(found, min_rates=2 if by_rate else 1):
            return best
    names = (f"{architecture} with {loss}" for architecture, _, loss in found)
    raise InputError(
        "effects need every architecture with every loss, at least two of each, finished. "
        f"Received: {', '.join(names) or 'none'}"
    )


def _largest_crossed_part(found: Mapping[Cell, ModelResults], min_rates: int) -> dict[Cell, ModelResults]:
    """Return the largest part in which at least two architectures, two losses and some learning rates are crossed."""
    architectures, rates, losses = (list(dict.fromkeys(key[place] for key in found)) for place in range(3))
    best: dict[Cell, ModelResults] = {}
    for some, some_rates in itertools.product(_subsets(architectures, 2), _subsets(rates, min_rates)):
        rows = list(itertools.product(some, some_rates))
        common = [loss for loss in losses if all((*row, loss) in found for row in rows)]
        if len(common) >= 2 and len(rows) * len(common) > len(best):
            best = {(*row, loss): found[*row, loss] for row in rows for loss in common}
    return best


def _subsets(names: Sequence[str], min_size: int) -> list[tuple[str, ...]]:
    sizes = range(min_size, len(names) + 1)
    return [chosen for size in sizes for chosen in itertools.combinations(names, size)]


def _rate_name(settings: Json) -> str:
    """Return the learning rate of a trained model as a text, "unknown" if its settings have none."""
    rate = ((settings.get("training") or {}).get("optimizer") or {}).get("learning_rate", "unknown")
    return f"learning rate {rate:g}" if isinstance(rate, (int, float)) else str(rate)


def _loss_name(loss: Json) -> str:
    count = loss.get("num_negatives")
    calibration = f", t={loss['calibration']:g}" if "calibration" in loss else ""
    return loss["class"] + (f"(k={count}{calibration})" if count else "")


@dataclass(frozen=True)
class BeyondAccuracy:
    """What the top items of all users are like; means over seeds.

    Args:
        coverage: share of the catalogue that stands in someone's first items.
        popularity_rank: mean place of these items by popularity, 1 being the most popular.
    """

    coverage: float
    popularity_rank: float


def measure_beyond_accuracy(runs: LoadedRuns, cutoff: int = CUTOFF) -> dict[str, BeyondAccuracy]:
    """Return coverage and popularity of the top items of every model that ranked items, by its name."""
    items = runs.folders[0].read_items(["item", "count"])
    catalogue, ranks = pd.Index(items["item"]), items["count"].rank(ascending=False, method="average").to_numpy()
    measured = {}
    for model in runs.models:
        counts = [_count_recommended(folder, catalogue, cutoff) for folder in model.folders]
        if seeds := [count for count in counts if count.any()]:
            coverage = np.mean([np.count_nonzero(count) / len(items) for count in counts])
            popularity = np.mean([np.average(ranks, weights=count) for count in seeds])
            measured[model.name] = BeyondAccuracy(float(coverage), float(popularity))
    return measured


def _count_recommended(folder: ModelFolder, catalogue: pd.Index, cutoff: int) -> Array:
    """Return the (items,) numbers of users who have an item among their first ones."""
    counts = np.zeros(len(catalogue), np.int64)
    with folder.open_top_items() as top:
        for positions, rows in top.items(catalogue):
            counts += np.bincount(rows[positions <= cutoff], minlength=len(catalogue))
    return counts


def beyond_accuracy_table(runs: LoadedRuns, measured: Mapping[str, BeyondAccuracy], cutoff: int = CUTOFF) -> Table:
    """Return the share of the catalogue that the top items of all users cover, and the popularity of these items."""
    return Table(
        label=f"{runs.title}-beyond-accuracy",
        header=["Model", f"Coverage@{cutoff}", f"Popularity rank@{cutoff}"],
        blocks=[[[name, f"{each.coverage:.1%}", f"{each.popularity_rank:,.1f}"] for name, each in measured.items()]],
        caption=f"Coverage: share of the {runs.dataset['items']:,} items that stand in someone's first {cutoff}; "
        "popularity rank: mean place, 1 being the most popular, of the items that do.",
    )


@dataclass(frozen=True, eq=False)
class ItemCounts:
    """Numbers of interactions of the items, the most popular first, without items that have none.

    Args:
        places: (n,) places of the items by popularity, from 1.
        counts: (n,) numbers of interactions of these items.
    """

    places: Array
    counts: Array

    def thinned(self, num_places: int) -> ItemCounts:
        """Return at most this many places, evenly spaced on a logarithmic axis, the first and the last among them."""
        chosen = np.unique(np.geomspace(1, len(self.places), num_places).round().astype(np.int64)) - 1
        return self if len(self.places) <= num_places else ItemCounts(self.places[chosen], self.counts[chosen])


def count_items(items: pd.DataFrame) -> ItemCounts:
    """Return the popularity of the items of items.parquet."""
    counts = np.sort(items["count"].to_numpy())[::-1]
    counts = counts[counts > 0] if counts.any() else np.ones(1)
    return ItemCounts(np.arange(1, len(counts) + 1), counts)


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
    cases = runs.folders[0].read_cases(STRATA)
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
                " to ".join(f"{bound:,.0f}" if bound.is_integer() else f"{bound:.3g}" for bound in stratum.bounds),
                f"{stratum.num_users:,}",
                signed(stratum.difference.mean, ".4f"),
                f"{signed(stratum.difference.low, '.4f')} to {signed(stratum.difference.high, '.4f')}",
            ]
            for stratum in group
        ]
        for title, group in itertools.groupby(strata, key=lambda stratum: stratum.by)
    ]
    return Table(
        label=f"why-{metric}",
        header=["By", "Range", "Users", f"{first} minus {second}", "95 % interval"],
        blocks=blocks,
        caption=f"{metric} of {first} minus that of {second} among users in quarters by what they are like; intervals "
        "cover the chance in users alone, not in training, and are not corrected for their number.",
    )


def _quantile_bins(values: Array) -> list[Array]:
    """Return the indices of up to `NUM_BINS` groups of about equal size; equal values are in one group."""
    codes = pd.qcut(values, NUM_BINS, labels=False, duplicates="drop")
    return [np.flatnonzero(codes == code) for code in np.unique(codes)]
