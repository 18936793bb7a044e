"""Loads the finished models of results folders as per-user values, aligned over the same users."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Literal

import numpy as np
import pandas as pd

from aprec_like.errors import InputError
from aprec_like.out_of_core import stack_arrays
from aprec_like.types import Array, Json
from evaluation.cli import track
from evaluation.results.folder_names import title_of_data, titles_of
from evaluation.results.identity import identify, learns_validation
from evaluation.results.store import MODEL_FILES, OPTIONAL_FILES, ModelFolder, RunFolder, check_is_finished
from evaluation.results.user_columns import check_metric_names, read_metric_values

Origin = Literal["trained", "counting", "imported"]
"""Whether results come from training, from counting, or from another tool."""


SMALL_FILES = tuple(name for name in MODEL_FILES if name not in (*OPTIONAL_FILES, "per_user.parquet"))
"""Files of a model that are verified although a table does not need them; per_user.parquet is when it is read."""


@dataclass(frozen=True)
class Caveat:
    """What a reader must know about a model's values.

    Args:
        mark: a few words beside the model's name in a table.
        sentence: the fact in full, for the notes of a table; the name of the model precedes it.
        remedy: what would help, for those who run the model; empty if nothing is known to.
    """

    mark: str
    sentence: str
    remedy: str = ""

    @property
    def advice(self) -> str:
        """The fact and its remedy."""
        return f"{self.sentence}: {self.remedy}" if self.remedy else self.sentence


@dataclass(frozen=True, eq=False)
class ModelResults:
    """The per-user values of one model.

    Args:
        name: row label in tables.
        seeds: training seeds.
        values: arrays (seeds, users) by metric name.
        seconds_to_best: mean over seeds; `None` for imported results.
        settings: the model's entry in recipe.json; empty for imported results.
        folders: results folders, one per seed; empty for imported results.
        is_oracle: True for the best possible ranking of simulated data.
        caveats: what tables must say about the values.
        learns_validation: whether the model learned from the validation part too; `None` if it is not known.
        tuning: the budget with which its settings were chosen, from recipe.json; `None` if it was not tuned.
    """

    name: str
    seeds: tuple[int, ...]
    values: dict[str, Array]
    seconds_to_best: float | None
    settings: Json = field(default_factory=dict)
    folders: tuple[ModelFolder, ...] = ()
    is_oracle: bool = False
    caveats: tuple[Caveat, ...] = ()
    learns_validation: bool | None = None
    tuning: Json | None = None

    @property
    def num_users(self) -> int:
        """Number of test users."""
        return next((values.shape[1] for values in self.values.values()), 0)

    @property
    def is_counting(self) -> bool:
        """Whether the model counts instead of training, so that its results do not depend on a seed."""
        return self.settings.get("class", "Trained") != "Trained"

    @property
    def origin(self) -> Origin:
        """Where the results come from."""
        return "counting" if self.is_counting else "trained" if self.settings or self.folders else "imported"

    def per_user(self, metric: str) -> Array:
        """Return the means over seeds, (users,)."""
        values = self.values[metric]
        return values[0] if len(values) == 1 else np.mean(values, axis=0)

    def seed_std(self, metric: str) -> float | None:
        """Return the standard deviation of the mean over seeds; `None` with one seed."""
        means = np.mean(self.values[metric], axis=1)
        return float(np.std(means, ddof=1)) if len(means) > 1 else None

    @property
    def best_validation(self) -> float | None:
        """Best validation value, mean over seeds; `None` for a model without validation."""
        values = [folder.status().get("best_validation") for folder in self.folders]
        known = [float(value) for value in values if value is not None]
        return float(np.mean(known)) if known else None


@dataclass(frozen=True, eq=False)
class LoadedRuns:
    """The finished models of one or more runs on the same data.

    Args:
        title: name of the run, or names of the runs.
        models: in table order.
        metrics: names of the loaded metrics.
        num_users: number of test users, the columns of the values.
        cases_digest: sha256 of users and targets in their order; empty without finished models.
        settings: the recipe of the first run; groups, published and quoted rows of all runs.
        remarks: unfinished models, with reasons.
        folders: the runs' results folders.
    """

    title: str
    models: list[ModelResults]
    metrics: tuple[str, ...]
    num_users: int
    cases_digest: str
    settings: Json
    remarks: list[str]
    folders: tuple[RunFolder, ...]

    @cached_property
    def cases(self) -> pd.DataFrame:
        """Columns user and target, one row per test user; read when they are first asked for."""
        folder = next((model.folders[0] for model in self.models if model.folders), None)
        return pd.DataFrame({"user": [], "target": []}) if folder is None else folder.read_cases()

    @property
    def dataset(self) -> Json:
        """The first run's dataset.json; empty if there is none."""
        return self.folders[0].read_dataset() if self.folders and self.folders[0].has_dataset else {}

    @property
    def tested_models(self) -> list[ModelResults]:
        """All models but the oracle of simulated data, which no test includes."""
        return [model for model in self.models if not model.is_oracle]

    @property
    def dataset_title(self) -> str:
        """Name of the data, as `title_of_data` returns it."""
        return title_of_data(self.settings)

    def find(self, name: str) -> ModelResults:
        """Return the model of this name; raises `InputError` if there is none."""
        check_is_finished(name, [model.name for model in self.models], self.title)
        return next(model for model in self.models if model.name == name)


