"""What the page of a run says, section by section."""

from __future__ import annotations

from aprec_like.errors import InputError
from evaluation.analysis.breakdown import (
    VERDICTS,
    beyond_accuracy_table,
    compare_pairs,
    effects_table,
    pairwise_table,
    published_table,
)
from evaluation.analysis.comparison import Comparison, Row
from evaluation.analysis.main_table import (
    caption,
    differences_table,
    digits_for,
    mark_of,
    p_text,
    paper_table,
    quoted_digits,
)
from evaluation.figures.all_figures import main_metric
from evaluation.page.citations import bibtex_of
from evaluation.page.data_and_models import is_underfit, number_cell, statuses
from evaluation.page.html import Html, copyable, details, element, grid, joined, listing, table_of, value_cell
from evaluation.results.load import LoadedRuns
from evaluation.table import Entry, as_latex


def header_of(runs: LoadedRuns) -> Html:
    """Title and one line of what, on what."""
    dataset = runs.folders[0].read_dataset()
    num_models = len(runs.settings["models"])
    line = (
        f"{dataset['dataset']['class']}: {dataset['users']:,} users, {dataset['items']:,} items, "
        f"{dataset['interactions']:,} interactions; {len(runs.models)} of {num_models} models finished"
    )
    return joined([element("h1", runs.title), element("p", line, class_="soft")])


def summary(runs: LoadedRuns, comparison: Comparison) -> Html:
    """The run in a few sentences."""
    if not comparison.rows:
        return listing(["No model has finished yet.", *comparison.remarks])
    metric = main_metric(comparison.metrics)
    rows = {row.name: row for row in comparison.rows}
    first, *others = comparison.ranked(metric)
    best, digits = rows[first].cells[metric].value, digits_for(comparison, metric)
    lines: list[str | Html] = [
        f"Best by {metric}: {first} with {best.mean:.{digits}f} (95 % interval {best.low:.{digits}f} to "
        f"{best.high:.{digits}f})" + (f"; {_lead(comparison, first, others[0], metric)}" if others else "") + "."
    ]
    for bound in comparison.bounds:
        share = best.mean / bound.cells[metric].value.mean
        lines.append(f"That is {share:.0%} of what the {bound.name} reaches, which no model can beat.")
    table, _ = published_table(comparison)
    if verdicts := [line[-1] for line in table.blocks[0]]:
        counts = [f"{verdicts.count(verdict)} {verdict}" for verdict in VERDICTS if verdict in verdicts]
        lines.append(f"Of {len(verdicts)} published numbers: {', '.join(counts)}.")
    if underfit := [model.name for model in runs.models if any(map(is_underfit, statuses(model)))]:
        lines.append(f"Still improving when the budget of training ended: {', '.join(underfit)}.")
    return listing([*lines, *runs.remarks])


def _lead(comparison: Comparison, first: str, second: str, metric: str) -> str:
    """How far the best is ahead of the second, and whether that is significant."""
    rows = {row.name: row for row in comparison.rows}
    one, other = (rows[name].cells[metric].value.mean for name in (first, second))
    ahead = f"{one / other - 1:+.1%} over {second}" if other else f"ahead of {second}"
    cell = rows[second].cells[metric]
    if cell.comparator != first or cell.p_corrected is None:
        return ahead
    found = "significant" if comparison.is_significant(cell) else "not significant"
    p = p_text(cell.p_corrected)
    return f"{ahead}, {found} (p {p if p.startswith('<') else f'= {p}'})"


