"""What each kind of file of a results folder must hold, checked before anything of it is used.

A checksum proves that a file is as it was written, not that this program wrote it: a folder may come from anyone. A
small checker of JSON values instead of pydantic or msgspec: four kinds of objects whose settings are open on purpose
(a recipe may define its own classes), and one line per error that names the file.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from aprec_like.errors import InputError
from aprec_like.splits import FIT_ON
from aprec_like.types import Json
from evaluation.results.json_checks import (
    Check,
    boolean,
    both,
    count,
    digest,
    equally_long,
    expect,
    fields,
    list_of,
    mapping,
    name,
    number,
    or_none,
    settings,
    text,
)

METRIC_VALUES = mapping(name, mapping(name, number))
"""Numbers by model and metric."""

MODEL = fields(
    {},
    {
        "class": text,
        "model": settings,
        "loss": settings,
        "negatives": settings,
        "training": or_none(fields({}, {"early_stopping": or_none(fields({}, {"metric": name}))})),
        "prior_start": boolean,
    },
)

NUMBERS = list_of(number)
_CURVES, _BINS = ("predicted", "precision"), ("predicted", "observed", "low", "high", "counts")
_OPTIMA = ("optimum", "theorem_1")
CALIBRATION = both(
    fields(
        dict.fromkeys(_CURVES, NUMBERS)
        | dict.fromkeys(_OPTIMA, or_none(NUMBERS))
        | {
            "bins": both(fields(dict.fromkeys(_BINS, NUMBERS)), equally_long(*_BINS)),
            "user": fields(
                {"user": text, "probabilities": NUMBERS, "target_rank": or_none(count), "catalogue_sum": number}
            ),
            "mean_sum": number,
            "is_sum_bound": boolean,
            "note": text,
            "has_more_seeds": boolean,
            "seen_share": or_none(number),
            "top_gap": or_none(number),
        }
    ),
    equally_long(*_CURVES, *_OPTIMA),
)
"""A model's calibration in report.json."""

TUNING = fields(
    {"trials": count, "hours": number},
    dict.fromkeys(("epochs", "num_settings", "num_combinations", "max_trials"), or_none(count))
    | {"max_hours": or_none(number)},
)

IDENTITY = fields({"run": name, "model": name, "seed": count, "settings": digest, "data": digest, "split": digest})

STATES = ("none", "running", "interrupted", "failed", "finished")


def _state(value: Any, place: str) -> None:
    expect(value in STATES, place, f"one of {', '.join(STATES)}", value)


def _fit_on(value: Any, place: str) -> None:
    expect(value in FIT_ON, place, f"one of {', '.join(FIT_ON)}", value)