def load_runs(folders: Sequence[RunFolder], metrics: Sequence[str] = ()) -> LoadedRuns:
    """Load the finished models of runs on the same data.

    Args:
        folders: results folders; models that several of them have get the run's title after their name.
        metrics: names of the metrics to load; all by default.

    Raises `InputError` if a folder is damaged, or the runs are not comparable.
    """
    titles = titles_of([folder.path for folder in folders])
    loaded = [_load_run(folder, title, tuple(metrics)) for folder, title in zip(folders, titles, strict=True)]
    for other in loaded[1:]:
        _check_comparable(loaded[0], other)
    return loaded[0] if len(loaded) == 1 else _merge(loaded)


MERGED_SETTINGS = ("groups", "literature", "published", "published_stars", "known_differences")
"""Settings of all runs that are compared; the others must be equal or are those of the first run."""


def _merge(loaded: Sequence[LoadedRuns]) -> LoadedRuns:
    names = [model.name for run in loaded for model in run.models]
    repeated = {name for name in names if names.count(name) > 1}

    def rename(model: ModelResults, title: str) -> ModelResults:
        return replace(model, name=f"{model.name} ({title})") if model.name in repeated else model

    merged: dict[str, Json] = {name: {} for name in MERGED_SETTINGS}
    for run in loaded:
        for name, values in merged.items():
            values |= {key: value for key, value in run.settings.get(name, {}).items() if key not in repeated}
    return replace(
        loaded[0],
        title=" + ".join(run.title for run in loaded),
        models=[rename(model, run.title) for run in loaded for model in run.models],
        settings=loaded[0].settings | merged,
        remarks=[f"{run.title}: {remark}" for run in loaded for remark in run.remarks],
        folders=tuple(folder for run in loaded for folder in run.folders),
    )


