"""Checks of JSON values, from which the schemas of the results folder's files are made."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from typing import Any

Check = Callable[[Any, str], None]
"""Raises `ValueError` unless a value is right; gets the value and its place in the file."""

MAX_NAME_LENGTH = 1_000


def expect(is_right: bool, place: str, expected: str, value: object) -> None:
    """Raise `ValueError` with the place, what it must hold and what it holds, unless that is right."""
    if not is_right:
        raise ValueError(f"{place} must be {expected}. Received: {repr(value)[:80]}")


def boolean(value: Any, place: str) -> None:
    """Check for true or false."""
    expect(isinstance(value, bool), place, "true or false", value)


def text(value: Any, place: str) -> None:
    """Check for a text."""
    expect(isinstance(value, str), place, "a text", value)


def name(value: Any, place: str) -> None:
    """Check for a name that a table can show: printable, on one line."""
    is_right = isinstance(value, str) and value.isprintable() and 0 < len(value.strip()) <= MAX_NAME_LENGTH
    expect(is_right, place, "a printable name", value)


def digest(value: Any, place: str) -> None:
    """Check for a text without spaces, such as a sha256."""
    expect(isinstance(value, str) and value.isalnum() and value.isascii(), place, "a digest", value)


def count(value: Any, place: str) -> None:
    """Check for a whole number that is not negative."""
    is_count = isinstance(value, int) and not isinstance(value, bool) and 0 <= value < 2**63
    expect(is_count, place, "a number of things", value)


def number(value: Any, place: str) -> None:
    """Check for a finite number."""
    is_number = isinstance(value, (int, float)) and not isinstance(value, bool) and abs(value) < 2**1000
    expect(is_number and math.isfinite(value), place, "a finite number", value)


def settings(value: Any, place: str) -> None:
    """Check for the settings of a dataclass, an object; its class, if it has one, is a text."""
    expect(isinstance(value, dict) and isinstance(value.get("class", ""), str), place, "settings", value)


def or_none(check: Check) -> Check:
    """Allow null beside what a check allows."""
    return lambda value, place: None if value is None else check(value, place)


def list_of(check: Check) -> Check:
    """Check every element of a list."""

    def check_list(value: Any, place: str) -> None:
        expect(isinstance(value, list), place, "a list", value)
        for index, element in enumerate(value):
            check(element, f"{place}[{index}]")

    return check_list


def mapping(check_key: Check, check_value: Check) -> Check:
    """Check all names and values of an object."""

    def check_mapping(value: Any, place: str) -> None:
        expect(isinstance(value, dict), place, "an object", value)
        for key, element in value.items():
            check_key(key, f"a name in {place}")
            check_value(element, f"{place}[{key!r}]")

    return check_mapping


def fields(required: Mapping[str, Check], optional: Mapping[str, Check] | None = None) -> Check:
    """Check an object with these fields; it may have others, which later versions add."""

    def check_fields(value: Any, place: str) -> None:
        expect(isinstance(value, dict), place or "the file", "an object", value)
        prefix = f"{place}." if place else ""
        for field, check in required.items():
            if field not in value:
                raise ValueError(f"{prefix}{field} is missing")
            check(value[field], prefix + field)
        for field, check in (optional or {}).items():
            if field in value:
                check(value[field], prefix + field)

    return check_fields


def equally_long(*names: str) -> Check:
    """Check that these lists of an object have the same number of elements, at least one; null is no list."""

    def check_lengths(value: Any, place: str) -> None:
        lengths = {len(value[each]) for each in names if value[each] is not None}
        expect(len(lengths) == 1 and min(lengths) > 0, f"{place}, {', '.join(names)}", "equally long", sorted(lengths))

    return check_lengths


def both(first: Check, second: Check) -> Check:
    """Check a value twice, the second time only if it is right so far."""

    def check_both(value: Any, place: str) -> None:
        first(value, place)
        second(value, place)

    return check_both
