"""The one place through which text from outside goes before it is shown: names, ids, titles, paths, error messages.

A file of a stranger may hold escape codes that a terminal would execute, line breaks that would make two lines of one,
or cells that a spreadsheet would run. Every command runs with `PrintableStream` as its standard output and standard
error (`evaluation.cli.run_command`), every writer of a table (`evaluation.table`, `evaluation.table_formats`) calls
`printable` for its cells, and the page (`evaluation.page.html`) calls `printable_lines` for all its texts. LaTeX and
Markdown are escaped in `table_formats`, HTML by Jinja2.
"""

from __future__ import annotations

import re
import unicodedata
from typing import Any, TextIO

JOINERS = "\u200c\u200d"
"""Invisible characters that some scripts and emoji are written with; all other invisible ones are shown as codes."""
FORMULA = re.compile(r"\s*[=@+\-\uff1d\uff0b\uff0d\uff20]")
"""Beginnings of cells that spreadsheets compute."""
NUMBER = re.compile(r"\s*[+-]?[\d.,]+(e[+-]?\d+)?\s*[%*\u2020]*\s*", re.IGNORECASE)
"""Numbers with the marks of a table, which a spreadsheet may read as numbers."""


def printable(text: object) -> str:
    """Return a text on one line; characters that a terminal would execute, or not show, become `\\u001b` and the like.

    Example:
        >>> print(printable("a\\x1b[31mb\\nc"))
        a\\u001b[31mb c
    """
    return "".join(_shown(character) for character in str(text))


def _shown(character: str) -> str:
    if character.isprintable() or character in JOINERS:
        return character
    return " " if character.isspace() else _code(character)


def _code(character: str) -> str:
    """Return the code of a character as JSON writes it, so that JSON stays JSON."""
    units = character.encode("utf-16-be", "surrogatepass")
    return "".join(f"\\u{units[start : start + 2].hex()}" for start in range(0, len(units), 2))


def spreadsheet_cell(value: object) -> object:
    """Return a cell for CSV: a text that a spreadsheet would compute gets an apostrophe before it.

    Example:
        >>> spreadsheet_cell("=1+1"), spreadsheet_cell("-0.25*"), spreadsheet_cell(0.5)
        ("'=1+1", '-0.25*', 0.5)
    """
    if not isinstance(value, str):
        return value
    shown = printable(value)
    return f"'{shown}" if FORMULA.match(shown) and not NUMBER.fullmatch(shown) else shown


def printable_lines(text: str) -> str:
    """Return a text with the same lines and tabs, in which other characters that a terminal would execute are codes."""
    if text.isprintable():
        return text
    return "".join(
        character if character in "\n\t" or character.isprintable() or _is_harmless(character) else _code(character)
        for character in text
    )


class PrintableStream:
    """A text stream that shows characters which a terminal would execute as codes; lines and tabs stay.

    Args:
        stream: receives the text.
    """

    def __init__(self, stream: TextIO) -> None:
        self.stream = stream

    def write(self, text: str) -> int:
        """Write a text; returns its number of characters."""
        return self.stream.write(printable_lines(text))

    def __getattr__(self, name: str) -> Any:
        return getattr(self.stream, name)


def unfiltered(stream: TextIO) -> TextIO:
    """Return the stream below a `PrintableStream`, for a progress display, whose own codes move the cursor."""
    return stream.stream if isinstance(stream, PrintableStream) else stream


def _is_harmless(character: str) -> bool:
    """Return whether a character is a space of another width, or joins letters."""
    return character in JOINERS or unicodedata.category(character) == "Zs"