def results(runs: LoadedRuns, comparison: Comparison) -> Html:
    """The main table with intervals and stars, and everything that hangs on it."""
    if not comparison.rows:
        return element("p", "No model has finished yet.")
    metrics = comparison.metrics
    cells = [cell for row in comparison.rows for cell in row.cells.values()]
    published = metrics if any(cell.published is not None for cell in cells) else ()
    header = ["Model", *metrics, *(f"{metric} (paper)" for metric in published), "Minutes"]
    group_of = {name: group for group, names in comparison.groups.items() for name in names}
    order = {metric: comparison.ranked(metric) for metric in metrics}
    exact = {metric: f".{quoted_digits(comparison, metric)}f" for metric in metrics}

    def measured(row: Row, metric: str) -> Html:
        cell, digits = row.cells[metric], digits_for(comparison, metric)
        place = order[metric].index(row.name) if row.name in order[metric] and len(order[metric]) > 1 else None
        mark = mark_of(comparison) if comparison.is_significant(cell) else ""
        text = f"{cell.value.mean:.{digits}f}"
        entry = Entry(text, "best" if place == 0 else "second" if place == 1 else None, mark)
        return value_cell(entry, f"{cell.value.low:.{digits}f} to {cell.value.high:.{digits}f}", cell.value.mean)

    def line(row: Row) -> list[Html]:
        model = runs.find(row.name)
        badges = [element("span", group_of[row.name], class_="badge")] if row.name in group_of else []
        if any(map(is_underfit, statuses(model))):
            badges.append(element("span", "underfit", class_="badge warn", title="still improving when training ended"))
        name = element("td", joined([element("span", row.name), *badges], " "))
        quoted = [number_cell(row.cells[metric].published, exact[metric]) for metric in published]
        minutes = None if row.seconds_to_best is None else row.seconds_to_best / 60
        return [name, *(measured(row, metric) for metric in metrics), *quoted, number_cell(minutes, ".1f")]

    empty = [element("td", "")]
    quoted = [
        [
            element("td", f"{name} (quoted)"),
            *empty * len(published),
            *(number_cell(values.get(metric), exact[metric]) for metric in metrics),
            *empty,
        ]
        for name, values in comparison.literature.items()
    ]
    blocks = [[line(row) for row in comparison.rows], [line(row) for row in comparison.bounds], quoted]
    parts = [grid(header, blocks, caption(comparison))]
    if found := [remark for remark in comparison.remarks if remark not in runs.remarks]:
        parts.append(details(f"{len(found)} remarks on the tests", listing(list(found))))
    parts.append(details("Every difference in detail", table_of(differences_table(comparison))))
    parts.append(details("Beyond accuracy", table_of(beyond_accuracy_table(runs))))
    return joined(parts)


def pairs(runs: LoadedRuns, comparison: Comparison) -> Html:
    """Every pair under every metric; effects of architecture and loss where they are crossed."""
    parts = [
        details(f"{metric} as a table", table_of(pairwise_table(compare_pairs(runs, metric, comparison.rules))))
        for metric in comparison.metrics
    ]
    try:
        effects = [table_of(effects_table(runs, metric, comparison.rules)) for metric in comparison.metrics]
    except InputError:
        return joined(parts)  # most runs don't cross architectures and losses
    return joined([*parts, element("h3", "Architecture and loss"), *effects])


def paper(comparison: Comparison) -> Html | None:
    """The paper's numbers beside ours, with verdicts; `None` where the recipe quotes none."""
    table, _ = published_table(comparison)
    if not table.blocks[0]:
        return None
    classes = dict(zip(VERDICTS, ("good", "", "bad"), strict=True))
    lines = [
        [*(element("td", str(text)) for text in line[:-1]), element("td", str(line[-1]), class_=classes[str(line[-1])])]
        for line in table.blocks[0]
    ]
    return grid(table.header, [lines], table.caption)


def citation(runs: LoadedRuns, comparison: Comparison) -> Html:
    """What to cite, and the table for the paper."""
    bibtex = bibtex_of(
        {"dataset": runs.settings.get("dataset"), "models": [model.settings for model in runs.models]}
    )
    parts = [copyable("latex", "The table in LaTeX", as_latex(paper_table(comparison)))] if comparison.rows else []
    if bibtex:
        parts.append(copyable("bibtex", "The models, losses and data used here", bibtex))
    return joined(parts)
