"""Show a run: every figure as PDF and PNG, and one page of HTML that opens from disk and needs nothing else.

python -m evaluation.report results/ml1m_gsasrec
"""

from __future__ import annotations

import argparse
import logging
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from evaluation.cli import DONE, EXIT_CODES, import_tensorflow, run_command

if TYPE_CHECKING:
    from aprec_like.types import Array
    from evaluation.analysis.calibration import Subject
    from evaluation.analysis.comparison import Comparison
    from evaluation.figures.all_figures import ReportFigure
    from evaluation.page.html import Html
    from evaluation.results.load import LoadedRuns
    from evaluation.table import Table


def parse_arguments() -> argparse.Namespace:
    """The command line."""
    parser = argparse.ArgumentParser(
        prog="python -m evaluation.report",
        description="Draw the figures of a run into RUN/figures and write RUN/report.html: one page with results, "
        "tests, the paper's numbers, learning curves, calibration, data, settings, budgets and citations. Also while "
        "the run goes on: what is finished is shown.",
        epilog=EXIT_CODES,
    )
    parser.add_argument("run", type=Path, metavar="RUN", help="a results folder")
    parser.add_argument(
        "--user", metavar="ID", help="whose predicted probabilities are shown (default: as in the paper)"
    )
    parser.add_argument(
        "--truth",
        action="store_true",
        help="of simulated data: compare the probabilities of all items with the true ones, for which the models are "
        "asked again (needs their weights and TensorFlow)",
    )
    return parser.parse_args()


def main() -> int:
    """Write figures and page."""
    arguments = parse_arguments()
    from evaluation.analysis.calibration import calibration_table, read_subjects
    from evaluation.analysis.comparison import compare_models
    from evaluation.figures.all_figures import make_figures, write_figures
    from evaluation.results.load import load_runs
    from evaluation.results.store import RunFolder

    run = RunFolder(arguments.run)
    runs = load_runs([run])
    comparison = compare_models(runs)
    subjects = read_subjects(runs)
    truths = _truths(runs, subjects)
    tables = [calibration_table(subjects, truths)] if subjects else []
    if arguments.truth:
        tables.append(_truth_table(runs))
    report_figures = list(make_figures(runs, comparison, subjects, truths, arguments.user))
    write_figures(run, report_figures)
    run.write_report(make_page(runs, comparison, report_figures, tables))
    for report_figure in report_figures:
        if report_figure.name.startswith("grid"):
            print(report_figure.caption, file=sys.stderr)
    print(run.report_path)
    return DONE


def _truths(runs: LoadedRuns, subjects: Sequence[Subject]) -> Mapping[str, Array] | None:
    """The true probabilities, if they can be had: a page without them is better than none."""
    from aprec_like.errors import InputError
    from evaluation.analysis.calibration import read_truths

    try:
        return read_truths(runs, subjects)
    except InputError as error:
        print(f"not compared with the truth: {error}", file=sys.stderr)
        return None


def make_page(
    runs: LoadedRuns, comparison: Comparison, report_figures: Sequence[ReportFigure], calibration: Sequence[Table]
) -> str:
    """The page of a run."""
    from evaluation.page import data_and_models as cards
    from evaluation.page import sections
    from evaluation.page.html import figures, joined, table_of, whole_page

    def drawn(section: str) -> Html:
        return figures([one for one in report_figures if one.section == section])

    run, paper = runs.folders[0], sections.paper(comparison)
    parts = [
        ("summary", "Summary", sections.summary(runs, comparison)),
        ("results", "Results", joined([sections.results(runs, comparison), drawn("results")])),
    ]
    if len(comparison.rows) > 1:
        parts.append(("pairs", "Pairs", joined([drawn("pairs"), sections.pairs(runs, comparison)])))
    if paper is not None:
        parts.append(("paper", "Paper", paper))
    if runs.models:
        parts.append(("training", "Training", drawn("training")))
    if calibration:
        parts.append(("calibration", "Calibration", joined([*map(table_of, calibration), drawn("calibration")])))
    parts.append(("dataset", "Data", joined([cards.dataset_card(run), drawn("dataset")])))
    parts.append(("models", "Models", cards.models(runs)))
    parts.append(("environment", "Environment", cards.environment(run)))
    parts.append(("cite", "Cite", sections.citation(runs, comparison)))
    return whole_page(f"{runs.title}: results", sections.header_of(runs), parts)


def _truth_table(runs: LoadedRuns) -> Table:
    from evaluation.table import Table

    import_tensorflow()
    logging.getLogger("tensorflow").setLevel(logging.ERROR)  # each network is traced once, which it takes for a loop
    from evaluation.analysis.truth import full_gaps

    lines = [
        [name, f"{gap.top:.5f}", f"{gap.catalogue:.6f}", f"{gap.divergence:.4f}"]
        for name, gap in full_gaps(runs).items()
    ]
    return Table(
        "truth",
        ["Model", "|p - P| top 10", "|p - P| catalogue", "KL"],
        [lines],
        "Predicted against true probabilities: mean distance over each user's first 10 items and over the whole "
        "catalogue, and the divergence KL(P || p / sum p), which judges the shape alone.",
    )


if __name__ == "__main__":
    sys.exit(run_command(main))
