"""Reading results: every finished model as its per-user values, over users that are the same for all."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from urllib.parse import unquote

import numpy as np
import pandas as pd

from aprec_like.errors import InputError
from aprec_like.types import Array, Json
from evaluation.results.store import ModelFolder, RunFolder


@dataclass(frozen=True, eq=False)
class Contestant:
    """One model.

    Args:
        name: as it stands in the table.
        seeds: it was trained with.
        values: (seeds, users) by the name of a metric.
        seconds_to_best: mean over seeds; `None` for results from elsewhere.
        settings: as recipe.json has them; empty for results from elsewhere.
        folders: where its rankings are, one per seed.
        is_bound: whether it is the best possible ranking of simulated data.
    """

    name: str
    seeds: tuple[int, ...]
    values: dict[str, Array]
    seconds_to_best: float | None
    settings: Json = field(default_factory=dict)
    folders: tuple[ModelFolder, ...] = ()
    is_bound: bool = False

    def per_user(self, metric: str) -> Array:
        """(users,) means over seeds."""
        return np.mean(self.values[metric], axis=0)

    @property
    def best_validation(self) -> float | None:
        """The best value that validation found, mean over seeds; `None` for a model that was not validated."""
        values = [folder.status().get("best_validation") for folder in self.folders]
        known = [float(value) for value in values if value is not None]
        return float(np.mean(known)) if known else None


@dataclass(frozen=True, eq=False)
class Contest:
    """All that take part in a comparison.

    Args:
        title: name of the run or runs.
        contestants: in the order of the table.
        metrics: names of the columns.
        cases: user and target of every row of the values.
        settings: of the recipe (of the first run, but models, groups and quoted rows of all).
        remarks: models that are missing, and why.
        runs: the folders.
    """

    title: str
    contestants: list[Contestant]
    metrics: tuple[str, ...]
    cases: pd.DataFrame
    settings: Json
    remarks: list[str]
    runs: tuple[RunFolder, ...]

    def find(self, name: str) -> Contestant:
        """The contestant of this name."""
        found = next((contestant for contestant in self.contestants if contestant.name == name), None)
        if found is None:
            names = ", ".join(contestant.name for contestant in self.contestants) or "none"
            raise InputError(f"{self.title}: has no finished model {name}; finished are {names}")
        return found


def read_contest(runs: Sequence[RunFolder], metrics: Sequence[str] = ()) -> Contest:
    """The finished models of runs on the same data; raises `InputError` where they can't be compared."""
    contests = [_read_run(run, title, tuple(metrics)) for run, title in zip(runs, _titles(runs), strict=True)]
    first = contests[0]
    for other in contests[1:]:
        _check_comparable(first, other)
    names = [contestant.name for contest in contests for contestant in contest.contestants]
    repeated = {name for name in names if names.count(name) > 1}

    def renamed(contest: Contest) -> list[Contestant]:
        return [
            replace(one, name=f"{one.name} ({contest.title})") if one.name in repeated else one
            for one in contest.contestants
        ]

    if len(contests) == 1:
        return first
    merged: dict[str, Json] = {name: {} for name in ("groups", "literature", "published")}
    for contest in contests:
        for name, values in merged.items():
            values |= {key: value for key, value in contest.settings.get(name, {}).items() if key not in repeated}
    return replace(
        first,
        title=" + ".join(contest.title for contest in contests),
        contestants=[contestant for contest in contests for contestant in renamed(contest)],
        settings=first.settings | merged,
        remarks=[f"{contest.title}: {remark}" for contest in contests for remark in contest.remarks],
        runs=tuple(runs),
    )


def _check_comparable(first: Contest, other: Contest) -> None:
    """Both must rank the same users' same targets, of the same data, by the same rules."""
    pair = f"{first.runs[0].path} and {other.runs[0].path} can't be compared"
    datasets = [contest.runs[0].read_dataset() for contest in (first, other)]
    reasons = {
        "the data differ (sha256 of the sequences)": [dataset.get("sha256") for dataset in datasets],
        "the splits differ (digest)": [dataset.get("split", {}).get("digest") for dataset in datasets],
        "one leaves out seen items and the other does not": [
            contest.settings["evaluation"]["exclude_seen"] for contest in (first, other)
        ],
        "they have other metrics": [set(contest.metrics) for contest in (first, other)],
    }
    for reason, (mine, yours) in reasons.items():
        if mine != yours:
            raise InputError(f"{pair}: {reason}; --side-by-side shows them without a test between them")
    if len(first.cases) and len(other.cases) and not first.cases.equals(other.cases):
        raise InputError(f"{pair}: their users or targets differ")


def _titles(runs: Sequence[RunFolder]) -> list[str]:
    """The names of the folders, each with as many of the folders above it as tell them apart."""
    paths = [run.path.resolve() for run in runs]
    if len(set(paths)) < len(paths):
        raise InputError(f"{next(path for path in paths if paths.count(path) > 1)}: is named twice")
    for depth in range(1, max(len(path.parts) for path in paths) + 1):
        titles = [unquote("/".join(path.parts[-depth:])) for path in paths]
        if len(set(titles)) == len(titles):
            break
    return titles


def _read_run(run: RunFolder, title: str, metrics: tuple[str, ...]) -> Contest:
    settings = run.read_recipe()
    if settings is None:
        raise InputError(f"{run.path}: is not a results folder (it has no recipe.json)")
    available = tuple(settings["columns"])
    if unknown := [metric for metric in metrics if metric not in available]:
        raise InputError(f"{run.path}: has no metric {unknown[0]}; it has {', '.join(available)}")
    contestants, remarks, cases = _read_models(run, settings, metrics or available)
    return Contest(title, contestants, metrics or available, cases, settings, remarks, (run,))


def _read_models(
    run: RunFolder, settings: Json, metrics: tuple[str, ...]
) -> tuple[list[Contestant], list[str], pd.DataFrame]:
    """The finished models in the recipe's order, remarks on the others, and the cases."""
    folders: dict[str, dict[int, ModelFolder]] = {name: {} for name in settings["models"]}
    for name, seed, folder in run.models():
        folders.setdefault(name, {})[seed] = folder
    contestants, remarks = [], []
    cases = pd.DataFrame({"user": [], "target": []})
    for name, by_seed in folders.items():
        if not by_seed:
            remarks.append(f"{name}: not run")
        finished: dict[int, tuple[pd.DataFrame, Json]] = {}
        for seed, folder in by_seed.items():
            status = folder.status()
            if status["state"] != "finished":
                reason = f": {status['reason']}" if "reason" in status else ""
                remarks.append(f"{name}, seed {seed}: {status['state']}{reason}")
                continue
            frame = folder.read_per_user()
            cases = frame[["user", "target"]] if len(cases) == 0 else cases
            if not frame[["user", "target"]].equals(cases):
                raise InputError(f"{run.path}: {name}, seed {seed}, was tested on other users or targets than the rest")
            finished[seed] = (frame, status)
        if finished:
            of_model = settings["models"].get(name, {})
            contestants.append(
                Contestant(
                    name=name,
                    seeds=tuple(finished),
                    values={
                        metric: np.stack([frame[metric].to_numpy() for frame, _ in finished.values()])
                        for metric in metrics
                    },
                    seconds_to_best=float(np.mean([status["seconds_to_best"] for _, status in finished.values()])),
                    settings=of_model,
                    folders=tuple(by_seed[seed] for seed in finished),
                    is_bound=of_model.get("class") == "Oracle",
                )
            )
    return contestants, remarks, cases
