"""`Results`: results folders as tables, figures, pandas frames and recommendations."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import cached_property
from pathlib import Path

import pandas as pd

from aprec_like.errors import InputError
from evaluation.analysis.comparison import Comparison, Rules, compare_models
from evaluation.figures.all_figures import ReportFigure, make_figures
from evaluation.page.large_files import read_large_files
from evaluation.results.load import LoadedRuns, load_runs
from evaluation.results.store import ModelFolder, RunFolder


def load_results(*folders: Path | str) -> Results:
    """Load the finished models of one or more results folders on the same data; raises `InputError` if they can't be.

    Example:
        `load_results("results/ml1m_cpu").compare(baseline="SASRec")`
    """
    return Results(*folders)


class Results:
    """The finished models of results folders; a notebook shows their main table.

    Args:
        folders: results folders of runs on the same data.
    """

    def __init__(self, *folders: Path | str) -> None:
        self.folders = [RunFolder(Path(folder)) for folder in folders]
        if not folders:
            raise InputError("results need at least one folder")
        self.runs  # noqa: B018 - what can't be read is refused here

    @cached_property
    def runs(self) -> LoadedRuns:
        """The per-user values of all models."""
        return load_runs(self.folders)

    @property
    def models(self) -> list[str]:
        """Names of the finished models."""
        return [model.name for model in self.runs.models]

    def compare(
        self,
        *,
        metrics: Sequence[str] = (),
        baseline: str | None = None,
        test: str = "paired-t",
        correction: str = "holm",
        alpha: float = 0.05,
    ) -> Comparison:
        """Test every model against the best of each metric or a baseline: the comparison of `evaluation.compare`.

        Args:
            metrics: names such as "NDCG@5"; by default those of the recipe.
            baseline: name of a model; `None` for the best.
            test: paired-t, randomisation, bootstrap or wilcoxon.
            correction: holm, bonferroni or none.
            alpha: level of significance.
        """
        runs = load_runs(self.folders, metrics) if metrics else self.runs
        return compare_models(runs, Rules(baseline, test, correction, alpha))

    def metrics(self) -> pd.DataFrame:
        """Return the mean of every model and metric with its 95 % interval: model, metric, mean, low, high."""
        comparison = self.compare()
        rows = [
            {"model": row.name, "metric": metric, "mean": value.mean, "low": value.low, "high": value.high}
            for row in (*comparison.rows, *comparison.bounds)
            for metric, value in ((name, cell.value) for name, cell in row.cells.items())
        ]
        return pd.DataFrame(rows)

    def per_user(self) -> pd.DataFrame:
        """Return one row per model, seed and test user: target, rank, scores and metrics."""
        return self._concatenate(ModelFolder.read_per_user)

    def history(self) -> pd.DataFrame:
        """Return one row per model, seed and epoch: loss, validation, seconds."""
        return self._concatenate(ModelFolder.read_history)

    def _concatenate(self, read: Callable[[ModelFolder], pd.DataFrame]) -> pd.DataFrame:
        frames = []
        for model in self.runs.models:
            for seed, folder in zip(model.seeds, model.folders, strict=True):
                frame = read(folder)
                frame.insert(0, "model", model.name)
                frame.insert(1, "seed", seed)
                frames.append(frame)
        return pd.concat([frame for frame in frames if len(frame)] or frames[:1], ignore_index=True)

    def figures(self) -> dict[str, ReportFigure]:
        """Return the figures of `evaluation.report` by name, such as learning, confidence and pairs."""
        data = read_large_files(self.runs)
        drawn = make_figures(self.runs, self.compare(), data.calibration, data.item_counts)
        return {figure.name: figure for figure in drawn}

    def recommend(
        self,
        model: str,
        items: Sequence[object],
        k: int = 10,
        *,
        seed: int | None = None,
        data: Path | str | None = None,
    ) -> pd.DataFrame:
        """Return the k best items after a history: id, title if known, score, and probability if the loss defines it.

        Args:
            model: name of a finished model.
            items: the history, oldest first: ids of the data, or titles.
            k: number of items.
            seed: training seed; `None` for the first finished one.
            data: folder of data files, to fit counting models again; `None` for the default.
        """
        from evaluation.inference.recommendations import find_items, load_model

        run = next((folder for folder in self.folders if model in folder.read_recipe()["models"]), self.folders[0])
        history = find_items(run.read_items(), [str(item) for item in items])
        loaded = load_model(run, model, seed, None if data is None else Path(data))
        return pd.DataFrame(loaded.recommend(history, k))

    def _repr_html_(self) -> str:
        """Return the main table, as notebooks show it."""
        return self.compare()._repr_html_()
