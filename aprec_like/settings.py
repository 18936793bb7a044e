"""Conversion of settings, which are frozen dataclasses, to JSON values and back, and checks of their types."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from types import ModuleType
from typing import Any

from aprec_like.errors import InputError
from aprec_like.metrics import Metric

SettingsClasses = Mapping[str, type]
"""Dataclasses of settings by class name."""


OMIT_DEFAULT: Mapping[str, bool] = {"omit_default": True}
"""Metadata of a field that `describe` leaves out while it has its default: for fields that were added to a class, so
that settings of older results stay equal."""


def dataclasses_in(*modules: ModuleType) -> dict[str, type]:
    """Return the dataclasses in the namespaces of modules, by name."""
    return {
        name: value
        for module in modules
        for name, value in vars(module).items()
        if isinstance(value, type) and dataclasses.is_dataclass(value)
    }


def describe(value: object) -> Any:
    """Convert settings to JSON values: a dataclass becomes an object of its fields with its class name as "class"."""
    if isinstance(value, Metric):
        return str(value)
    if dataclasses.is_dataclass(value) and not isinstance(value, type):
        fields = {field.name: describe(getattr(value, field.name)) for field in _described_fields(value)}
        return {"class": type(value).__name__, **fields}
    if isinstance(value, Mapping):
        return {str(key): describe(item) for key, item in value.items()}
    if isinstance(value, (tuple, list)):
        return [describe(item) for item in value]
    if value is None or isinstance(value, (bool, int, float, str)):
        return value
    raise TypeError(f"A setting must be a number, string, dataclass or collection of these. Received: {value!r}")


def _described_fields(value: Any) -> list[dataclasses.Field[Any]]:
    return [
        field
        for field in dataclasses.fields(value)
        if not (field.metadata.get("omit_default") and getattr(value, field.name) == _default(field))
    ]


def _default(field: dataclasses.Field[Any]) -> Any:
    return field.default if field.default_factory is dataclasses.MISSING else field.default_factory()


def restore(value: Any, classes: SettingsClasses) -> Any:
    """Convert JSON values of `describe` back to settings; raises `InputError` for a class that is not in `classes`."""
    if isinstance(value, list):
        return tuple(restore(item, classes) for item in value)
    if not isinstance(value, dict):
        return value
    fields = {key: restore(item, classes) for key, item in value.items() if key != "class"}
    if "class" not in value:
        return fields
    name = value["class"]
    if not isinstance(name, str) or name not in classes:
        raise InputError(f"recipe.json has settings of the class {name!r}, which this version does not know")
    try:
        return classes[name](**fields)
    except (TypeError, ValueError) as error:
        raise InputError(f"recipe.json has settings of {name} that this version does not know: {error}") from error


def check_tuple(owner: str, name: str, value: object) -> None:
    """Raise `TypeError` unless the setting `name` of the class `owner` is a tuple or list."""
    if not isinstance(value, (tuple, list)):
        shown = repr(value)
        raise TypeError(f"{owner} needs {name} to be a tuple: {name}=({shown},) with a comma. Received: {shown}")


def check_type(owner: str, name: str, value: object, kind: type | tuple[type, ...], example: str = "") -> None:
    """Raise `TypeError` unless the setting `name` of the class `owner` is an instance of `kind`."""
    if not isinstance(value, kind):
        kinds = kind if isinstance(kind, tuple) else (kind,)
        expected = " or ".join(kind.__name__ for kind in kinds) + (f", such as {example}" if example else "")
        received = f"the class {value.__name__}, not an instance of it" if isinstance(value, type) else repr(value)
        raise TypeError(f"{owner} needs {name} to be a {expected}. Received: {received}")
