"""Comparison of models: means over users, and the tested difference of each model to the best or to a baseline."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from aprec_like.errors import InputError
from aprec_like.types import Array
from evaluation.analysis.significance import (
    Interval,
    PairedTest,
    correct,
    detectable_difference,
    mean_interval,
    paired_test,
    remark_on,
)
from evaluation.results.load import LoadedRuns, ModelResults

ALPHA = 0.05


@dataclass(frozen=True)
class Rules:
    """How models are tested.

    Args:
        baseline: the comparator of every test; `None` compares with the best of each metric.
        test: name of the test.
        correction: for several tests.
        alpha: level of significance.
    """

    baseline: str | None = None
    test: str = "paired-t"
    correction: str = "holm"
    alpha: float = ALPHA


@dataclass(frozen=True)
class Cell:
    """One model under one metric.

    Args:
        value: mean over users and its 95 % interval.
        seed_std: standard deviation of the mean over seeds; `None` with one seed.
        seed_share: of the variance of the mean, how much is due to seeds rather than users; `None` with one seed.
        comparator: whom it was tested against; `None` for the comparator itself.
        test: the test; `None` for the comparator itself.
        relative: the difference as a share of the comparator's mean; `None` where that is zero.
        p_corrected: of that test, corrected for the family.
        detectable: the smallest difference to the comparator that these users would show.
        published: the paper's number, where the recipe has one.
    """

    value: Interval
    seed_std: float | None
    seed_share: float | None
    comparator: str | None
    test: PairedTest | None
    relative: float | None
    p_corrected: float | None
    detectable: float | None
    published: float | None


@dataclass(frozen=True)
class Row:
    """One finished model: a cell per metric, and the mean time to its best epoch over seeds."""

    name: str
    seeds: tuple[int, ...]
    cells: dict[str, Cell]
    seconds_to_best: float | None


@dataclass(frozen=True)
class Comparison:
    """What a table shows.

    Args:
        run: name of the run.
        metrics: columns, by name.
        rows: the finished models.
        bounds: the Oracle of simulated data: the best possible, so never best, second, or tested.
        literature: quoted rows, never tested.
        remarks: models that are missing from the table, and why; what a test or the data can't show.
        rules: of the tests.
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
    rules: Rules
    family_size: int
    num_users: int
    exclude_seen: bool
    num_candidates: int | None
    groups: dict[str, list[str]]

    def ranked(self, metric: str) -> list[str]:
        """Names of the models, best first by this metric."""
        return [row.name for row in sorted(self.rows, key=lambda row: -row.cells[metric].value.mean)]

    def is_significant(self, cell: Cell) -> bool:
        """Whether the model differs from its comparator."""
        return cell.p_corrected is not None and cell.p_corrected < self.rules.alpha


def compare_models(runs: LoadedRuns, rules: Rules | None = None) -> Comparison:
    """Test every model against the best of each metric, or against the baseline, which must be among them."""
    rules = rules or Rules()
    models = [model for model in runs.models if not model.is_oracle]
    names = [model.name for model in runs.models]
    if repeated := [name for name in names if names.count(name) > 1]:
        raise InputError(f"{runs.title}: two models are called {repeated[0]}; tests could not tell them apart")
    if rules.baseline is not None and runs.find(rules.baseline).is_oracle:
        raise InputError(f"{rules.baseline} is the best possible ranking, not a model to be tested against")
    comparators = {metric: _comparator(models, metric, rules.baseline) for metric in runs.metrics} if models else {}
    tests = {
        (model.name, metric): paired_test(model.per_user(metric), comparator.per_user(metric), rules.test)
        for metric, comparator in comparators.items()
        for model in models
        if model is not comparator
    }
    corrected = dict(zip(tests, correct([test.p_value for test in tests.values()], rules.correction), strict=True))
    published = runs.settings.get("published", {})
    family_size, num_users = (1 if rules.correction == "none" else len(tests)), len(runs.cases)

    def cell(model: ModelResults, metric: str) -> Cell:
        key = (model.name, metric)
        test = tests.get(key)
        mean = float(np.mean(comparators[metric].per_user(metric))) if test else 0.0
        return Cell(
            value=mean_interval(model.per_user(metric)),
            **_spread_over_seeds(model.values[metric]),
            comparator=comparators[metric].name if test else None,
            test=test,
            relative=test.difference.mean / mean if test and mean else None,
            p_corrected=corrected.get(key),
            detectable=detectable_difference(test.spread, num_users, rules.alpha, family_size) if test else None,
            published=published.get(model.name, {}).get(metric),
        )

    def row(model: ModelResults) -> Row:
        return Row(model.name, model.seeds, {name: cell(model, name) for name in runs.metrics}, model.seconds_to_best)

    rows = [row(model) for model in models]
    remark = remark_on(rules.test, rules.alpha, len(tests), rules.correction) if tests else None
    return Comparison(
        run=runs.title,
        metrics=runs.metrics,
        rows=rows,
        bounds=[row(model) for model in runs.models if model.is_oracle],
        literature=runs.settings.get("literature", {}),
        remarks=[*([remark] if remark else []), *_undetectable(rows, rules), *runs.remarks],
        rules=rules,
        family_size=len(tests),
        num_users=len(runs.cases),
        exclude_seen=runs.settings["evaluation"]["exclude_seen"],
        num_candidates=(runs.settings["evaluation"].get("candidates") or {}).get("num_candidates"),
        groups=runs.settings.get("groups", {}),
    )


def _comparator(models: list[ModelResults], metric: str, baseline: str | None) -> ModelResults:
    best = max(models, key=lambda model: float(np.mean(model.per_user(metric))))
    return next((model for model in models if model.name == baseline), best)


def _spread_over_seeds(values: Array) -> dict[str, float | None]:
    """What (seeds, users) values say of seeds: the spread of the mean, and its share in the variance of the mean."""
    num_seeds, num_users = values.shape
    if num_seeds == 1:
        return {"seed_std": None, "seed_share": None}
    of_seeds = float(np.var(np.mean(values, axis=1), ddof=1)) / num_seeds
    of_users = float(np.var(np.mean(values, axis=0), ddof=1)) / num_users
    total = of_seeds + of_users
    return {"seed_std": float(np.sqrt(of_seeds * num_seeds)), "seed_share": of_seeds / total if total else 0.0}


def _undetectable(rows: list[Row], rules: Rules) -> list[str]:
    """Differences that are not significant and too small for this data to show."""
    return [
        f"{row.name} and {cell.comparator}, {metric}: the difference of {abs(cell.test.difference.mean):.4f} is not "
        f"significant, and these users could hardly show one below {cell.detectable:.4f}"
        for row in rows
        for metric, cell in row.cells.items()
        if cell.test and cell.p_corrected is not None and cell.p_corrected >= rules.alpha
        if cell.detectable is not None and abs(cell.test.difference.mean) < cell.detectable
    ]
