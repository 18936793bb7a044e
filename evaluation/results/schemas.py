"""What each kind of file of a results folder must hold, checked before anything of it is used.

A checksum proves that a file is as it was written, not that this program wrote it: a folder may come from anyone. A
small checker of JSON values instead of pydantic or msgspec: four kinds of objects whose settings are open on purpose
(a recipe may define its own classes), and one line per error that names the file.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from aprec_like.errors import InputError
from aprec_like.splits import FIT_ON
from aprec_like.types import Json

Check = Callable[[Any, str], None]
"""Raises `ValueError` unless a value is right; gets the value and its place in the file."""

MAX_NAME_LENGTH = 1_000


def _expect(is_right: bool, place: str, expected: str, value: object) -> None:
    if not is_right:
        raise ValueError(f"{place} must be {expected}. Received: {repr(value)[:80]}")


def boolean(value: Any, place: str) -> None:
    """Check for true or false."""
    _expect(isinstance(value, bool), place, "true or false", value)


def text(value: Any, place: str) -> None:
    """Check for a text."""
    _expect(isinstance(value, str), place, "a text", value)


def name(value: Any, place: str) -> None:
    """Check for a name that a table can show: printable, on one line."""
    is_right = isinstance(value, str) and value.isprintable() and 0 < len(value.strip()) <= MAX_NAME_LENGTH
    _expect(is_right, place, "a printable name", value)


def digest(value: Any, place: str) -> None:
    """Check for a text without spaces, such as a sha256."""
    _expect(isinstance(value, str) and value.isalnum() and value.isascii(), place, "a digest", value)


def count(value: Any, place: str) -> None:
    """Check for a whole number that is not negative."""
    is_count = isinstance(value, int) and not isinstance(value, bool) and 0 <= value < 2**63
    _expect(is_count, place, "a number of things", value)


def number(value: Any, place: str) -> None:
    """Check for a finite number."""
    is_number = isinstance(value, (int, float)) and not isinstance(value, bool) and abs(value) < 2**1000
    _expect(is_number and math.isfinite(value), place, "a finite number", value)


def settings(value: Any, place: str) -> None:
    """Check for the settings of a dataclass, an object; its class, if it has one, is a text."""
    _expect(isinstance(value, dict) and isinstance(value.get("class", ""), str), place, "settings", value)


def or_none(check: Check) -> Check:
    """Allow null beside what a check allows."""
    return lambda value, place: None if value is None else check(value, place)


def list_of(check: Check) -> Check:
    """Check every element of a list."""

    def check_list(value: Any, place: str) -> None:
        _expect(isinstance(value, list), place, "a list", value)
        for index, element in enumerate(value):
            check(element, f"{place}[{index}]")

    return check_list


def mapping(check_key: Check, check_value: Check) -> Check:
    """Check all names and values of an object."""

    def check_mapping(value: Any, place: str) -> None:
        _expect(isinstance(value, dict), place, "an object", value)
        for key, element in value.items():
            check_key(key, f"a name in {place}")
            check_value(element, f"{place}[{key!r}]")

    return check_mapping


def fields(required: Mapping[str, Check], optional: Mapping[str, Check] | None = None) -> Check:
    """Check an object with these fields; it may have others, which later versions add."""

    def check_fields(value: Any, place: str) -> None:
        _expect(isinstance(value, dict), place or "the file", "an object", value)
        prefix = f"{place}." if place else ""
        for field, check in required.items():
            if field not in value:
                raise ValueError(f"{prefix}{field} is missing")
            check(value[field], prefix + field)
        for field, check in (optional or {}).items():
            if field in value:
                check(value[field], prefix + field)

    return check_fields


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

IDENTITY = fields({"run": name, "model": name, "seed": count, "settings": digest, "data": digest, "split": digest})

STATES = ("none", "running", "interrupted", "failed", "finished")


def _state(value: Any, place: str) -> None:
    _expect(value in STATES, place, f"one of {', '.join(STATES)}", value)


def _fit_on(value: Any, place: str) -> None:
    _expect(value in FIT_ON, place, f"one of {', '.join(FIT_ON)}", value)


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
                {}, {"train_interactions": count, "validation_users": count, "test_users": count, "digest": digest}
            ),
            "dataset": settings,
            "filters": list_of(settings),
            "notes": list_of(text),
            "validation_interactions": count,
            "unreachable_targets": fields({"cold": count, "seen": count}),
            "leakage": fields({"mean_share_after": number}),
            "tied_share": or_none(number),
            "files": mapping(name, digest),
        },
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


def check_table(path: Path, frame: pd.DataFrame) -> pd.DataFrame:
    """Return a table after checking that it has the columns of its kind; raises `InputError`."""
    ids, numbers = TABLES[path.name]
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
