"""Published numbers of a paper beside ours, each with a verdict: what `compare --check` tests."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum

from evaluation.analysis.comparison import Comparison
from evaluation.analysis.main_table import num_published_digits
from evaluation.analysis.significance import Interval
from evaluation.table import Table, TableRow

MAX_CLOSE_DIFFERENCE = 0.05
"""Largest relative difference at which a published number outside our interval is close to ours."""


class Verdict(StrEnum):
    """How a published number agrees with ours."""

    INSIDE = "inside our interval"
    CLOSE = "within 5 %"
    OFF = "off"


@dataclass(frozen=True)
class PublishedNumber:
    """A published number beside ours.

    Args:
        model: name of the model.
        metric: name of the metric.
        ours: our mean over users and its 95 % interval.
        theirs: the published number.
        num_digits: decimal places of the published number.
        ratio: ours over theirs; infinite if theirs is zero.
        verdict: how the two agree.
    """

    model: str
    metric: str
    ours: Interval
    theirs: float
    num_digits: int
    ratio: float
    verdict: Verdict


def compare_with_published(comparison: Comparison) -> list[PublishedNumber]:
    """Return every published number of the finished models beside ours, by model and metric."""
    numbers = []
    for row in comparison.rows:
        for metric, cell in row.cells.items():
            if (theirs := cell.published) is not None:
                ours, digits = cell.value, num_published_digits(comparison, metric)
                ratio = ours.mean / theirs if theirs else float("inf")
                verdict = judge(ours, theirs, digits)
                numbers.append(PublishedNumber(row.name, metric, ours, theirs, digits, ratio, verdict))
    return numbers


def judge(ours: Interval, theirs: float, num_digits: int) -> Verdict:
    """Return the verdict on a number with `num_digits` decimals; our interval is widened by its rounding error."""
    rounding = 0.5 * 10**-num_digits
    if ours.low - rounding <= theirs <= ours.high + rounding:
        return Verdict.INSIDE
    return Verdict.CLOSE if abs(ours.mean - theirs) <= MAX_CLOSE_DIFFERENCE * theirs else Verdict.OFF


def published_table(comparison: Comparison) -> Table:
    """Return a table with one row per published number; without rows if the recipe has none."""
    rows: list[TableRow] = [
        [
            number.model,
            number.metric,
            f"{number.ours.mean:.4f}",
            f"{number.ours.low:.4f} to {number.ours.high:.4f}",
            f"{number.theirs:.{number.num_digits}f}",
            f"{number.ratio - 1:+.1%}",
            number.verdict.value,
        ]
        for number in compare_with_published(comparison)
    ]
    return Table(
        label=f"{comparison.run}-published",
        header=["Model", "Metric", "Ours", "95 % interval", "Paper", "Difference", "Verdict"],
        blocks=[rows],
        caption=f"Our means over {comparison.num_users:,} users beside the published numbers.",
    )
