"""The figures of `evaluation.compare --figures`: the matrix of all pairs, and differences in groups of users."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path

from matplotlib.figure import Figure

from evaluation.analysis.breakdown import stratify
from evaluation.analysis.compare_runs import CompareOptions
from evaluation.analysis.pairwise import compare_pairs
from evaluation.figures.results import draw_pairwise, draw_strata
from evaluation.figures.style import save_figure
from evaluation.results.load import LoadedRuns
from evaluation.results.store import encode_name


def write_compare_figures(groups: Sequence[LoadedRuns], options: CompareOptions, folder: Path) -> list[Path]:
    """Write the figures of --pairwise and --explain as PDF and PNG, one per metric; returns their paths."""
    paths = []
    for runs in groups:
        for metric in runs.metrics:
            for kind, figure in _draw(runs, metric, options):
                for suffix in ("pdf", "png"):
                    paths.append(folder / f"{encode_name(runs.title)}-{kind}-{encode_name(metric)}.{suffix}")
                    save_figure(figure, paths[-1])
    return paths


def _draw(runs: LoadedRuns, metric: str, options: CompareOptions) -> Iterator[tuple[str, Figure]]:
    if options.pairwise:
        yield "pairwise", draw_pairwise(metric, compare_pairs(runs, metric, options.rules))
    if options.explain:
        yield "strata", draw_strata(metric, stratify(runs, metric, *options.explain), *options.explain)
