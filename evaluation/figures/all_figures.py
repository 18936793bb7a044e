"""All figures that the results of a run allow, with their captions."""

from __future__ import annotations

import html
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

from matplotlib.figure import Figure

from evaluation.analysis.breakdown import ItemCounts
from evaluation.analysis.comparison import Comparison
from evaluation.analysis.pairwise import compare_pairs
from evaluation.calibration.summary import CalibrationSummary, caption_notes
from evaluation.figures.calibration import draw_confidence, draw_one_user, draw_reliability
from evaluation.figures.results import (
    draw_dataset,
    draw_learning,
    draw_pairwise,
    draw_quality_against_time,
    read_learning_curves,
)
from evaluation.figures.style import assign_styles, save_figure, to_svg
from evaluation.figures.sweeps import describe_grid, draw_grid, draw_sweeps, find_grids, find_sweeps
from evaluation.results.load import LoadedRuns
from evaluation.results.store import RunFolder, encode_name

MAIN_METRIC = "NDCG@10"
MAX_MATRIX_MODELS = 12
"""The matrix of all pairs is left out for more models than this."""
MAX_LINES = 12
"""Figures of lines show at most this many models, the best ones."""
MAX_MARKS = 40
"""The figure of quality against time, one mark per model, shows all models up to this number, else the best ones."""


@dataclass(frozen=True, eq=False)
class ReportFigure:
    """A figure of the page.

    Args:
        name: file name without suffix.
        section: identifier of the section of the page.
        caption: sentences below the figure.
        figure: the drawing.
    """

    name: str
    section: str
    caption: str
    figure: Figure

    def _repr_html_(self) -> str:
        """Return the figure with its caption, as notebooks show it."""
        return f"<figure>{to_svg(self.figure, self.name)}<figcaption>{html.escape(self.caption)}</figcaption></figure>"


def main_metric(metrics: Sequence[str]) -> str:
    """Return the metric of figures that show one metric: NDCG@10, or the first one."""
    return MAIN_METRIC if MAIN_METRIC in metrics else metrics[0]


def make_figures(
    runs: LoadedRuns, comparison: Comparison, calibration: Sequence[CalibrationSummary], item_counts: ItemCounts
) -> Iterator[ReportFigure]:
    """Draw all figures of a run.

    Args:
        runs: the results.
        comparison: of these results.
        calibration: of the models whose scores are probabilities.
        item_counts: popularity of the items.
    """
    yield from _result_figures(runs, comparison)
    yield from _training_figures(runs, comparison)
    shown = _shown_models([summary.name for summary in calibration], comparison)
    yield from _calibration_figures(runs, [summary for summary in calibration if summary.name in shown])
    cases = runs.folders[0].read_cases(["history_length"])
    if len(cases):
        caption = "Items before the target of each test user; interactions of each item, targets left out."
        yield ReportFigure("dataset", "dataset", caption, draw_dataset(cases, item_counts))


def _shown_models(names: Sequence[str], comparison: Comparison) -> set[str]:
    """Return the models that a figure of lines shows: all, or if they are too many the best ones and the oracles."""
    if len(names) <= MAX_LINES:
        return set(names)
    ranked = [name for name in comparison.ranked(main_metric(comparison.metrics)) if name in names]
    return {*ranked[:MAX_LINES], *(row.name for row in comparison.bounds)}


