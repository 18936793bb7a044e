"""The result of a comparison of models: rules of the tests, cells, rows, and the whole table."""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cached_property
from typing import Literal

from aprec_like.types import Json
from evaluation.analysis.paper_claims import PaperClaims
from evaluation.analysis.significance import TEST_NAMES, Interval, PairedTest
from evaluation.analysis.variance import VarianceComponents
from evaluation.results.load import Caveat, Origin
from evaluation.table_formats import as_html

ALPHA = 0.05
MAX_DIGITS = 4


@dataclass(frozen=True)
class Rules:
    """Settings of the significance tests.

    Args:
        baseline: name of the model that every other is tested against; `None` for the best of each metric.
        test: a key of `significance.TESTS`.
        correction: of p-values for the number of tests: "holm", "bonferroni" or "none".
        alpha: significance level.
    """

    baseline: str | None = None
    test: str = "paired-t"
    correction: str = "holm"
    alpha: float = ALPHA

    def explain_star(self, family: str, scope: str) -> str:
        """Return the part of a caption that explains stars.

        Args:
            family: what p-values are corrected for: "6 pairs".
            scope: what the test covers: "over users and trainings".
        """
        corrected = "not corrected for" if self.correction == "none" else f"{self.correction.capitalize()} over"
        return f"* differs ({TEST_NAMES[self.test]} {scope}, p < {self.alpha:g}, {corrected} {family})"


@dataclass(frozen=True)
class Cell:
    """One model under one metric. The comparator is the baseline, or the best model of the metric.

    Args:
        value: mean over users and its 95 % interval, over users and trainings if several seeds are known.
        seed_std: standard deviation of the mean over seeds; `None` with one seed.
        variance: of the model's values by source: users, trainings, interaction; `None` with one seed.
        comparator: name of the comparator; `None` for the comparator itself.
        test: test of the difference to the comparator; `None` for the comparator itself.
        relative: the difference divided by the comparator's mean; `None` if that is zero.
        p_corrected: p-value of the test, corrected for the number of tests.
        detectable: smallest difference to the comparator that these users can show.
        published: the paper's number; `None` if the recipe has none.
    """

    value: Interval
    seed_std: float | None
    variance: VarianceComponents | None
    comparator: str | None
    test: PairedTest | None
    relative: float | None
    p_corrected: float | None
    detectable: float | None
    published: float | None


@dataclass(frozen=True)
class Row:
    """One finished model: a cell per metric, and the mean time to its best epoch over seeds.

    Args:
        name: name of the model.
        seeds: training seeds.
        cells: by metric.
        seconds_to_best: mean over seeds; `None` for imported results.
        origin: where the results come from.
        caveats: what tables must say about the values.
        tuning: the budget with which the settings were chosen; `None` if they were not tuned.
    """

    name: str
    seeds: tuple[int, ...]
    cells: dict[str, Cell]
    seconds_to_best: float | None
    origin: Origin
    caveats: tuple[Caveat, ...] = ()
    tuning: Json | None = None

    @property
    def label(self) -> str:
        """Name of the model with the marks of its caveats, the first column of the table."""
        marks = ", ".join(caveat.mark for caveat in self.caveats)
        return f"{self.name} ({marks})" if marks else self.name