SCHEMAS: Mapping[str, Check] = {
    "recipe": fields(
        {
            "models": mapping(name, MODEL),
            "columns": list_of(name),
            "evaluation": fields(
                {"exclude_seen": boolean},
                {
                    "metrics": list_of(name),
                    "depth": count,
                    "candidates": or_none(fields({}, {"num_candidates": count})),
                    "users": or_none(count),
                    "seed": count,
                },
            ),
        },
        {
            "run": name,
            "source": digest,
            "code": fields({}, {"models": mapping(name, mapping(text, digest)), "shared": mapping(text, digest)}),
            "dataset": settings,
            "filters": list_of(settings),
            "split": settings,
            "fit_on": _fit_on,
            "removed_models": mapping(name, MODEL),
            "groups": mapping(name, list_of(name)),
            "seeds": list_of(count),
            "published": METRIC_VALUES,
            "literature": METRIC_VALUES,
            "title": name,
            "spaces": mapping(name, mapping(name, settings)),
            "tuning": mapping(name, TUNING),
        },
    ),
    "dataset": fields(
        {
            "users": count,
            "items": count,
            "interactions": count,
            "sha256": digest,
        },
        {
            "split": fields(
                {},
                {
                    "train_interactions": count,
                    "validation_users": count,
                    "test_users": count,
                    "digest": digest,
                    "sampled_from": count,
                    "sample_seed": count,
                },
            ),
            "dataset": settings,
            "filters": list_of(settings),
            "notes": list_of(text),
            "validation_interactions": count,
            "density": number,
            "unreachable_targets": fields({"cold": count, "seen": count}, {"unlearned": count}),
            "leakage": fields({"mean_share_after": number}),
            "tied_share": or_none(number),
            "files": mapping(name, digest),
        },
    ),
    "report": fields(
        {
            "results": mapping(name, list_of(digest)),
            "calibration": mapping(name, CALIBRATION),
            "remarks": list_of(text),
            "beyond_accuracy": mapping(name, fields({"coverage": number, "popularity_rank": number})),
            "item_counts": both(fields({"places": NUMBERS, "counts": NUMBERS}), equally_long("places", "counts")),
            "truth_gaps": or_none(
                mapping(name, fields(dict.fromkeys(("top", "catalogue", "divergence", "excluded"), number)))
            ),
        }
    ),
    "environment": fields({"aprec_like": text, "packages": mapping(name, text)}),
    "status": fields(
        {"state": _state, "at": text},
        {
            "reason": text,
            "identity": IDENTITY,
            "sha256": mapping(name, digest),
            "seconds_to_best": number,
            "seconds_total": number,
            "cost": fields({}, dict.fromkeys(("cpu_seconds", "gpu_seconds", "energy_kwh"), or_none(number))),
            "best_epoch": count,
            "best_validation": or_none(number),
            "epochs": count,
            "stopped_by": text,
            "refit_seconds": number,
            "seconds_trained": number,
            "is_checkpoint_kept": boolean,
            "beside_popularity": fields({"metric": name, "model": number, "popularity": number, "overlap": number}),
            "loss_change": number,
            "peak_memory_gib": number,
            "peak_gpu_memory_gib": or_none(number),
            "devices": list_of(text),
            "depth": count,
            "before": fields({}),
        },
    ),
    "finished status": fields({"sha256": mapping(name, digest), "seconds_to_best": number}),
    "metrics": fields({"users": count}, {"metrics": mapping(name, fields({}, dict.fromkeys(("mean",), number)))}),
}
"""Checks of the JSON files of a results folder, by their kind."""


def check_json(path: Path, kind: str, value: Json) -> Json:
    """Return a JSON object after checking that it holds what its kind must; raises `InputError`."""
    try:
        SCHEMAS[kind](value, "")
    except ValueError as error:
        raise InputError(f"{path}: is damaged, or of another version: {error}") from error
    return value


TABLES: Mapping[str, tuple[tuple[str, ...], tuple[str, ...]]] = {
    "per_user.parquet": (("user", "target"), ()),
    "top_items.parquet": (("user", "item"), ("position", "score")),
    "cases.parquet": (("user",), ("history_length", "target_count")),
    "items.parquet": (("item",), ("count",)),
    "histories.parquet": ((), ("case", "item")),
    "history.csv": ((), ("epoch", "validation", "seconds")),
}
"""Columns of ids and columns of numbers that a table must have, by file name."""


def check_table(path: Path, frame: pd.DataFrame, wanted: Collection[str] | None = None) -> pd.DataFrame:
    """Return a table after checking that it has the columns of its kind, or those of `wanted`; raises `InputError`."""
    ids, numbers = ([name for name in names if wanted is None or name in wanted] for names in TABLES[path.name])
    for column in (*ids, *numbers):
        if column not in frame.columns:
            raise InputError(f"{path}: is damaged, or of another version: it has no column {column!r}")
    for column in numbers:
        if len(frame) and not is_numeric(frame[column]):
            raise InputError(f"{path}: is damaged, or of another version: {column!r} must hold numbers")
    return frame


def is_numeric(column: pd.Series) -> bool:
    """Return whether a column holds numbers, missing ones (NaN) included."""
    return bool(np.issubdtype(column.to_numpy().dtype, np.number)) or bool(column.isna().all())
