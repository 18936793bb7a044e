"""Sections of the page on the results: summary, main table, pairs of models, the paper's numbers, citations."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

from aprec_like.errors import InputError
from evaluation.analysis.breakdown import BeyondAccuracy, beyond_accuracy_table, effects_table
from evaluation.analysis.captions import caption, notes, training_sentences
from evaluation.analysis.comparison import Comparison, Row
from evaluation.analysis.main_table import (
    differences_table,
    format_p_value,
    main_table,
    num_published_digits,
    value_entry,
)
from evaluation.analysis.pairwise import compare_pairs, pairwise_table
from evaluation.analysis.published import (
    Verdict,
    compare_marks,
    compare_times,
    compare_with_published,
    published_table,
)
from evaluation.caveats.tuning import tuning_text, tuning_warnings
from evaluation.figures.all_figures import main_metric
from evaluation.page.citations import collect_bibtex
from evaluation.page.data_and_models import warning_badges
from evaluation.page.html import Badge, Cell, HtmlTable, number_cell, to_html_table
from evaluation.results.load import LoadedRuns
from evaluation.table import as_sentence
from evaluation.table_formats import as_latex

VERDICT_CLASSES = {
    Verdict.INSIDE: "good",
    Verdict.SAME_MARK: "good",
    Verdict.OFF: "bad",
    Verdict.OTHER_MARK: "bad",
}
"""CSS classes of verdicts; others have none."""


def subtitle(runs: LoadedRuns) -> str:
    """Return one line with the sizes of the data and the number of finished models."""
    dataset, num_models = runs.folders[0].read_dataset(), len(runs.settings["models"])
    return (
        f"{runs.dataset_title}: {dataset['users']:,} users, {dataset['items']:,} items, "
        f"{dataset['interactions']:,} interactions; {len(runs.models)} of {num_models} models finished"
    )


def summarise(runs: LoadedRuns, comparison: Comparison) -> list[str]:
    """Return the results in sentences: best model, oracle, published numbers, caveats, trainings."""
    if not comparison.rows:
        return ["No model has finished yet.", *comparison.remarks]
    metric = main_metric(comparison.metrics)
    rows = {row.name: row for row in comparison.rows}
    first, *others = comparison.ranked(metric)
    best, digits = rows[first].cells[metric].value, comparison.num_digits(metric)
    lines = [
        f"Best by {metric}: {first} with {best.mean:.{digits}f} (95 % interval {best.low:.{digits}f} to "
        f"{best.high:.{digits}f})"
        + (f"; {_describe_lead(rows[first], rows[others[0]], comparison)}" if others else "")
        + "."
    ]
    for bound in comparison.bounds:
        share = best.mean / bound.cells[metric].value.mean
        lines.append(f"That is {share:.0%} of what the {bound.name} reaches, which no model can beat.")
    if counts := Counter(number.verdict for number in compare_with_published(comparison)):
        texts = [f"{counts[verdict]} {verdict}" for verdict in Verdict if counts[verdict]]
        lines.append(f"Of {counts.total()} published numbers: {', '.join(texts)}.")
    lines += [as_sentence(warning) for warning in tuning_warnings(runs.tested_models)]
    lines += [as_sentence(sentence) for sentence in comparison.choices]
    lines += [f"{row.name}: {caveat.advice}." for row in comparison.rows for caveat in row.caveats]
    lines += [as_sentence(sentence) for sentence in training_sentences(comparison)]
    return [*lines, *runs.remarks]


def _describe_lead(first: Row, second: Row, comparison: Comparison) -> str:
    """Return the relative difference between the best and the second model, and whether it is significant."""
    metric = main_metric(comparison.metrics)
    cell = second.cells[metric]
    ratio = first.cells[metric].value.mean / cell.value.mean if cell.value.mean else None
    lead = f"ahead of {second.name}" if ratio is None else f"{ratio - 1:+.1%} over {second.name}"
    if cell.comparator != first.name or cell.p_corrected is None:
        return lead
    significance = "significant" if comparison.is_significant(cell) else "not significant"
    p = format_p_value(cell.p_corrected)
    return f"{lead}, {significance} (p {p if p.startswith('<') else f'= {p}'})"


@dataclass(frozen=True)
class Results:
    """The section with the main table, the tables behind it, and remarks on the tests."""

    table: HtmlTable
    differences: HtmlTable
    beyond_accuracy: HtmlTable
    remarks: Sequence[str]


def describe_results(
    runs: LoadedRuns, comparison: Comparison, beyond_accuracy: Mapping[str, BeyondAccuracy]
) -> Results | None:
    """Return the main table with intervals, and everything behind it; `None` without a finished model."""
    if not comparison.rows:
        return None
    return Results(
        table=_main_table(comparison),
        differences=to_html_table(differences_table(comparison)),
        beyond_accuracy=to_html_table(beyond_accuracy_table(runs, beyond_accuracy)),
        remarks=[remark for remark in comparison.remarks if remark not in runs.remarks],
    )


def _main_table(comparison: Comparison) -> HtmlTable:
    metrics, published = comparison.metrics, comparison.published_metrics
    formats = {metric: f".{num_published_digits(comparison, metric)}f" for metric in metrics}
    tuning = ["Tuning"] if comparison.has_tuning else []

    def row_cells(row: Row) -> list[Cell]:
        quoted = [number_cell(row.cells[metric].published, formats[metric]) for metric in published]
        minutes = None if row.seconds_to_best is None else row.seconds_to_best / 60
        values = [_value_cell(comparison, row, metric) for metric in metrics]
        tuned = [Cell(tuning_text(row.origin, row.tuning)) for _ in tuning]
        return [_name_cell(comparison, row), *values, *quoted, number_cell(minutes, ".1f"), *tuned]

    literature = [
        [
            Cell(f"{name} (quoted)"),
            *[Cell()] * len(published),
            *(number_cell(values.get(metric), formats[metric]) for metric in metrics),
            *[Cell()] * (1 + len(tuning)),
        ]
        for name, values in comparison.literature.items()
    ]
    return HtmlTable(
        header=["Model", *metrics, *(f"{metric} (paper)" for metric in published), "Minutes", *tuning],
        blocks=[list(map(row_cells, comparison.rows)), list(map(row_cells, comparison.bounds)), literature],
        caption=caption(comparison),
        notes=notes(comparison),
    )


def _name_cell(comparison: Comparison, row: Row) -> Cell:
    groups = [Badge(group) for group, names in comparison.groups.items() if row.name in names]
    return Cell(row.name, badges=[*groups, *warning_badges(row.caveats)])


def _value_cell(comparison: Comparison, row: Row, metric: str) -> Cell:
    entry = value_entry(comparison, row, metric)
    value, digits = row.cells[metric].value, comparison.num_digits(metric)
    interval = f"{value.low:.{digits}f} to {value.high:.{digits}f}"
    return Cell(entry.text, entry.emphasis, entry.mark, note=interval, sort_value=value.mean)


MAX_PAIRED_MODELS = 40
"""The tables of all pairs are left out for more models than this: they grow with the square of their number."""


@dataclass(frozen=True)
class Pairs:
    """The section on pairs of models: a table per metric, and tables of effects of architecture and loss."""

    tables: Mapping[str, HtmlTable]
    effects: Sequence[HtmlTable]


def describe_pairs(runs: LoadedRuns, comparison: Comparison) -> Pairs:
    """Return the tests of all pairs; effects are empty unless architectures and losses are crossed."""
    metrics, rules = comparison.metrics, comparison.rules
    shown = metrics if len(comparison.rows) <= MAX_PAIRED_MODELS else ()
    tables = {metric: to_html_table(pairwise_table(compare_pairs(runs, metric, rules))) for metric in shown}
    try:
        effects = [to_html_table(effects_table(runs, metric, rules)) for metric in metrics]
    except InputError:
        effects = []
    return Pairs(tables, effects)


def describe_published(comparison: Comparison) -> HtmlTable:
    """Return what the paper reports beside ours, the verdicts in colour; without rows if the recipe has nothing."""
    table = to_html_table(published_table([comparison]))
    verdicts = [number.verdict for number in compare_with_published(comparison)]
    verdicts += [mark.verdict for mark in compare_marks(comparison)]
    verdicts += [time.verdict for time in compare_times(comparison)]
    rows = [
        [*row[:-1], replace(row[-1], css_class=VERDICT_CLASSES.get(verdict, ""))]
        for row, verdict in zip(table.blocks[0], verdicts, strict=True)
    ]
    return replace(table, blocks=[rows])


@dataclass(frozen=True)
class Citation:
    """The section to copy from: the main table in LaTeX, and BibTeX entries; empty texts are left out."""

    latex: str
    bibtex: str


def describe_citation(runs: LoadedRuns, comparison: Comparison) -> Citation:
    """Return the main table for a paper, and the references of the data, models and losses of the finished models."""
    settings = {"dataset": runs.settings.get("dataset"), "models": [model.settings for model in runs.models]}
    latex = as_latex(main_table(comparison, show_published=False)) if comparison.rows else ""
    return Citation(latex, collect_bibtex(settings))
