"""Further tables of a comparison: every pair, effects of two choices, the paper's numbers, beyond accuracy, and why."""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import pandas as pd

from aprec_like.errors import InputError
from aprec_like.types import Array, Json
from evaluation.analysis.comparison import Comparison, Rules
from evaluation.analysis.main_table import quoted_digits
from evaluation.analysis.significance import TEST_NAMES, Interval, PairedTest, correct, mean_interval, paired_test
from evaluation.results.load import LoadedRuns, ModelResults
from evaluation.table import Entry, Line, Table

CLOSE = 0.05
"""A relative difference to a paper's number up to which ours is called close."""
NUM_BINS = 4
CUTOFF = 10


@dataclass(frozen=True)
class Pairwise:
    """Every pair of models under one metric: the test and its corrected p-value, by (row, column)."""

    metric: str
    names: list[str]
    tests: dict[tuple[str, str], PairedTest]
    p_corrected: dict[tuple[str, str], float]
    rules: Rules


def compare_pairs(runs: LoadedRuns, metric: str, rules: Rules) -> Pairwise:
    """Test every pair of models; the family is all pairs."""
    models = [model for model in runs.models if not model.is_oracle]
    tests = {
        (one.name, other.name): paired_test(one.per_user(metric), other.per_user(metric), rules.test)
        for one, other in itertools.combinations(models, 2)
    }
    corrected = correct([test.p_value for test in tests.values()], rules.correction)
    return Pairwise(metric, [model.name for model in models], tests, dict(zip(tests, corrected, strict=True)), rules)


def pairwise_table(pairs: Pairwise) -> Table:
    """Row minus column, with a star where the pair differs."""

    def entry(row: str, column: str) -> Entry:
        if row == column:
            return Entry("")
        key, sign = ((row, column), 1) if (row, column) in pairs.tests else ((column, row), -1)
        mark = "*" if pairs.p_corrected[key] < pairs.rules.alpha else ""
        return Entry(f"{sign * pairs.tests[key].difference.mean:+.4f}", mark=mark)

    return Table(
        label=f"pairs-{pairs.metric}",
        header=["", *pairs.names],
        blocks=[[[row, *(entry(row, column) for column in pairs.names)] for row in pairs.names]],
        caption=f"{pairs.metric}, row minus column; * differs ({TEST_NAMES[pairs.rules.test]}, "
        f"p < {pairs.rules.alpha:g}, {pairs.rules.correction} over {len(pairs.tests)} pairs).",
    )


def effects_table(runs: LoadedRuns, metric: str, rules: Rules) -> Table:
    """Architectures by losses: what changing one of the two brings while the other stays, each step tested."""
    grid: dict[tuple[str, str], ModelResults] = {}
    for model in runs.models:
        if model.settings.get("class") == "Trained":
            key = (model.settings["model"]["class"], _loss_name(model.settings["loss"]))
            if key in grid:
                raise InputError(f"effects need one model for each architecture and loss; {' with '.join(key)} has two")
            grid[key] = model
    rows, columns = (list(dict.fromkeys(key[place] for key in grid)) for place in (0, 1))
    if len(rows) < 2 or len(columns) < 2 or len(grid) < len(rows) * len(columns):
        raise InputError(
            "effects need every architecture with every loss, at least two of each, finished. "
            f"Received: {', '.join(' with '.join(key) for key in grid) or 'none'}"
        )
    steps = [((row, columns[0]), (row, column)) for row in rows for column in columns[1:]]
    steps += [((rows[0], column), (row, column)) for column in columns for row in rows[1:]]
    tests = {
        step: paired_test(grid[step[1]].per_user(metric), grid[step[0]].per_user(metric), rules.test) for step in steps
    }
    corrected = dict(zip(steps, correct([tests[step].p_value for step in steps], rules.correction), strict=True))

    def effect(before: tuple[str, str], after: tuple[str, str]) -> Entry:
        start = float(np.mean(grid[before].per_user(metric)))
        relative = tests[before, after].difference.mean / start if start else float("nan")
        return Entry(f"{relative:+.1%}", mark="*" if corrected[before, after] < rules.alpha else "")

    def value(row: str, column: str) -> str:
        return f"{np.mean(grid[row, column].per_user(metric)):.4f}"

    across = [f"{columns[0]} to {column}" for column in columns[1:]]
    body: list[Line] = [
        [
            row,
            *(value(row, column) for column in columns),
            *(effect((row, columns[0]), (row, column)) for column in columns[1:]),
        ]
        for row in rows
    ]
    down: list[Line] = [
        [f"{rows[0]} to {row}", *(effect((rows[0], column), (row, column)) for column in columns), *[""] * len(across)]
        for row in rows[1:]
    ]
    return Table(
        label=f"effects-{metric}",
        header=[metric, *columns, *across],
        blocks=[body, down],
        caption=f"Effects on {metric}, relative to where the step begins; * differs ({TEST_NAMES[rules.test]}, "
        f"p < {rules.alpha:g}, {rules.correction} over {len(steps)} steps).",
    )


