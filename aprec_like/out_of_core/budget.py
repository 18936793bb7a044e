"""Memory budget of reading and sorting a table, in bytes."""

from __future__ import annotations

import os
import re

from aprec_like.errors import InputError

MEMORY_VARIABLE = "APREC_LIKE_MEMORY"
"""Environment variable of the budget, which the processes of a run inherit."""

DEFAULT_BUDGET = 4 << 30
MIN_BUDGET = 512 << 20
"""Python, Arrow and DuckDB need about this much before the first row is read."""

UNITS = {"": 1, "k": 10**3, "m": 10**6, "g": 10**9, "t": 10**12, "ki": 2**10, "mi": 2**20, "gi": 2**30, "ti": 2**40}


def parse_bytes(text: str) -> int:
    """Return the number of bytes of a size such as `4GiB` or `512MiB`; raises `InputError`.

    Example:
        >>> parse_bytes("1.5GiB")
        1610612736
    """
    match = re.fullmatch(r"\s*(\d{1,15}(?:\.\d{1,6})?)\s*(|[kmgt]i?)b?\s*", text.lower())
    if match is None:
        raise InputError(f"a size must be a number with a unit, such as 4GiB. Received: {text!r}")
    return int(float(match[1]) * UNITS[match[2]])


def memory_budget() -> int:
    """Return the budget in bytes: the environment variable APREC_LIKE_MEMORY, by default 4 GiB."""
    named = os.environ.get(MEMORY_VARIABLE)
    budget = DEFAULT_BUDGET if not named else parse_bytes(named)
    if budget < MIN_BUDGET:
        raise InputError(f"the memory budget must be at least 512MiB. Received: {named}")
    return budget
