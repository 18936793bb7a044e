"""Cards of a page: which data, which models at which budget, made with what."""

from __future__ import annotations

from typing import Any

import numpy as np

from aprec_like.datasets import Dataset
from aprec_like.errors import InputError
from aprec_like.settings import restore
from aprec_like.types import Json
from evaluation.page.html import Html, details, element, facts, grid, joined
from evaluation.results.load import LoadedRuns, ModelResults
from evaluation.results.load_split import DATA_CLASSES
from evaluation.results.store import RunFolder

LATE = 0.8
"""A best epoch after this share of all epochs means that the model was still learning when its budget ended."""


def is_underfit(status: Json) -> bool:
    """Whether training ended by its budget while validation was still improving."""
    if status.get("best_validation") is None or status.get("stopped_by") == "early_stopping":
        return False
    return bool(status["best_epoch"] >= LATE * status["epochs"])


def dataset_card(run: RunFolder) -> Html:
    """Which data this is, beyond doubt."""
    data = run.read_dataset()
    split = data["split"]
    pairs: list[tuple[str, str | Html]] = [
        ("Dataset", element("code", as_code(data["dataset"]))),
        ("Users", f"{data['users']:,}"),
        ("Items", f"{data['items']:,}"),
        ("Interactions", f"{data['interactions']:,} ({data['interactions'] / max(1, data['users']):.1f} per user)"),
        ("Density", f"{data['interactions'] / max(1, data['users'] * data['items']):.3%}"),
    ]
    if data.get("filters"):
        pairs.append(("Filters", joined([element("code", as_code(kept)) for kept in data["filters"]], ", ")))
    if data.get("tied_share") is not None:
        pairs.append(("Tied timestamps", f"{data['tied_share']:.1%} of neighbouring interactions of a user"))
    pairs += [
        ("Split", element("code", as_code(run.read_recipe().get("split")))),
        ("Training interactions", f"{split['train_interactions']:,}"),
        ("Validation, test users", f"{split['validation_users']:,}, {split['test_users']:,}"),
        ("Digest of the sequences", element("code", data["sha256"])),
        ("Digest of the split", element("code", split["digest"])),
        *_publication(data["dataset"]),
        *(("Note", note) for note in data.get("notes", [])),
    ]
    return facts(pairs)


def _publication(settings: Json) -> list[tuple[str, str | Html]]:
    """Source and terms of a published dataset."""
    try:
        dataset = restore(settings, DATA_CLASSES)
    except InputError:
        return []
    publication = dataset.publication if isinstance(dataset, Dataset) else None
    return [("Source", publication.source), ("Terms", publication.terms)] if publication else []


def models(runs: LoadedRuns) -> Html:
    """Settings and budget of every finished model."""
    header = [
        "Model",
        "Best validation",
        "Minutes to best",
        "Minutes in all",
        "Best epoch",
        "Epochs",
        "Stopped by",
        "Memory, GiB",
        "Seeds",
    ]
    lines, parts = [], []
    for model in runs.models:
        ended = ", ".join(
            dict.fromkeys(str(status.get("stopped_by", "")).replace("_", " ") for status in statuses(model))
        )
        badge = element("span", "underfit", class_="badge warn") if any(map(is_underfit, statuses(model))) else Html("")
        lines.append(
            [
                element("td", joined([element("span", model.name), badge], " ")),
                number_cell(model.best_validation, ".4f"),
                number_cell(_minutes(model, "seconds_to_best"), ".1f"),
                number_cell(_minutes(model, "seconds_total"), ".1f"),
                number_cell(_mean(model, "best_epoch"), ".0f"),
                number_cell(_mean(model, "epochs"), ".0f"),
                element("td", ended),
                number_cell(_mean(model, "peak_memory_gib"), ".2f"),
                element("td", ", ".join(map(str, model.seeds))),
            ]
        )
        parts.append(details(model.name, element("pre", element("code", as_code(model.settings, depth=0)))))
    note = (
        "Time to the end of the best epoch, validation included; the whole time has reading, ranking and storing too. "
        "Underfit: training ended by its budget, and the best epoch was in the last fifth."
    )
    evaluation = element("code", as_code(runs.settings["evaluation"]))
    return joined([grid(header, [lines], note), facts([("Evaluation", evaluation)]), *parts])


def environment(run: RunFolder) -> Html:
    """What the run was made with."""
    found = run.read_environment()
    packages = ", ".join(f"{name} {version}" for name, version in found.get("packages", {}).items())
    pairs = [
        (name.replace("_", " "), str(value)) for name, value in found.items() if isinstance(value, (str, int, float))
    ]
    return facts([*pairs, ("packages", packages)])


def as_code(value: Any, depth: int | None = None) -> str:
    """Settings of recipe.json as the Python that would make them; with a depth, one nested setting per line."""
    if isinstance(value, list):
        return "[" + ", ".join(as_code(item) for item in value) + "]"
    if not isinstance(value, dict):
        return repr(value)
    items = [(key, item) for key, item in value.items() if key != "class"]
    inner = None if depth is None else depth + 1
    texts = [f"{key}={as_code(item, inner)}" for key, item in items]
    is_long = depth is not None and any(isinstance(item, dict) for _, item in items)
    if is_long and depth is not None:
        margin = "    " * (depth + 1)
        return (
            f"{value.get('class', 'dict')}(\n" + "".join(f"{margin}{text},\n" for text in texts) + "    " * depth + ")"
        )
    return f"{value.get('class', 'dict')}({', '.join(texts)})"


def number_cell(value: float | None, form: str) -> Html:
    """A cell with a number, or an empty one."""
    return element("td", "" if value is None else format(value, form))


def statuses(model: ModelResults) -> list[Json]:
    """What became of a model, by seed."""
    return [folder.status() for folder in model.folders]


def _mean(model: ModelResults, name: str) -> float | None:
    """The mean over seeds of a number in status.json; `None` where there is none."""
    values = [status[name] for status in statuses(model) if status.get(name) is not None]
    return float(np.mean(values)) if values else None


def _minutes(model: ModelResults, name: str) -> float | None:
    seconds = _mean(model, name)
    return None if seconds is None else seconds / 60