@dataclass(frozen=True)
class Comparison:
    """The tested results of all models of a run.

    Args:
        run: name of the run.
        metrics: names of the metrics.
        rows: the finished models.
        bounds: the oracle of simulated data, an upper bound: never best, second, or tested.
        literature: quoted numbers by model and metric, never tested.
        remarks: caveats about tests and data; unfinished models, with reasons.
        rules: settings of the tests.
        family_size: number of tests that p-values are corrected for; without a baseline, all pairs of models under all
            metrics, so that the choice of the best is part of the family.
        training_std: standard deviation between trainings by metric, pooled over the models with several seeds; empty
            if there are none: tests and intervals then cover users alone.
        num_users: number of users.
        exclude_seen: whether seen items are left out of the rankings.
        num_candidates: number of sampled items that the sampled metrics rank; `None` without such metrics.
        groups: names of models by group; a table separates groups by rules.
        claims: what the paper reports beside the values of metrics.
        data_sentences: what the notes of a table say about the data: what models learned from.
        choices: what they say about variants of a model: the one that validation chooses.
        dataset: name of the data in captions.
        sample: number of all test users and seed, if those ranked are a random sample of them.
    """

    run: str
    metrics: tuple[str, ...]
    rows: list[Row]
    bounds: list[Row]
    literature: dict[str, dict[str, float]]
    remarks: list[str]
    rules: Rules
    family_size: int
    training_std: dict[str, float]
    num_users: int
    exclude_seen: bool
    num_candidates: int | None
    groups: dict[str, list[str]]
    claims: PaperClaims
    data_sentences: tuple[str, ...] = ()
    choices: tuple[str, ...] = ()
    dataset: str = ""
    sample: tuple[int, int] | None = None

    @property
    def has_tuning(self) -> bool:
        """Whether the settings of any model were tuned, so that the table shows budgets."""
        return any(row.tuning for row in self.rows)

    @property
    def published_metrics(self) -> tuple[str, ...]:
        """The metrics if any model has a published number, else none."""
        cells = [cell for row in self.rows for cell in row.cells.values()]
        return self.metrics if any(cell.published is not None for cell in cells) else ()

    def ranked(self, metric: str) -> list[str]:
        """Return the names of the models, best first."""
        return self._ranked[metric]

    @cached_property
    def _ranked(self) -> dict[str, list[str]]:
        """Names of the models by metric, best first."""
        return {
            metric: [row.name for row in sorted(self.rows, key=lambda row: -row.cells[metric].value.mean)]
            for metric in self.metrics
        }

    @cached_property
    def smallest_half_widths(self) -> dict[str, float | None]:
        """Half the width of the narrowest interval by metric; `None` if all are points."""
        values = {metric: [row.cells[metric].value for row in self.rows] for metric in self.metrics}
        return {
            metric: min(((value.high - value.low) / 2 for value in intervals if value.high > value.low), default=None)
            for metric, intervals in values.items()
        }

    def num_digits(self, metric: str) -> int:
        """Return the decimals of a metric: one more than are certain. A half-width of 0.03 gives three, 0.006 four."""
        half_width = self.smallest_half_widths[metric]
        return MAX_DIGITS if half_width is None else min(MAX_DIGITS, max(2, math.ceil(-math.log10(half_width)) + 1))

    def emphasis(self, name: str, metric: str) -> Literal["best", "second"] | None:
        """Return whether a model is the best or the second of at least two; `None` for the others and the oracle.

        Means that are equal with the decimals of the table share their place.
        """
        return self._emphases[metric].get(name)

    @cached_property
    def _emphases(self) -> dict[str, dict[str, Literal["best", "second"]]]:
        """The best and the second models by metric."""
        found: dict[str, dict[str, Literal["best", "second"]]] = {metric: {} for metric in self.metrics}
        for metric, emphases in found.items():
            means = {row.name: round(row.cells[metric].value.mean, self.num_digits(metric)) for row in self.rows}
            best, second, *_ = [*sorted(set(means.values()), reverse=True), math.nan, math.nan]
            if len(means) > 1:
                emphases |= {name: "best" for name, mean in means.items() if mean == best}
                emphases |= {name: "second" for name, mean in means.items() if mean == second}
        return found

    def _repr_html_(self) -> str:
        """Return the main table, as notebooks show it."""
        from evaluation.analysis.main_table import main_table  # which is made of comparisons

        return as_html(main_table(self))

    def is_significant(self, cell: Cell) -> bool:
        """Return whether the difference to the comparator is significant."""
        return cell.p_corrected is not None and cell.p_corrected < self.rules.alpha
