"""The page of a search: figures of every study, all trials as tables and as CSV."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from urllib.parse import quote

import pandas as pd

from evaluation.figures.all_figures import ReportFigure
from evaluation.figures.search import (
    draw_best_curves,
    draw_importance,
    draw_parallel_coordinates,
    draw_search_history,
)
from evaluation.figures.style import save_figure
from evaluation.page.html import Cell, HtmlFigure, HtmlTable, render_page, to_html_figure, to_html_table
from evaluation.table import Table
from evaluation.table_formats import format_csv
from evaluation.tuning.folders import TuningFolder
from evaluation.tuning.outcome import StudyOutcome

NUM_CURVES = 10
"""Learning curves are shown of this many of the best trials."""


@dataclass(frozen=True)
class StudySection:
    """The section on the study of one model.

    Args:
        sentences: its outcome in words.
        best: the best settings beside the recipe's own.
        trials: all trials.
    """

    sentences: Sequence[str]
    best: HtmlTable
    trials: HtmlTable


@dataclass(frozen=True)
class TuningPage:
    """Everything that the template of the page shows; studies and figures by identifier of their section."""

    title: str
    subtitle: str
    sections: Mapping[str, str]
    summary: HtmlTable
    studies: Mapping[str, StudySection]
    figures: Mapping[str, Sequence[HtmlFigure]]


def write_tuning_page(folder: TuningFolder, title: str, summary: Table, outcomes: Sequence[StudyOutcome]) -> None:
    """Write figures, trials.csv, summary.json and the page of the studies of a recipe."""
    identifiers = {f"study-{number}": outcome for number, outcome in enumerate(outcomes, start=1)}
    figures = {name: list(make_search_figures(name, outcome)) for name, outcome in identifiers.items()}
    for name, outcome in identifiers.items():
        for figure in figures[name]:
            stem = f"{quote(outcome.model, safe=' ()+,=@')}-{figure.name.removeprefix(f'{name}-')}"
            for suffix in (".pdf", ".png"):
                save_figure(figure.figure, folder.figures_path / f"{stem}{suffix}")
    folder.write_trials(trials_csv(outcomes))
    folder.write_summary({outcome.model: outcome.to_json() for outcome in outcomes})
    page = TuningPage(
        title=f"{title}: tuning",
        subtitle="Settings chosen on validation; the test was never ranked.",
        sections={"summary": "Summary"} | {name: outcome.model for name, outcome in identifiers.items()},
        summary=to_html_table(summary),
        studies={name: _study_section(outcome) for name, outcome in identifiers.items()},
        figures={name: [to_html_figure(figure) for figure in drawn] for name, drawn in figures.items()},
    )
    folder.write_page(render_page(page, "tuning.html.jinja"))


def make_search_figures(section: str, outcome: StudyOutcome) -> Iterator[ReportFigure]:
    """Draw the figures that the trials of a study allow; names begin with that of the section."""
    complete = outcome.trials[outcome.trials["state"] == "complete"]
    if complete.empty:
        return
    metric = outcome.metric
    caption = "Validation of every trial, in the order of their start; trials that failed are left out."
    history = draw_search_history(outcome.trials, metric, outcome.own_value)
    yield ReportFigure(f"{section}-history", section, caption, history)
    if outcome.importance:
        caption = (
            f"Importance of each setting for being among the best of {len(complete)} complete trials (PED-ANOVA); with "
            "few trials a rough hint."
        )
        yield ReportFigure(f"{section}-importance", section, caption, draw_importance(outcome.importance))
    caption = "Every complete trial as a line through its settings; the lighter, the better."
    parallel = draw_parallel_coordinates(outcome.trials, list(outcome.values), outcome.log_settings, metric)
    yield ReportFigure(f"{section}-parallel", section, caption, parallel)
    best = complete.sort_values("value", ascending=False, kind="stable")["trial"][:NUM_CURVES]
    curves = {int(number): outcome.curves[int(number)] for number in best if len(outcome.curves[int(number)])}
    if curves:
        caption = f"Validation by epoch of the best {len(curves)} trials."
        yield ReportFigure(f"{section}-curves", section, caption, draw_best_curves(curves, metric))


def _study_section(outcome: StudyOutcome) -> StudySection:
    own = outcome.own_labels
    rows = [[Cell(name), _cell(value), _cell(own[name])] for name, value in outcome.labels.items()]
    best = HtmlTable(("Setting", "Chosen", "In the recipe"), [rows])
    trials = outcome.trials.drop(columns=["stopped_by", "reason"])
    cells = [[_cell(value) for value in row] for row in trials.itertuples(index=False)]
    header = [str(column).replace("_", " ") if column not in outcome.labels else column for column in trials.columns]
    return StudySection(_sentences(outcome), best, HtmlTable(header, [cells]))


def _sentences(outcome: StudyOutcome) -> list[str]:
    found = [f"{sentence[0].upper()}{sentence[1:]}." for sentence in outcome.sentences()]
    failed = outcome.trials[outcome.trials["state"] == "failed"]
    return [*found, *(f"Trial {row.trial} failed: {row.reason}." for row in failed.itertuples())]


def _cell(value: object) -> Cell:
    if value is None or value is pd.NA or (isinstance(value, float) and pd.isna(value)):
        return Cell()
    return Cell(f"{value:.4g}" if isinstance(value, float) else str(value))


def trials_csv(outcomes: Sequence[StudyOutcome]) -> str:
    """Return one line per trial of every model; settings that a model does not search are empty."""
    tables = [outcome.trials.assign(model=outcome.model) for outcome in outcomes]
    merged = pd.concat([table.astype(object) for table in tables])
    columns = ["model", *(column for column in merged.columns if column != "model")]
    rows = merged[columns].astype(object).where(merged[columns].notna(), "")
    return format_csv(columns, [list(row) for row in rows.itertuples(index=False)])
