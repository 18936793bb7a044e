"""The main table of a comparison, models by metrics, and the table of differences with one row per test."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from evaluation.analysis.captions import (
    family_text,
    remedies,
    shared_caption,
    shared_notes,
    significance_mark,
    training_sentences,
)
from evaluation.analysis.comparison import Comparison, Row
from evaluation.analysis.significance import POWER, TEST_NAMES
from evaluation.caveats.tuning import tuning_text
from evaluation.table import Entry, Table, TableRow, signed


def main_table(comparison: Comparison, *, show_published: bool = True, without: Sequence[str] = ()) -> Table:
    """Return the table of models by metrics: groups of models, the oracle of simulated data, quoted rows.

    Args:
        comparison: of the models of a run.
        show_published: whether columns beside the metrics show the paper's numbers.
        without: titles of columns to leave out.
    """
    return side_by_side([comparison], show_published=show_published, without=without)


def side_by_side(
    comparisons: Sequence[Comparison], *, show_published: bool = True, without: Sequence[str] = ()
) -> Table:
    """Return the main tables of several datasets side by side, without published numbers; nothing is tested across."""
    return _side_by_side(comparisons, show_published).without_columns(without)


def _side_by_side(comparisons: Sequence[Comparison], show_published: bool) -> Table:
    has_titles = len(comparisons) > 1
    titles = _span_titles(comparisons)
    parts = [_Columns(comparison, show_published and not has_titles) for comparison in comparisons]
    names = _unique([row.name for row in comparison.rows] for comparison in comparisons)
    bounds = _unique([row.name for row in comparison.bounds] for comparison in comparisons)
    quoted = _unique(comparison.literature for comparison in comparisons)
    groups = _unique(comparison.groups for comparison in comparisons)
    members = [entry for comparison in comparisons for entry in comparison.groups.items()]
    group_of = {name: group for group, models in members for name in models}

    labels = {row.name: row.label for comparison in comparisons for row in comparison.rows}

    def rows(names: list[str]) -> list[TableRow]:
        return [
            [labels.get(name, name), *(entry for part in parts for entry in part.model_entries(name))] for name in names
        ]

    quoted_rows: list[TableRow] = [
        [f"{name} (quoted)", *(entry for part in parts for entry in part.quoted_entries(name))] for name in quoted
    ]
    titled = list(zip(titles, comparisons, strict=True))
    return Table(
        label="-".join(comparison.run for comparison in comparisons),
        header=["Model", *(title for part in parts for title in part.header)],
        blocks=[
            *(rows([name for name in names if group_of.get(name) == group]) for group in (None, *groups)),
            rows(bounds),
            quoted_rows,
        ],
        caption=shared_caption(titled),
        notes=shared_notes(titled),
        remarks=[text for comparison in comparisons for text in (*comparison.remarks, *remedies(comparison.rows))],
        spans=[(title, len(part.header)) for title, part in zip(titles, parts, strict=True)] if has_titles else (),
    )


def _span_titles(comparisons: Sequence[Comparison]) -> list[str]:
    """Return the names of the data, or of the runs where two have the same data."""
    titles = [comparison.dataset for comparison in comparisons]
    if len(comparisons) > 1 and (len(set(titles)) < len(titles) or not all(titles)):
        return [comparison.run for comparison in comparisons]
    return titles


class _Columns:
    """The columns of one comparison in a table."""

    def __init__(self, comparison: Comparison, show_published: bool) -> None:
        self.comparison, self.metrics = comparison, comparison.metrics
        self.rows = {row.name: row for row in (*comparison.rows, *comparison.bounds)}
        self.published = comparison.published_metrics if show_published else ()
        self.tuning = ["Tuning"] if comparison.has_tuning else []
        self.header = [*self.metrics, *(f"{metric} (paper)" for metric in self.published), "Minutes", *self.tuning]

    def model_entries(self, name: str) -> list[Entry]:
        """Return the entries of a model; empty ones if it is not in this comparison."""
        row = self.rows.get(name)
        if row is None:
            return [Entry("")] * len(self.header)
        values = [value_entry(self.comparison, row, metric) for metric in self.metrics]
        published = [self._published_entry(metric, row.cells[metric].published) for metric in self.published]
        minutes = Entry("" if row.seconds_to_best is None else f"{row.seconds_to_best / 60:.1f}")
        return [*values, *published, minutes, *(Entry(tuning_text(row.origin, row.tuning)) for _ in self.tuning)]

    def quoted_entries(self, name: str) -> list[Entry]:
        """Return the entries of a quoted row."""
        values = self.comparison.literature.get(name, {})
        numbers = [self._published_entry(metric, values.get(metric)) for metric in self.metrics]
        return [*(Entry("") for _ in self.published), *numbers, Entry(""), *(Entry("") for _ in self.tuning)]

    def _published_entry(self, metric: str, value: float | None) -> Entry:
        return Entry("" if value is None else f"{value:.{num_published_digits(self.comparison, metric)}f}")


def value_entry(comparison: Comparison, row: Row, metric: str) -> Entry:
    """Return a model's mean with the emphasis of the best and the second, and the mark of significance."""
    cell = row.cells[metric]
    mark = significance_mark(comparison) if comparison.is_significant(cell) else ""
    digits = comparison.num_digits(metric)
    spread = "" if cell.seed_std is None else f"{cell.seed_std:.{digits}f}"
    return Entry(f"{cell.value.mean:.{digits}f}", comparison.emphasis(row.name, metric), mark, spread)


