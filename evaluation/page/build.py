"""Builds the report of a run: its figures as PDF and PNG files, and its HTML page."""

from __future__ import annotations

import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from aprec_like.calibration import TruthGap
from aprec_like.files import refuse_links
from aprec_like.settings import SettingsClasses
from evaluation.analysis.comparison import Comparison, compare_models
from evaluation.analysis.unrounded import table_files
from evaluation.calibration.summary import calibration_table
from evaluation.cli import DONE, import_tensorflow
from evaluation.figures.all_figures import ReportFigure, main_metric, make_figures, write_figures
from evaluation.page.data_and_models import Models, dataset_facts, describe_models, environment_facts
from evaluation.page.html import Fact, HtmlFigure, HtmlTable, render_page, to_html_figure, to_html_table
from evaluation.page.large_files import LargeFileData, read_large_files, write_report_data
from evaluation.page.sections import (
    Citation,
    Pairs,
    Results,
    describe_citation,
    describe_pairs,
    describe_published,
    describe_results,
    subtitle,
    summarise,
)
from evaluation.results.load import LoadedRuns, load_runs
from evaluation.results.own_classes import load_own_classes
from evaluation.results.store import RunFolder
from evaluation.table import Table

SECTIONS = {
    "summary": "Summary",
    "results": "Results",
    "pairs": "Pairs",
    "paper": "Paper",
    "training": "Training",
    "calibration": "Calibration",
    "dataset": "Data",
    "models": "Models",
    "environment": "Environment",
    "cite": "Cite",
}
"""Titles of the sections of the page by identifier."""


MAX_CALIBRATED_MODELS = 40
"""The section on calibration shows all models up to this number, else the best ones: it holds the top items of each."""


@dataclass(frozen=True)
class Page:
    """Everything that the template of the page shows.

    Args:
        title: name of the run.
        subtitle: one line below it.
        sections: titles of the sections by identifier.
        figures: by identifier of the section.
        summary, results, pairs, paper, calibration, dataset, models, environment, citation: contents of the sections.
    """

    title: str
    subtitle: str
    sections: Mapping[str, str]
    figures: Mapping[str, Sequence[HtmlFigure]]
    summary: Sequence[str]
    results: Results | None
    pairs: Pairs
    paper: HtmlTable
    calibration: Sequence[HtmlTable]
    dataset: Sequence[Fact]
    models: Models
    environment: Sequence[Fact]
    citation: Citation


@dataclass(frozen=True)
class ReportOptions:
    """The command line of `evaluation.report`.

    Args:
        run: the results folder.
        user: ID of the user whose predicted probabilities are shown; `None` for the default.
        truth: whether to compare the probabilities of all items with the true ones.
        recipe: recipe file whose own classes are loaded; `None` for none.
    """

    run: Path
    user: str | None
    truth: bool
    recipe: Path | None = None


def write_report(options: ReportOptions) -> int:
    """Write the figures, the tables and the page of a run; returns the exit code."""
    folder = RunFolder(options.run)
    refuse_links(folder.path)
    runs = load_runs([folder])
    comparison = compare_models(runs)
    print(f"reading the predictions of {len(runs.models):,} model{'s' * (len(runs.models) != 1)}", file=sys.stderr)
    own = _load_own_classes(folder, options.recipe)
    data = read_large_files(runs, _calibrated_names(comparison), options.user, own, with_truth=options.truth)
    for remark in data.remarks:
        print(remark, file=sys.stderr)
    print("drawing the figures", file=sys.stderr)
    figures = list(make_figures(runs, comparison, data.calibration, data.item_counts))
    write_figures(folder, figures)
    folder.write_tables(table_files(comparison))
    write_report_data(runs, data)
    folder.write_report(render_page(build_page(runs, comparison, figures, data)))
    for figure in figures:
        if figure.name.startswith("grid"):
            print(figure.caption, file=sys.stderr)
    print(folder.report_path)
    return DONE


def _calibrated_names(comparison: Comparison) -> set[str] | None:
    """Return the models whose predictions are read: `None` for all, or if they are too many the best ones."""
    if len(comparison.rows) <= MAX_CALIBRATED_MODELS:
        return None
    best = comparison.ranked(main_metric(comparison.metrics))[:MAX_CALIBRATED_MODELS]
    return {*best, *(row.name for row in comparison.bounds)}


def build_page(runs: LoadedRuns, comparison: Comparison, figures: Sequence[ReportFigure], data: LargeFileData) -> Page:
    """Return the contents of the page of a run."""
    calibration = [calibration_table(data.calibration, data.remarks)] if data.calibration else []
    calibration += [] if data.truth_gaps is None else [_truth_table(data.truth_gaps)]
    paper = describe_published(comparison)
    omitted = {
        "pairs": len(comparison.rows) <= 1,
        "paper": not paper.blocks[0],
        "training": not runs.models,
        "calibration": not calibration,
    }
    return Page(
        title=runs.title,
        subtitle=subtitle(runs),
        sections={name: title for name, title in SECTIONS.items() if not omitted.get(name)},
        figures={name: [to_html_figure(figure) for figure in figures if figure.section == name] for name in SECTIONS},
        summary=summarise(runs, comparison),
        results=describe_results(runs, comparison, data.beyond_accuracy),
        pairs=describe_pairs(runs, comparison),
        paper=paper,
        calibration=[to_html_table(table) for table in calibration],
        dataset=dataset_facts(runs.folders[0]),
        models=describe_models(runs),
        environment=environment_facts(runs.folders[0]),
        citation=describe_citation(runs, comparison),
    )


def _load_own_classes(folder: RunFolder, recipe: Path | None) -> SettingsClasses:
    """Return the own classes of a recipe file, which may need TensorFlow; nothing without one."""
    if recipe is not None:
        import_tensorflow()
    return load_own_classes(folder, recipe)


def _truth_table(gaps: Mapping[str, TruthGap]) -> Table:
    """Return a table of predicted against true probabilities of all items."""
    rows = [
        [name, f"{gap.top:.5f}", f"{gap.catalogue:.6f}", f"{gap.divergence:.4f}", f"{gap.excluded:.1%}"]
        for name, gap in gaps.items()
    ]
    return Table(
        "truth",
        ["Model", "|p - P| top 10", "|p - P| catalogue", "KL", "Excluded"],
        [rows],
        "Predicted against true probabilities: mean distance over each user's first 10 items and over the whole "
        "catalogue, the divergence KL(P || p / sum p), which judges the shape alone, and the share of the predicted "
        "mass on items of the history, which rankings that exclude seen items leave out.",
    )
