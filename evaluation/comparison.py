"""A results folder to a comparison: every model's means, and its difference to the best, over the same users."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import pandas as pd

from aprec_like.errors import InputError
from aprec_like.interactions import Array
from evaluation.significance import Interval, PairedTest, correct, mean_interval, paired_t
from evaluation.store import Json, ModelFolder, RunFolder

ALPHA = 0.05


@dataclass(frozen=True)
class Cell:
    """One model under one metric.

    Args:
        value: mean over users and its 95 % interval.
        seed_std: standard deviation of the mean over seeds; `None` with one seed.
        test: against the comparator; `None` for the comparator itself.
        p_corrected: of that test, corrected for the family.
        published: the paper's number, where the recipe has one.
    """

    value: Interval
    seed_std: float | None
    test: PairedTest | None
    p_corrected: float | None
    published: float | None


@dataclass(frozen=True)
class Row:
    """One finished model: a cell per metric, and the mean time to its best epoch over seeds."""

    name: str
    seeds: tuple[int, ...]
    cells: dict[str, Cell]
    seconds_to_best: float


@dataclass(frozen=True)
class Comparison:
    """What a table shows.

    Args:
        run: name of the run.
        metrics: columns, by name.
        rows: the finished models.
        bounds: the Oracle of simulated data: the best possible, so never best, second, or tested.
        literature: quoted rows, never tested.
        remarks: models that are missing from the table, and why.
        baseline: the comparator of every test; `None` compares with the best of each metric.
        alpha: level of significance.
        correction: for several tests.
        family_size: how many tests were corrected for.
        num_users: how many users.
        exclude_seen: whether seen items were left out of the rankings.
        num_candidates: among how many drawn items the sampled metrics rank; `None` without such metrics.
        groups: names of the models that stand together, by the name of the group.
    """

    run: str
    metrics: tuple[str, ...]
    rows: list[Row]
    bounds: list[Row]
    literature: dict[str, dict[str, float]]
    remarks: list[str]
    baseline: str | None
    alpha: float
    correction: str
    family_size: int
    num_users: int
    exclude_seen: bool
    num_candidates: int | None
    groups: dict[str, list[str]]

    def ranked(self, metric: str) -> list[str]:
        """Names of the models, best first by this metric."""
        return [row.name for row in sorted(self.rows, key=lambda row: -row.cells[metric].value.mean)]


@dataclass(frozen=True, eq=False)
class _Finished:
    name: str
    seeds: tuple[int, ...]
    per_seed: dict[str, Array]
    seconds_to_best: float

    def per_user(self, metric: str) -> Array:
        """(users,) means over seeds."""
        return np.mean(self.per_seed[metric], axis=0)


def compare_models(
    run: RunFolder,
    *,
    metrics: tuple[str, ...] | None = None,
    baseline: str | None = None,
    alpha: float = ALPHA,
    correction: str = "holm",
) -> Comparison:
    """Compare the finished models of a run; raises `InputError` if their users differ or a name is unknown."""
    settings = run.read_recipe()
    if settings is None:
        raise InputError(f"{run.path}: is not a results folder (it has no recipe.json)")
    available = tuple(settings["columns"])
    metrics = metrics or available
    if unknown := [metric for metric in metrics if metric not in available]:
        raise InputError(f"{run.path}: has no metric {unknown[0]}; it has {', '.join(available)}")
    finished, remarks, num_users = _read_models(run, list(settings["models"]), metrics)
    bounds = [model for model in finished if settings["models"].get(model.name, {}).get("class") == "Oracle"]
    models = [model for model in finished if model not in bounds]
    if baseline is not None and baseline not in {model.name for model in models}:
        raise InputError(f"{run.path}: has no finished model {baseline}")
    tests = _test_all(models, metrics, baseline)
    corrected = dict(zip(tests, correct([test.p_value for test in tests.values()], correction), strict=True))
    published = settings.get("published", {})

    def row(model: _Finished) -> Row:
        return Row(model.name, model.seeds, {name: cell(model, name) for name in metrics}, model.seconds_to_best)

    def cell(model: _Finished, metric: str) -> Cell:
        means = np.mean(model.per_seed[metric], axis=1)
        return Cell(
            value=mean_interval(model.per_user(metric)),
            seed_std=float(np.std(means, ddof=1)) if len(means) > 1 else None,
            test=tests.get((model.name, metric)),
            p_corrected=corrected.get((model.name, metric)),
            published=published.get(model.name, {}).get(metric),
        )

    return Comparison(
        run=run.path.name,
        metrics=metrics,
        rows=[row(model) for model in models],
        bounds=[row(model) for model in bounds],
        literature=settings.get("literature", {}),
        remarks=remarks,
        baseline=baseline,
        alpha=alpha,
        correction=correction,
        family_size=len(tests),
        num_users=num_users,
        exclude_seen=settings["evaluation"]["exclude_seen"],
        num_candidates=(settings["evaluation"].get("candidates") or {}).get("num_candidates"),
        groups=settings.get("groups", {}),
    )


def _read_models(run: RunFolder, order: list[str], metrics: tuple[str, ...]) -> tuple[list[_Finished], list[str], int]:
    """The finished models in the recipe's order, remarks on the others, and the number of users."""
    folders: dict[str, dict[int, ModelFolder]] = {name: {} for name in order}
    for name, seed, folder in run.models():
        folders.setdefault(name, {})[seed] = folder
    models, remarks = [], []
    cases: pd.DataFrame | None = None
    for name, by_seed in folders.items():
        if not by_seed:
            remarks.append(f"{name}: not run")
        finished: dict[int, tuple[pd.DataFrame, Json]] = {}
        for seed, folder in by_seed.items():
            status = folder.status()
            if status["state"] == "finished":
                finished[seed] = (folder.read_per_user(), status)
            else:
                remarks.append(
                    f"{name}, seed {seed}: {status['state']}" + (f": {status['reason']}" if "reason" in status else "")
                )
        for seed, (frame, _) in finished.items():
            cases = frame[["user", "target"]] if cases is None else cases
            if not frame[["user", "target"]].equals(cases):
                raise InputError(f"{run.path}: {name}, seed {seed}, was tested on other users or targets than the rest")
        if finished:
            frames = [frame for frame, _ in finished.values()]
            models.append(
                _Finished(
                    name,
                    tuple(finished),
                    {metric: np.stack([frame[metric].to_numpy() for frame in frames]) for metric in metrics},
                    float(np.mean([status["seconds_to_best"] for _, status in finished.values()])),
                )
            )
    return models, remarks, 0 if cases is None else len(cases)


def _test_all(
    models: list[_Finished], metrics: tuple[str, ...], baseline: str | None
) -> dict[tuple[str, str], PairedTest]:
    """The test of every model and metric against the comparator of that metric."""
    tests = {}
    for metric in metrics:
        if not models:
            continue
        best = max(models, key=lambda model: float(np.mean(model.per_user(metric))))
        comparator = next((model for model in models if model.name == baseline), best)
        for model in models:
            if model is not comparator:
                tests[model.name, metric] = paired_t(model.per_user(metric), comparator.per_user(metric))
    return tests
