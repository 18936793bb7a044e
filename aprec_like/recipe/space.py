"""Search spaces: ranges of settings that `python -m evaluation.tune` chooses from, and how they are set in a model."""

from __future__ import annotations

import dataclasses
import itertools
import math
from collections.abc import Iterator, Mapping
from typing import Any

from aprec_like.recipe.ranges import Choice, LogUniform, Range, SearchRange, Uniform
from aprec_like.settings import check_type
from aprec_like.training.settings import Trained

MAX_CHECKED_COMBINATIONS = 1_000
"""Combinations with other settings in which a value is tried before it is refused."""


SearchSpace = Mapping[str, Range]
"""Ranges by the name of the setting: that of a field of the model, its loss, negatives, training or optimiser."""


def with_settings(trained: Trained, values: Mapping[str, Any]) -> Trained:
    """Return a model with other settings, which are named as in a search space.

    Raises `ValueError` for a name that no setting or more than one has, or a value that the model refuses.

    Example:
        >>> from aprec_like.recipe import gSASRec
        >>> from aprec_like.training import Training
        >>> changed = with_settings(gSASRec(Training()), {"num_negatives": 64, "learning_rate": 3e-3})
        >>> changed.loss.num_negatives, changed.training.optimizer.learning_rate
        (64, 0.003)
    """
    changed: Trained = _replace(trained, _changes({_find(trained, name): value for name, value in values.items()}))
    return changed


def current_settings(trained: Trained, space: SearchSpace) -> dict[str, Any]:
    """Return a model's own values of the settings in a space."""
    return {name: _value(trained, _find(trained, name)) for name in space}


def num_combinations(space: SearchSpace) -> int | None:
    """Return the number of points of a space; `None` if it is not finite."""
    counts = [each.num_values for each in space.values()]
    return math.prod(count for count in counts if count is not None) if None not in counts else None


def describe_space(space: SearchSpace) -> str:
    """Return a space in words: its ranges and its size.

    Example:
        >>> from aprec_like.recipe.ranges import Integers
        >>> describe_space({"max_length": Choice((50, 100)), "num_blocks": Integers(1, 3)})
        'max_length one of 50, 100; num_blocks 1 to 3; 6 combinations'
    """
    size = num_combinations(space)
    ranges = [f"{name} {each}" for name, each in space.items()]
    return "; ".join([*ranges, "continuous" if size is None else f"{size:,} combinations"])


def check_space(model: str, trained: object, space: SearchSpace) -> None:
    """Check that a model has the settings of a space and accepts the ends of every range.

    Args:
        model: name of the model, for errors.
        trained: the model.
        space: the ranges.

    Raises `ValueError` or `TypeError`.
    """
    place = f"spaces[{model!r}]"
    if not isinstance(trained, Trained) or trained.training.early_stopping is None:
        raise ValueError(f"{place} needs a network with early stopping: validation chooses among its settings")
    if not isinstance(space, Mapping) or not space:
        raise ValueError(f"{place} needs ranges by name of the setting. Received: {space!r}")
    paths = {}
    for name, each in space.items():
        check_type(place, repr(name), each, (SearchRange, Choice))
        paths[name] = _find(trained, name, place)
        _check_kind(f"{place}[{name!r}]", _value(trained, paths[name]), each)
        if paths[name][-1] == "metric":
            raise ValueError(f"{place} can't search the metric: it compares the trials")
    for (one, path), (other, deeper) in itertools.permutations(paths.items(), 2):
        if deeper[: len(path)] == path:
            raise ValueError(f"{place} searches both {one!r} and {other!r}, which lies inside it; keep one of them")
    for name in space:
        _check_values(place, trained, space, name)


def _check_kind(place: str, current: object, each: Range) -> None:
    """Check that a range has the kind of numbers that a setting has."""
    is_number = isinstance(current, (int, float)) and not isinstance(current, bool)
    if not is_number and not isinstance(each, Choice):
        raise TypeError(f"{place} needs a Choice: the setting is {current!r}. Received: {each!r}")
    if isinstance(current, int) and isinstance(each, (Uniform, LogUniform)):
        raise TypeError(f"{place} needs Integers, LogIntegers or a Choice: it is a whole number. Received: {each!r}")


def _check_values(place: str, trained: Trained, space: SearchSpace, name: str) -> None:
    """Check that the model accepts the ends of a range, with its own other settings or others of the space."""
    others = {other: each.examples for other, each in space.items() if other != name}
    for value in space[name].examples:
        error = _error(trained, {name: value})
        combinations = itertools.islice(itertools.product(*others.values()), MAX_CHECKED_COMBINATIONS)
        if error and all(
            _error(trained, {**dict(zip(others, values, strict=True)), name: value}) for values in combinations
        ):
            raise ValueError(f"{place}[{name!r}]: {error}")


def _error(trained: Trained, values: Mapping[str, Any]) -> str:
    """Return why a model refuses settings; empty if it accepts them."""
    try:
        with_settings(trained, values)
    except (ValueError, TypeError) as error:
        return str(error)
    return ""


def _settings(value: Any, path: tuple[str, ...] = ()) -> Iterator[tuple[str, ...]]:
    """Yield the paths of all fields of nested dataclasses."""
    if dataclasses.is_dataclass(value):
        for field in dataclasses.fields(value):
            yield (*path, field.name)
            yield from _settings(getattr(value, field.name), (*path, field.name))


def _find(trained: Trained, name: str, place: str = "with_settings") -> tuple[str, ...]:
    """Return the path of the setting of this name; a name may have more of its path: optimizer.learning_rate."""
    parts = tuple(str(name).split("."))
    paths = list(_settings(trained))
    found = [path for path in paths if path[-len(parts) :] == parts]
    if len(found) == 1:
        return found[0]
    if found:
        raise ValueError(f"{place} needs one of {', '.join('.'.join(path) for path in found)}. Received: {name!r}")
    known = ", ".join(dict.fromkeys(path[-1] for path in paths))
    raise ValueError(f"{place} has no setting {name!r}; there are {known}")


def _value(settings: Any, path: tuple[str, ...]) -> Any:
    for name in path:
        settings = getattr(settings, name)
    return settings


class _Changes(dict[str, Any]):
    """New values of the fields of a dataclass by name; those of a nested one are changes again."""


def _changes(values: Mapping[tuple[str, ...], Any]) -> _Changes:
    """Return values by path as nested changes."""
    found = _Changes()
    for (*parents, last), value in values.items():
        place = found
        for name in parents:
            place = place.setdefault(name, _Changes())
        place[last] = value
    return found


def _replace(settings: Any, changes: _Changes) -> Any:
    """Return nested settings with all changes at once: a value may be right only beside another."""
    values = {
        name: _replace(getattr(settings, name), value) if isinstance(value, _Changes) else value
        for name, value in changes.items()
    }
    return dataclasses.replace(settings, **values)
