"""The tables of a comparison: models by metrics, and one line for every difference."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence

from evaluation.analysis.comparison import Comparison, Row
from evaluation.analysis.significance import POWER, TEST_NAMES
from evaluation.table import Entry, Table

MOST_DIGITS = 4


def caption(comparison: Comparison) -> str:
    """What the numbers are and how they were tested, in sentences."""
    seeds = {len(row.seeds) for row in comparison.rows}
    sentences = [
        f"Means over {comparison.num_users:,} users; the whole catalogue is ranked, seen items "
        + ("excluded" if comparison.exclude_seen else "included"),
        "best in bold, second underlined",
    ]
    if comparison.num_candidates:
        drawn = f"the target among itself and {comparison.num_candidates} drawn items"
        sentences.insert(1, f"(sampled): {drawn}, not comparable with rankings of the catalogue")
    if max(seeds, default=1) > 1:
        sentences.append(
            f"means over {' or '.join(map(str, sorted(seeds)))} seeds; tests are conditional on these seeds"
        )
    if comparison.family_size:
        rules = comparison.rules
        against = f"from {rules.baseline}" if rules.baseline else "from the best"
        sentences.append(
            f"{mark_of(comparison)} differs {against} ({TEST_NAMES[rules.test]} over users, p < {rules.alpha:g}, "
            f"{_corrected(comparison)}, {comparison.family_size} tests)"
        )
    return "; ".join(sentences) + "."


def mark_of(comparison: Comparison) -> str:
    """A star for a difference from the best, a dagger for one from the baseline."""
    return "†" if comparison.rules.baseline else "*"


def main_table(comparison: Comparison) -> Table:
    """Models by metrics: groups of models, then the bound of simulated data, then quoted rows."""
    return side_by_side([comparison])


def paper_table(comparison: Comparison) -> Table:
    """The main table without the columns of published numbers, which a page has no room for."""
    return side_by_side([comparison], has_published=False)


def side_by_side(comparisons: Sequence[Comparison], *, has_published: bool = True) -> Table:
    """The main tables of several datasets next to each other; there is no test between them."""
    has_titles = len(comparisons) > 1
    parts = [_Part(comparison, has_published and not has_titles) for comparison in comparisons]
    names = _in_order([row.name for row in comparison.rows] for comparison in comparisons)
    bounds = _in_order([row.name for row in comparison.bounds] for comparison in comparisons)
    quoted = _in_order(comparison.literature for comparison in comparisons)
    groups = _in_order(comparison.groups for comparison in comparisons)
    group_of = {name: group for comparison in comparisons for group, some in comparison.groups.items() for name in some}

    def lines(some: list[str]) -> list[list[Entry | str]]:
        return [[name, *(entry for part in parts for entry in part.line(name))] for name in some]

    captions = [(f"{comparison.run}: " if has_titles else "") + caption(comparison) for comparison in comparisons]
    return Table(
        label="-".join(comparison.run for comparison in comparisons),
        header=["Model", *(title for part in parts for title in part.header)],
        blocks=[
            *(lines([name for name in names if group_of.get(name) == group]) for group in (None, *groups)),
            lines(bounds),
            [[f"{name} (quoted)", *(entry for part in parts for entry in part.quoted(name))] for name in quoted],
        ],
        caption=" ".join(captions),
        remarks=[remark for comparison in comparisons for remark in comparison.remarks],
        spans=[(part.comparison.run, len(part.header)) for part in parts] if has_titles else (),
    )


class _Part:
    """The columns of one comparison in a table."""

    def __init__(self, comparison: Comparison, has_published: bool) -> None:
        self.comparison, self.metrics = comparison, comparison.metrics
        self.rows = {row.name: row for row in (*comparison.rows, *comparison.bounds)}
        self.order = {metric: comparison.ranked(metric) for metric in self.metrics}
        cells = [cell for row in comparison.rows for cell in row.cells.values()]
        is_quoted = has_published and any(cell.published is not None for cell in cells)
        self.published = self.metrics if is_quoted else ()
        self.digits = {metric: digits_for(comparison, metric) for metric in self.metrics}
        self.quoted_digits = {metric: quoted_digits(comparison, metric) for metric in self.metrics}
        self.header = [*self.metrics, *(f"{metric} (paper)" for metric in self.published), "Minutes"]

    def line(self, name: str) -> list[Entry]:
        """The entries of a model; empty if it is not in this comparison."""
        row = self.rows.get(name)
        if row is None:
            return [Entry("")] * len(self.header)
        values = [self._measured(row, metric) for metric in self.metrics]
        published = [self._number(metric, row.cells[metric].published) for metric in self.published]
        minutes = Entry("" if row.seconds_to_best is None else f"{row.seconds_to_best / 60:.1f}")
        return [*values, *published, minutes]

    def quoted(self, name: str) -> list[Entry]:
        """The entries of a row that was quoted."""
        values = self.comparison.literature.get(name, {})
        numbers = [self._number(metric, values.get(metric)) for metric in self.metrics]
        return [*(Entry("") for _ in self.published), *numbers, Entry("")]

    def _measured(self, row: Row, metric: str) -> Entry:
        cell, order = row.cells[metric], self.order[metric]
        place = order.index(row.name) if row.name in order and len(order) > 1 else None
        mark = mark_of(self.comparison) if self.comparison.is_significant(cell) else ""
        text = f"{cell.value.mean:.{self.digits[metric]}f}"
        return Entry(text, "best" if place == 0 else "second" if place == 1 else None, mark)

    def _number(self, metric: str, value: float | None) -> Entry:
        return Entry("" if value is None else f"{value:.{self.quoted_digits[metric]}f}")


def differences_table(comparison: Comparison) -> Table:
    """One line per model and metric: interval, difference, p-value, effect size, wins, power."""
    has_seeds = any(cell.seed_std is not None for row in comparison.rows for cell in row.cells.values())
    header = [
        "Model", "Metric", "Mean", "95 % interval", "Difference", "Relative", "p", "d", "Wins/ties/losses",
        "Detectable",
    ]  # fmt: skip
    header += ["SD over seeds", "Share of seeds"] if has_seeds else []

    def line(row: Row, metric: str) -> list[str]:
        cell = row.cells[metric]
        digits = digits_for(comparison, metric)
        value, test = cell.value, cell.test
        texts = [row.name, metric, f"{value.mean:.{digits}f}", f"{value.low:.{digits}f} to {value.high:.{digits}f}"]
        if test is None or cell.p_corrected is None:
            texts += [""] * 6
        else:
            texts += [f"{test.difference.mean:+.{digits}f}", "" if cell.relative is None else f"{cell.relative:+.1%}"]
            texts += [
                p_text(cell.p_corrected),
                f"{test.effect_size:+.3f}",
                f"{test.wins:,}/{test.ties:,}/{test.losses:,}",
            ]
            texts += [f"{cell.detectable:.{digits}f}"]
        if cell.seed_std is not None and cell.seed_share is not None:
            texts += [f"{cell.seed_std:.{digits}f}", f"{cell.seed_share:.0%}"]
        return texts + [""] * (len(header) - len(texts))

    against = comparison.rules.baseline or "the best model of each metric"
    if not comparison.family_size:
        return Table(
            f"{comparison.run}-means", header[:4], [[line(row, m)[:4] for m in row.cells] for row in comparison.rows]
        )
    sentences = [
        f"Differences to {against}: {TEST_NAMES[comparison.rules.test]} over {comparison.num_users:,} users, p-values "
        f"{_corrected(comparison)} for {comparison.family_size} tests; d is Cohen's d of the paired differences",
        f"detectable: the smallest difference that these users show with {POWER:.0%} power at the strictest level",
    ]
    if has_seeds:
        sentences.append("share of seeds: of the variance of the mean, what is due to seeds rather than users")
    return Table(
        label=f"{comparison.run}-differences",
        header=header,
        blocks=[[line(row, metric) for row in comparison.rows] for metric in comparison.metrics],
        caption="; ".join(sentences) + ".",
    )


def _corrected(comparison: Comparison) -> str:
    correction = comparison.rules.correction
    return "not corrected" if correction == "none" else f"{correction.capitalize()}-corrected"


def digits_for(comparison: Comparison, metric: str) -> int:
    """One digit more than the interval's half-width has certain ones: 0.03 gives three digits, 0.006 four."""
    widths = [row.cells[metric].value for row in comparison.rows]
    halves = [(value.high - value.low) / 2 for value in widths if value.high > value.low]
    if not halves:
        return MOST_DIGITS
    return min(MOST_DIGITS, max(2, math.ceil(-math.log10(min(halves))) + 1))


def p_text(value: float) -> str:
    """A p-value as a reader wants it."""
    return "< 0.0001" if value < 1e-4 else f"{value:.4f}"


def _in_order(names: Iterable[Iterable[str]]) -> list[str]:
    """Names from several lists, each once, in the order in which they come."""
    return list(dict.fromkeys(name for some in names for name in some))


def quoted_digits(comparison: Comparison, metric: str) -> int:
    """As many digits as the longest of a metric's quoted numbers: a source's 0.300 is a float's 0.3."""
    published = [row.cells[metric].published for row in comparison.rows]
    numbers = [*published, *(values.get(metric) for values in comparison.literature.values())]
    return max((len(str(number).partition(".")[2]) for number in numbers if number is not None), default=0)
