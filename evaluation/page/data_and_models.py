"""Sections of the page on the data, on the settings and budgets of the models, and on the environment."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from aprec_like.datasets import Dataset
from aprec_like.errors import InputError
from aprec_like.recipe_classes import DATA_CLASSES
from aprec_like.settings import restore
from aprec_like.types import Json
from evaluation.analysis.training_cost import cost_table, model_costs
from evaluation.caveats.training import training_caveats
from evaluation.page.html import Badge, Cell, Fact, HtmlTable, number_cell, to_html_table
from evaluation.results.load import Caveat, LoadedRuns, ModelResults
from evaluation.results.store import RunFolder

BUDGET_HEADER = (
    "Model", "Best validation", "Minutes to best", "Minutes in all", "Best epoch", "Epochs", "Stopped by",
    "Memory, GiB", "Seeds",
)  # fmt: skip
BUDGET_CAPTION = (
    "Time to the end of the best epoch, validation included; the whole time has reading, ranking and storing too. "
    "Underfit: training ended by its budget, and the best epoch was in the last fifth."
)


def warning_badges(caveats: Iterable[Caveat]) -> list[Badge]:
    """Return a badge for every caveat about a model."""
    return [Badge(caveat.mark, is_warning=True, title=caveat.advice) for caveat in caveats]


def dataset_facts(run: RunFolder) -> list[Fact]:
    """Return what identifies the data of a run: settings, sizes, split, digests, source and notes."""
    data = run.read_dataset()
    split, users, items, interactions = data.get("split", {}), data["users"], data["items"], data["interactions"]
    facts = [
        Fact("Dataset", [as_code(data.get("dataset"))], is_code=True),
        Fact("Users", [f"{users:,}"]),
        Fact("Items", [f"{items:,}"]),
        Fact("Interactions", [f"{interactions:,} ({interactions / max(1, users):.1f} per user)"]),
    ]
    if data.get("density") is not None:  # folders of earlier versions lack it
        facts.append(Fact("Density", [f"{data['density']:.4%} of all pairs of a user and an item"]))
    if data.get("filters"):
        facts.append(Fact("Filters", [as_code(settings) for settings in data["filters"]], is_code=True))
    if data.get("tied_share") is not None:
        facts.append(Fact("Tied timestamps", [f"{data['tied_share']:.1%} of neighbouring interactions of a user"]))
    return [
        *facts,
        Fact("Split", [as_code(run.read_recipe().get("split"))], is_code=True),
        Fact("Training interactions", [f"{split.get('train_interactions', 0):,}"]),
        Fact("Validation, test users", [f"{split.get(name, 0):,}" for name in ("validation_users", "test_users")]),
        Fact("Digest of the sequences", [data["sha256"]], is_code=True),
        Fact("Digest of the split", [split.get("digest", "none")], is_code=True),
        *_publication_facts(data.get("dataset")),
        *(Fact("Note", [note]) for note in data.get("notes", [])),
    ]


def _publication_facts(settings: Json | None) -> Iterator[Fact]:
    """Yield source and terms of a published dataset."""
    try:
        dataset = restore(settings, DATA_CLASSES)
    except InputError:
        return
    if isinstance(dataset, Dataset) and (publication := dataset.publication):
        yield from (Fact("Source", [publication.source]), Fact("Terms", [publication.terms]))


@dataclass(frozen=True)
class Models:
    """The section on the models: their budgets and costs, the evaluation, and their settings as Python code by name."""

    budgets: HtmlTable
    costs: HtmlTable | None
    evaluation: Sequence[Fact]
    settings: Mapping[str, str]


def describe_models(runs: LoadedRuns) -> Models:
    """Return the budgets and settings of all finished models."""
    return Models(
        budgets=HtmlTable(BUDGET_HEADER, [[_budget_row(model) for model in runs.models]], BUDGET_CAPTION),
        costs=to_html_table(cost_table(runs)) if model_costs(runs) else None,
        evaluation=[Fact("Evaluation", [as_code(runs.settings["evaluation"])], is_code=True)],
        settings={model.name: as_code(model.settings, depth=0) for model in runs.models},
    )


def _budget_row(model: ModelResults) -> list[Cell]:
    statuses = [folder.status() for folder in model.folders]
    reasons = [str(status.get("stopped_by", "")).replace("_", " ") for status in statuses]
    return [
        Cell(model.name, badges=warning_badges(training_caveats(model.settings, statuses))),
        number_cell(model.best_validation, ".4f"),
        number_cell(_mean_status(model, "seconds_to_best", 60), ".1f"),
        number_cell(_mean_status(model, "seconds_total", 60), ".1f"),
        Cell(_epochs(statuses, "best_epoch")),
        Cell(_epochs(statuses, "epochs")),
        Cell(", ".join(dict.fromkeys(reasons))),
        number_cell(_mean_status(model, "peak_memory_gib"), ".2f"),
        Cell(", ".join(map(str, model.seeds))),
    ]


def _epochs(statuses: Sequence[Json], name: str) -> str:
    """Return a number of epochs of every training."""
    return ", ".join(f"{status[name]:,}" for status in statuses if name in status)


def _mean_status(model: ModelResults, name: str, divisor: float = 1) -> float | None:
    """Return a number in status.json, mean over seeds, divided by `divisor`; `None` if no seed has it."""
    values = [folder.status().get(name) for folder in model.folders]
    known = [value for value in values if value is not None]
    return float(np.mean(known)) / divisor if known else None


def environment_facts(run: RunFolder) -> list[Fact]:
    """Return the versions and hardware of a run."""
    environment = run.read_environment()
    packages = ", ".join(f"{name} {version}" for name, version in environment.get("packages", {}).items())
    plain = {name: value for name, value in environment.items() if isinstance(value, (str, int, float))}
    return [
        *(Fact(name.replace("_", " "), [str(value)]) for name, value in plain.items()),
        Fact("packages", [packages]),
    ]


def as_code(value: Any, depth: int | None = None) -> str:
    """Return settings of recipe.json as Python code; with a depth, nested settings are on lines of their own."""
    if isinstance(value, list):
        return "[" + ", ".join(as_code(item) for item in value) + "]"
    if not isinstance(value, dict):
        return repr(value)
    fields = {key: item for key, item in value.items() if key != "class"}
    texts = [f"{key}={as_code(item, None if depth is None else depth + 1)}" for key, item in fields.items()]
    name = value.get("class", "dict")
    if depth is None or not any(isinstance(item, dict) for item in fields.values()):
        return f"{name}({', '.join(texts)})"
    lines = [f"{'    ' * (depth + 1)}{text},\n" for text in texts]
    return f"{name}(\n{''.join(lines)}{'    ' * depth})"