def _result_figures(runs: LoadedRuns, comparison: Comparison) -> Iterator[ReportFigure]:
    metric = main_metric(runs.metrics)
    grids = find_grids(runs)
    for grid in grids:
        caption = f"{metric} by number of negatives and calibration. {describe_grid(grid, metric)}"
        yield ReportFigure(f"grid-{encode_name(grid.architecture)}", "results", caption, draw_grid(grid, metric))
    if sweeps := find_sweeps(runs):
        shown = list(dict.fromkeys((runs.metrics[0], metric)))
        caption = "Metrics against the number of negatives, by loss."
        yield ReportFigure("negatives", "results", caption, draw_sweeps(sweeps, shown))
    if 1 < len(comparison.rows) <= MAX_MATRIX_MODELS:
        pairs = compare_pairs(runs, metric, comparison.rules)
        caption = (
            f"{metric} of every pair, row minus column; "
            f"{comparison.rules.explain_star(f'{len(pairs.tests)} pairs', pairs.scope)}."
        )
        yield ReportFigure("pairs", "pairs", caption, draw_pairwise(metric, pairs))


def _training_figures(runs: LoadedRuns, comparison: Comparison) -> Iterator[ReportFigure]:
    styles, metric = assign_styles(runs.settings["models"]), main_metric(runs.metrics)
    shown = _shown_models([model.name for model in runs.models], comparison)
    if curves := read_learning_curves(runs, shown):
        caption = "Validation after every epoch, against epochs and against time; the large mark is the best epoch."
        yield ReportFigure("learning", "training", caption, draw_learning(curves, styles, _validation_metrics(runs)))
    if any(row.seconds_to_best is not None for row in comparison.rows):
        caption = f"Test {metric} with its 95 % interval against the time until the best epoch, validation included."
        rows = [row for row in comparison.rows if len(comparison.rows) <= MAX_MARKS or row.name in shown]
        caption += (
            f" The best {len(rows)} of {len(comparison.rows)} models." if len(rows) < len(comparison.rows) else ""
        )
        drawn = replace(comparison, rows=rows)
        yield ReportFigure("time", "training", caption, draw_quality_against_time(drawn, styles, metric))


def _calibration_figures(runs: LoadedRuns, summaries: Sequence[CalibrationSummary]) -> Iterator[ReportFigure]:
    if not summaries:
        return
    styles = assign_styles(runs.settings["models"])
    depth, notes = len(summaries[0].predicted), caption_notes(summaries)
    has_truth = any(summary.top_gap is not None for summary in summaries)
    caption = (
        f"Mean predicted probability of the first K items against mean Precision@K, K = 1 to {depth}, marks at 1, 2, "
        "5, 10, 20, 50, 100; dashed: the optimum of the loss for the sampler used, dotted: that of Theorem 1, whose "
        "sampler never draws the positive; of "
        + ("the true probabilities of these items." if has_truth else "an item with that precision.")
        + notes
    )
    has_hits = any(summary.precision.any() for summary in summaries)  # logarithmic axes have no zero
    if has_hits:
        yield ReportFigure("confidence", "calibration", caption, draw_confidence(summaries, styles))
    caption = (
        f"Predictions of the best {depth} items of every user in 20 bins of equal size: how often they came true, with "
        "Wilson's 95 % intervals; ECE is the mean distance over all bins, also those in which none came true and which "
        "the logarithmic axes leave out."
    )
    if has_hits:
        yield ReportFigure("reliability", "calibration", caption, draw_reliability(summaries, styles))
    caption = (
        f"Predicted probability of the best {depth} items of user {summaries[0].user.user}, and the sum over "
        "the whole catalogue; a circle is the item that came next." + notes
    )
    yield ReportFigure("user", "calibration", caption, draw_one_user(summaries, styles))


def _validation_metrics(runs: LoadedRuns) -> str:
    """Return the names of the metrics of early stopping."""
    stoppings = [(model.settings.get("training") or {}).get("early_stopping") or {} for model in runs.models]
    return ", ".join(dict.fromkeys(stopping["metric"] for stopping in stoppings if "metric" in stopping))


def write_figures(run: RunFolder, report_figures: Sequence[ReportFigure]) -> None:
    """Write every figure as PDF and PNG into the figures folder of a run."""
    for report_figure in report_figures:
        for suffix in (".pdf", ".png"):
            save_figure(report_figure.figure, run.figures_path / f"{report_figure.name}{suffix}")
