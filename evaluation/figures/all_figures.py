"""Which figures a run has: every one that its results allow, with its caption."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import pandas as pd
from matplotlib.figure import Figure

from aprec_like.errors import InputError
from aprec_like.types import Array
from evaluation.analysis.breakdown import compare_pairs
from evaluation.analysis.calibration import Subject, remarks_on
from evaluation.analysis.comparison import Comparison
from evaluation.figures.calibration import draw_confidence, draw_one_user, draw_reliability
from evaluation.figures.results import (
    draw_dataset,
    draw_learning,
    draw_pairwise,
    draw_quality_against_time,
    read_learning_curves,
)
from evaluation.figures.style import looks_of, save
from evaluation.figures.sweeps import describe_grid, draw_grid, draw_series, find_grids, find_series
from evaluation.results.load import LoadedRuns
from evaluation.results.store import RunFolder, encode_name

MAIN_METRIC = "NDCG@10"
PAPERS_USER = 963
"""The user of MovieLens-1M whose probabilities the gSASRec paper shows."""
MAX_PAIRS = 12
"""More models than this make a matrix that nobody reads."""
MAX_LINES = 10
"""More lines than this make a figure that nobody reads; of a larger run the best models are drawn."""


@dataclass(frozen=True, eq=False)
class Illustration:
    """A figure, the name of its files, the section of the page that it stands in, and what it shows."""

    name: str
    section: str
    caption: str
    figure: Figure


def main_metric(metrics: Sequence[str]) -> str:
    """The metric that figures of one metric show."""
    return MAIN_METRIC if MAIN_METRIC in metrics else metrics[0]


def illustrate(
    runs: LoadedRuns,
    comparison: Comparison,
    subjects: Sequence[Subject],
    truths: Mapping[str, Array] | None = None,
    user: str | None = None,
) -> Iterator[Illustration]:
    """All figures of a run; `user` is the one whose probabilities are shown."""
    yield from _of_results(runs, comparison)
    yield from _of_training(runs, comparison)
    shown = _readable([subject.name for subject in subjects], comparison)
    yield from _of_calibration(runs, [subject for subject in subjects if subject.name in shown], truths, user)
    cases, items = runs.folders[0].read_cases(), runs.folders[0].read_items()
    if len(cases):
        caption = "Items before the target of each test user; interactions of each item, targets left out."
        yield Illustration("dataset", "dataset", caption, draw_dataset(cases, items))


def _readable(names: Sequence[str], comparison: Comparison) -> set[str]:
    """The models that a figure of lines shows: all, or if they are too many the best of them and the bounds."""
    if len(names) <= MAX_LINES:
        return set(names)
    ranked = [name for name in comparison.ranked(main_metric(comparison.metrics)) if name in names]
    return {*ranked[:MAX_LINES], *(row.name for row in comparison.bounds)}


def _of_results(runs: LoadedRuns, comparison: Comparison) -> Iterator[Illustration]:
    metric = main_metric(runs.metrics)
    grids = find_grids(runs)
    for grid in grids:
        caption = f"{metric} by number of negatives and calibration. {describe_grid(grid, metric)}"
        yield Illustration(f"grid-{encode_name(grid.architecture)}", "results", caption, draw_grid(grid, metric))
    if series := find_series(runs):
        shown = list(dict.fromkeys((runs.metrics[0], metric)))
        caption = "Metrics against the number of negatives, by loss."
        yield Illustration("negatives", "results", caption, draw_series(series, shown))
    if 1 < len(comparison.rows) <= MAX_PAIRS:
        pairs = compare_pairs(runs, metric, comparison.rules)
        caption = (
            f"{metric} of every pair, row minus column; * differs (p < {comparison.rules.alpha:g}, "
            f"{comparison.rules.correction.capitalize()} over {len(pairs.tests)} pairs)."
        )
        yield Illustration("pairs", "pairs", caption, draw_pairwise(metric, pairs))


def _of_training(runs: LoadedRuns, comparison: Comparison) -> Iterator[Illustration]:
    looks, metric = looks_of(runs.settings["models"]), main_metric(runs.metrics)
    shown = _readable([model.name for model in runs.models], comparison)
    if curves := [curve for curve in read_learning_curves(runs) if curve.model in shown]:
        caption = "Validation after every epoch, against epochs and against time; the large mark is the best epoch."
        yield Illustration("learning", "training", caption, draw_learning(curves, looks, _validated(runs)))
    if any(row.seconds_to_best is not None for row in comparison.rows):
        caption = f"Test {metric} with its 95 % interval against the time until the best epoch, validation included."
        yield Illustration("time", "training", caption, draw_quality_against_time(comparison, looks, metric))


def _of_calibration(
    runs: LoadedRuns, subjects: Sequence[Subject], truths: Mapping[str, Array] | None, user: str | None
) -> Iterator[Illustration]:
    if not subjects:
        return
    looks = looks_of(runs.settings["models"])
    depth = subjects[0].items.shape[1]
    caption = (
        f"Mean predicted probability of the first K items against mean Precision@K, K = 1 to {depth}, marks at 1, 2, "
        "5, 10, 20, 50, 100; dashed: what Theorem 1 predicts for the loss and the sampler used, of "
        + ("an item with that precision." if truths is None else "the true probabilities of these items.")
        + remarks_on(subjects)
    )
    yield Illustration("confidence", "calibration", caption, draw_confidence(subjects, looks, truths))
    caption = (
        f"Predictions of the best {depth} items of every user in 20 bins of equal size: how often they came true, with "
        "Wilson's 95 % intervals; ECE is the mean distance over all bins, also those in which none came true and which "
        "the logarithmic axes leave out."
    )
    yield Illustration("reliability", "calibration", caption, draw_reliability(subjects, looks))
    case = _case_of(runs, user)
    caption = (
        f"Predicted probability of the best {depth} items of user {runs.cases['user'].iloc[case]}, and the sum over "
        "the whole catalogue; a circle is the item that came next." + remarks_on(subjects)
    )
    figure = draw_one_user(subjects, looks, case, runs.cases["user"].iloc[case])
    yield Illustration("user", "calibration", caption, figure)


def _case_of(runs: LoadedRuns, user: str | None) -> int:
    """The row of the user to show: the one that was named, else the paper's, else the first."""
    users = pd.Index(runs.cases["user"].astype(str))
    if user is None:
        is_papers = runs.settings["dataset"].get("class") == "MovieLens1M"
        user = str(PAPERS_USER) if is_papers and str(PAPERS_USER) in users else users[0]
    if user not in users:
        raise InputError(f"{runs.title}: has no test user {user}; some are {', '.join(users[:5])}")
    return int(np.argmax(users == user))


def _validated(runs: LoadedRuns) -> str:
    """The metrics that epochs were chosen by."""
    stoppings = [(model.settings.get("training") or {}).get("early_stopping") or {} for model in runs.models]
    return ", ".join(dict.fromkeys(stopping["metric"] for stopping in stoppings if "metric" in stopping))


def write_figures(run: RunFolder, illustrations: Sequence[Illustration]) -> None:
    """Write every figure as PDF for papers and PNG for everything else."""
    for illustration in illustrations:
        for ending in (".pdf", ".png"):
            save(illustration.figure, run.figures_path / f"{illustration.name}{ending}")