def _loss_name(loss: Json) -> str:
    count = loss.get("num_negatives")
    calibration = f", t={loss['calibration']:g}" if "calibration" in loss else ""
    return loss["class"] + (f"(k={count}{calibration})" if count else "")


VERDICTS = ("inside our interval", "within 5 %", "off")


def published_table(comparison: Comparison) -> tuple[Table, bool]:
    """Ours beside the paper's, with a verdict for each number; says whether none is off."""
    lines: list[Line] = []
    verdicts = []
    for row in comparison.rows:
        for metric, cell in row.cells.items():
            if cell.published is not None:
                relative = cell.value.mean / cell.published - 1 if cell.published else float("inf")
                digits = quoted_digits(comparison, metric)
                verdicts.append(verdict(cell.value, cell.published, digits))
                interval = f"{cell.value.low:.4f} to {cell.value.high:.4f}"
                numbers = [f"{cell.value.mean:.4f}", interval, f"{cell.published:.{digits}f}", f"{relative:+.1%}"]
                lines.append([row.name, metric, *numbers, verdicts[-1]])
    table = Table(
        label=f"{comparison.run}-published",
        header=["Model", "Metric", "Ours", "95 % interval", "Paper", "Difference", "Verdict"],
        blocks=[lines],
        caption=f"Our means over {comparison.num_users:,} users beside the published numbers.",
    )
    return table, VERDICTS[2] not in verdicts


def verdict(ours: Interval, published: float, digits: int) -> str:
    """What a number published with so many digits is to ours; that it was rounded is not held against it."""
    rounding = 0.5 * 10**-digits
    if ours.low - rounding <= published <= ours.high + rounding:
        return VERDICTS[0]
    return VERDICTS[1] if abs(ours.mean - published) <= CLOSE * published else VERDICTS[2]


def beyond_accuracy_table(runs: LoadedRuns, cutoff: int = CUTOFF) -> Table:
    """How much of the catalogue the first places show, and how popular what they show is."""
    items = runs.folders[0].read_items()
    places = items["count"].rank(ascending=False, method="average").set_axis(items["item"])
    lines = []
    for model in runs.models:
        shown = [folder.read_top_items() for folder in model.folders]
        firsts = [frame.loc[frame["position"] <= cutoff, "item"] for frame in shown]
        if firsts:
            coverage = np.mean([first.nunique() / len(items) for first in firsts])
            popularity = np.mean([first.map(places).mean() for first in firsts])
            lines.append([model.name, f"{coverage:.1%}", f"{popularity:,.1f}"])
    return Table(
        label=f"{runs.title}-beyond-accuracy",
        header=["Model", f"Coverage@{cutoff}", f"Popularity rank@{cutoff}"],
        blocks=[lines],
        caption=f"Coverage: share of the {len(items):,} items that stand in someone's first {cutoff}; popularity rank: "
        "mean place, 1 being the most popular, of the items that do.",
    )


@dataclass(frozen=True)
class Stratum:
    """Users with something in common, and the difference of two models over them."""

    by: str
    bounds: tuple[float, float]
    num_users: int
    difference: Interval


STRATA = {
    "history_length": "history length",
    "target_count": "popularity of the target",
    "activity": "interactions per day",
}


def stratify(runs: LoadedRuns, metric: str, first: str, second: str) -> list[Stratum]:
    """The difference of two models among users with short and long histories, rare and popular targets, and so on."""
    cases = runs.folders[0].read_cases()
    differences = runs.find(first).per_user(metric) - runs.find(second).per_user(metric)
    strata = []
    for column, title in STRATA.items():
        if column in cases:
            values = cases[column].to_numpy()
            for members in _quantile_bins(values):
                inside = values[members]
                bounds = (float(inside.min()), float(inside.max()))
                strata.append(Stratum(title, bounds, len(inside), mean_interval(differences[members])))
    return strata


def strata_table(strata: Sequence[Stratum], metric: str, first: str, second: str) -> Table:
    """One line per group of users."""
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
    """Rows in up to `NUM_BINS` groups of about equal size; equal values stay together."""
    codes = pd.qcut(values, NUM_BINS, labels=False, duplicates="drop")
    return [np.flatnonzero(codes == code) for code in np.unique(codes)]