def _check_comparable(first: LoadedRuns, other: LoadedRuns) -> None:
    """Check that two runs rank the same targets of the same users, on the same data, by the same rules."""
    pair = f"{first.folders[0].path} and {other.folders[0].path} can't be compared"
    datasets = [run.folders[0].read_dataset() for run in (first, other)]
    evaluations = [run.settings["evaluation"] for run in (first, other)]
    is_sampled = any(metric.endswith("(sampled)") for metric in first.metrics)
    reasons = {
        "the data differ (sha256 of catalogue and sequences)": [dataset.get("sha256") for dataset in datasets],
        "the splits differ (digest)": [dataset.get("split", {}).get("digest") for dataset in datasets],
        "the splits differ (training interactions)": [
            dataset.get("split", {}).get("train_interactions") for dataset in datasets
        ],
        "one excludes seen items and the other does not": [each["exclude_seen"] for each in evaluations],
        "their metrics differ": [set(run.metrics) for run in (first, other)],
        "their sampled candidates differ (number or seed)": [
            each.get("candidates") if is_sampled else None for each in evaluations
        ],
    }
    for reason, (mine, yours) in reasons.items():
        if mine != yours:
            raise InputError(f"{pair}: {reason}; --side-by-side shows them without a test between them")
    if first.num_users and other.num_users and first.cases_digest != other.cases_digest:
        raise InputError(f"{pair}: their users or targets differ")


def _load_run(run: RunFolder, title: str, metrics: tuple[str, ...]) -> LoadedRuns:
    settings = run.read_recipe()
    run.verify(settings)
    available = tuple(settings["columns"])
    check_metric_names(run.path, metrics, available)
    models, remarks, cases_digest = _load_models(run, settings, metrics or available)
    num_users = models[0].num_users if models else 0
    return LoadedRuns(title, models, metrics or available, num_users, cases_digest, settings, remarks, (run,))


def _load_models(run: RunFolder, settings: Json, metrics: tuple[str, ...]) -> tuple[list[ModelResults], list[str], str]:
    """Return the finished models in the recipe's order, remarks on the others, and the digest of the cases."""
    dataset = run.read_dataset() if "run" in settings else {}
    folders: dict[str, dict[int, ModelFolder]] = {name: {} for name in settings["models"]}
    others: dict[str, None] = {}
    for name, seed, folder in run.models():
        if name in folders:
            folders[name][seed] = folder
        else:
            others[name] = None
    models, remarks = [], [f"{name}: not in the recipe; its folder stays" for name in others]
    cases_digest = ""
    for name, by_seed in track(folders.items(), f"{run.path.name}: models read", len(folders)):
        if not by_seed:
            remarks.append(f"{name}: not run")
        finished: dict[int, ModelFolder] = {}
        values: list[dict[str, Array]] = []
        for seed, unread in by_seed.items():
            folder = unread.with_status()
            status = folder.status()
            if status["state"] != "finished":
                reason = f": {status['reason']}" if "reason" in status else ""
                remarks.append(f"{name}, seed {seed}: {status['state']}{reason}")
                continue
            if dataset:
                folder.check_identity(identify(settings, dataset, name, seed))
            folder.verify(SMALL_FILES)
            with folder.open_per_user() as columns:
                values.append(read_metric_values(columns, metrics))
                digest = columns.digest_cases()
            cases_digest = cases_digest or digest
            if digest != cases_digest:
                raise InputError(f"{run.path}: {name}, seed {seed}, was tested on other users or targets than the rest")
            finished[seed] = folder
        if finished:
            results = _model_results(name, finished, values, settings["models"][name], metrics)
            is_learned = learns_validation(results.settings, settings.get("fit_on", "mixed"))
            tuning = settings.get("tuning", {}).get(name)
            models.append(replace(results, learns_validation=None if results.is_oracle else is_learned, tuning=tuning))
    return models, remarks, cases_digest


def _model_results(
    name: str,
    folders: Mapping[int, ModelFolder],
    values: list[dict[str, Array]],
    settings: Json,
    metrics: Iterable[str],
) -> ModelResults:
    """Return the results of one model from its folders by seed and their values by metric."""
    seconds_to_best = [folder.status()["seconds_to_best"] for folder in folders.values()]
    return ModelResults(
        name=name,
        seeds=tuple(folders),
        values={metric: stack_arrays([each[metric] for each in values]) for metric in metrics},
        seconds_to_best=float(np.mean(seconds_to_best)),
        settings=settings,
        folders=tuple(folders.values()),
        is_oracle=settings.get("class") == "Oracle",
    )
