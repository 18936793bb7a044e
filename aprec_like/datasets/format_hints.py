"""Hints on the settings that read a text file, from a line that could not be read as it is."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

SEPARATORS = ("::", ";", "\t", "|", ",")


def separator_hint(line: str) -> str:
    """Return how to read a file with this line, if it has columns with a separator; empty otherwise."""
    separator = next((each for each in SEPARATORS if each in line), None)
    return f"; CSVFile(..., separator={separator!r}) reads such a file" if separator else ""


def header_hint(path: Path, names: Sequence[str]) -> str:
    """Return how to read a text whose header is one column or has numbers; empty for other files."""
    if path.suffix == ".parquet" or not names:
        return ""
    if len(names) == 1 and (hint := separator_hint(names[0])):
        return hint
    if any(name.replace(".", "", 1).isdecimal() for name in names):
        return "; CSVFile(..., header=('user', 'item', ...)) reads a file without a header"
    return ""
