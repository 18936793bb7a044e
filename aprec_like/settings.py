"""Settings as JSON and back: frozen dataclasses described as plain values, and restored from classes known here."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from types import ModuleType
from typing import Any

from aprec_like.errors import InputError
from aprec_like.metrics import Metric

Known = Mapping[str, type]
"""Frozen dataclasses of settings, by name."""


def classes_of(*modules: ModuleType) -> Known:
    """The dataclasses that modules hold."""
    return {
        name: value
        for module in modules
        for name, value in vars(module).items()
        if isinstance(value, type) and dataclasses.is_dataclass(value)
    }


def describe(value: Any) -> Any:
    """Settings as plain JSON values: a dataclass becomes a dict that starts with the name of its class."""
    if isinstance(value, Metric):
        return str(value)
    if dataclasses.is_dataclass(value) and not isinstance(value, type):
        fields = {field.name: describe(getattr(value, field.name)) for field in dataclasses.fields(value)}
        return {"class": type(value).__name__, **fields}
    if isinstance(value, Mapping):
        return {str(key): describe(item) for key, item in value.items()}
    if isinstance(value, (tuple, list)):
        return [describe(item) for item in value]
    if value is None or isinstance(value, (bool, int, float, str)):
        return value
    raise TypeError(f"A setting must be a number, a text, a dataclass or a collection of them. Received: {value!r}")


def restore(value: Any, known: Known) -> Any:
    """The settings that `aprec_like.recipe.describe` wrote as `value`; raises `InputError` if they are not known."""
    if isinstance(value, list):
        return tuple(restore(item, known) for item in value)
    if not isinstance(value, dict):
        return value
    fields = {key: restore(item, known) for key, item in value.items() if key != "class"}
    if "class" not in value:
        return fields
    name = value["class"]
    if not isinstance(name, str) or name not in known:
        raise InputError(f"recipe.json has settings of the class {name!r}, which this version does not know")
    try:
        return known[name](**fields)
    except (TypeError, ValueError) as error:
        raise InputError(f"recipe.json has settings of {name} that this version does not know: {error}") from error


def check_type(owner: str, name: str, value: Any, kind: type | tuple[type, ...]) -> None:
    """Raise `TypeError` unless a setting has the right type; the message names its owner."""
    if not isinstance(value, kind):
        kinds = kind if isinstance(kind, tuple) else (kind,)
        wanted = " or ".join(kind.__name__ for kind in kinds)
        received = f"the class {value.__name__}, not an instance of it" if isinstance(value, type) else repr(value)
        raise TypeError(f"{owner} needs {name} to be a {wanted}. Received: {received}")
