"""What a paper reports beside our results, each with a verdict: what `compare --check` tests."""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from enum import StrEnum

from evaluation.analysis.comparison import Comparison
from evaluation.analysis.main_table import num_published_digits
from evaluation.analysis.paper_claims import MINUTES
from evaluation.analysis.significance import Interval
from evaluation.table import Table, TableRow, signed

MAX_CLOSE_DIFFERENCE = 0.05
"""Largest relative difference at which a published number outside our interval is close to ours."""
MIN_MINUTES = 1.0
"""Shortest published training time of which ratios are taken: shorter ones are rounded too coarsely."""


class Verdict(StrEnum):
    """How a published number, mark or time agrees with ours."""

    INSIDE = "inside our interval"
    CLOSE = "within 5 %"
    OFF = "off"
    SAME_MARK = "as in the paper"
    OTHER_MARK = "not as in the paper"
    NOT_JUDGED = "not judged"

    @property
    def is_off(self) -> bool:
        """Whether the paper's statement does not hold here."""
        return self in (Verdict.OFF, Verdict.OTHER_MARK)


@dataclass(frozen=True)
class PublishedNumber:
    """A published number beside ours.

    Args:
        model: name of the model.
        metric: name of the metric.
        ours: our mean over users and its 95 % interval, over users and trainings if several seeds are known.
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


@dataclass(frozen=True)
class PublishedMark:
    """Whether the paper, and whether we mark a model as significantly different from the best one under a metric."""

    model: str
    metric: str
    ours: bool
    theirs: bool

    @property
    def verdict(self) -> Verdict:
        """Whether both marks are the same."""
        return Verdict.SAME_MARK if self.ours == self.theirs else Verdict.OTHER_MARK


@dataclass(frozen=True)
class TimeRatio:
    """Training time of a model divided by that of the paper's slowest one; not judged, because hardware differs."""

    model: str
    reference: str
    ours: float
    theirs: float
    verdict: Verdict = Verdict.NOT_JUDGED


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


def compare_marks(comparison: Comparison) -> list[PublishedMark]:
    """Return the paper's marks of significance beside ours, for every published number that is tested here.

    None if the paper's marks are not in the recipe, or if models are compared with a baseline instead of the best.
    """
    stars = comparison.claims.stars
    if not stars or comparison.rules.baseline is not None:
        return []
    return [
        PublishedMark(row.name, metric, comparison.is_significant(cell), metric in stars.get(row.name, ()))
        for row in comparison.rows
        for metric, cell in row.cells.items()
        if cell.published is not None and (cell.test is not None or metric in stars.get(row.name, ()))
    ]


def compare_times(comparison: Comparison) -> list[TimeRatio]:
    """Return training times as ratios to the finished model that took longest in the paper."""
    theirs = {name: value for name, value in comparison.claims.minutes.items() if value >= MIN_MINUTES}
    ours = {row.name: row.seconds_to_best for row in comparison.rows if row.name in theirs and row.seconds_to_best}
    if len(ours) < 2:
        return []
    reference = max(ours, key=lambda name: theirs[name])
    return [
        TimeRatio(name, reference, seconds / ours[reference], theirs[name] / theirs[reference])
        for name, seconds in ours.items()
        if name != reference
    ]


def is_as_published(comparison: Comparison) -> bool:
    """Return whether nothing is off but what the recipe declares as a known difference."""
    found: list[PublishedNumber | PublishedMark] = [*compare_with_published(comparison), *compare_marks(comparison)]
    return not any(each.verdict.is_off and each.model not in comparison.claims.known_differences for each in found)


def published_table(comparisons: Sequence[Comparison]) -> Table:
    """Return a table with one row per published number, mark and ratio of times; without rows if there are none."""
    has_runs = len(comparisons) > 1
    blocks: list[list[TableRow]] = []
    for comparison in comparisons:
        prefix = [comparison.run] if has_runs else []
        parts = (_number_rows(comparison), _mark_rows(comparison), _time_rows(comparison))
        blocks.append([[*prefix, *row] for row in itertools.chain(*parts)])
    reasons = [
        f"{comparison.run + ', ' if has_runs else ''}{name}: a known difference: {reason}"
        for comparison in comparisons
        for name, reason in comparison.claims.known_differences.items()
    ]
    users = " or ".join(dict.fromkeys(f"{comparison.num_users:,}" for comparison in comparisons))
    return Table(
        label="-".join([*(comparison.run for comparison in comparisons), "published"]),
        header=[
            *(["Run"] if has_runs else []),
            "Model",
            "Number",
            "Ours",
            "95 % interval",
            "Paper",
            "Difference",
            "Verdict",
        ],
        blocks=blocks,
        caption=f"Our means over {users} users beside the published numbers; marks of significant differences from the "
        "best model; training times divided by that of the model that took the paper longest.",
        remarks=reasons,
    )


def _number_rows(comparison: Comparison) -> Iterator[list[str]]:
    for number in compare_with_published(comparison):
        yield [
            number.model,
            number.metric,
            f"{number.ours.mean:.4f}",
            f"{number.ours.low:.4f} to {number.ours.high:.4f}",
            f"{number.theirs:.{number.num_digits}f}",
            signed(number.ratio - 1, ".1%"),
            _verdict_text(comparison, number.model, number.verdict),
        ]


def _mark_rows(comparison: Comparison) -> Iterator[list[str]]:
    for mark in compare_marks(comparison):
        texts = ["*" if each else "no mark" for each in (mark.ours, mark.theirs)]
        verdict = _verdict_text(comparison, mark.model, mark.verdict)
        yield [mark.model, f"mark of {mark.metric}", texts[0], "", texts[1], "", verdict]


def _time_rows(comparison: Comparison) -> Iterator[list[str]]:
    for time in compare_times(comparison):
        change = signed(time.ours / time.theirs - 1, ".0%")
        title = f"{MINUTES.lower()} / {time.reference}"
        yield [time.model, title, f"{time.ours:.2f}", "", f"{time.theirs:.2f}", change, time.verdict.value]


def _verdict_text(comparison: Comparison, model: str, verdict: Verdict) -> str:
    is_known = verdict.is_off and model in comparison.claims.known_differences
    return f"{verdict.value} (known)" if is_known else verdict.value