def differences_table(comparison: Comparison) -> Table:
    """Return a table with one row per model and metric: interval, difference, p-value, effect size, wins, power."""
    has_seeds = any(cell.seed_std is not None for row in comparison.rows for cell in row.cells.values())
    header = [
        "Model", "Metric", "Mean", "95 % interval", "Difference", "Relative", "p", "d", "Wins/ties/losses",
        "Detectable",
    ]  # fmt: skip
    header += ["SD over seeds", "Users/trainings/both"] if has_seeds else []

    def texts(row: Row, metric: str) -> list[str]:
        found = _difference_texts(row, metric, comparison.num_digits(metric))
        return found + [""] * (len(header) - len(found))

    if not comparison.family_size:
        means: list[list[TableRow]] = [[texts(row, metric)[:4] for metric in row.cells] for row in comparison.rows]
        return Table(f"{comparison.run}-means", header[:4], means)
    against = comparison.rules.baseline or "the best model of each metric"
    sentences = [
        f"Differences to {against}: {TEST_NAMES[comparison.rules.test]}, {comparison.num_users:,} users, p-values "
        f"{family_text(comparison)}; d is Cohen's d of the paired differences",
        f"detectable: the smallest difference that these data show with {POWER:.0%} power at the strictest level",
        *training_sentences(comparison),
    ]
    if has_seeds:
        sentences.append("users/trainings/both: shares in the variance of the mean, both being their interaction")
    return Table(
        label=f"{comparison.run}-differences",
        header=header,
        blocks=[[texts(row, metric) for row in comparison.rows] for metric in comparison.metrics],
        caption="; ".join(sentences) + ".",
    )


def _difference_texts(row: Row, metric: str, digits: int) -> list[str]:
    cell = row.cells[metric]
    value, test = cell.value, cell.test
    texts = [row.name, metric, f"{value.mean:.{digits}f}", f"{value.low:.{digits}f} to {value.high:.{digits}f}"]
    if test is None or cell.p_corrected is None:
        texts += [""] * 6
    else:
        texts += [
            signed(test.difference.mean, f".{digits}f"),
            "" if cell.relative is None else signed(cell.relative, ".1%"),
            format_p_value(cell.p_corrected),
            signed(test.effect_size, ".3f"),
            f"{test.wins:,}/{test.ties:,}/{test.losses:,}",
            f"{cell.detectable:.{digits}f}",
        ]
    if cell.seed_std is not None and cell.variance is not None:
        shares = "/".join(f"{100 * share:.0f}" for share in cell.variance.shares)
        texts += [f"{cell.seed_std:.{digits}f}", f"{shares} %"]
    return texts


def num_published_digits(comparison: Comparison, metric: str) -> int:
    """Return the decimals of the longest published or quoted number of a metric: a paper's 0.300 is the float 0.3."""
    published = [row.cells[metric].published for row in comparison.rows]
    numbers = [*published, *(values.get(metric) for values in comparison.literature.values())]
    return max((len(str(number).partition(".")[2]) for number in numbers if number is not None), default=0)


def format_p_value(value: float) -> str:
    """Return a p-value with four decimals, or "< 0.0001"."""
    return "< 0.0001" if value < 1e-4 else f"{value:.4f}"


def _unique(lists: Iterable[Iterable[str]]) -> list[str]:
    """Return the names of several lists, each once, in order of appearance."""
    return list(dict.fromkeys(name for names in lists for name in names))
