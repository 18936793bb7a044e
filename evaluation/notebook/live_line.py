"""A line that is replaced in place: by a carriage return in terminals, as one output of the cell in notebooks."""

from __future__ import annotations

import sys
import time
from typing import Any, Protocol

from typing_extensions import override

SECONDS_BETWEEN_UPDATES = 0.2
"""Of a notebook, which stores and draws each."""


class LiveLine(Protocol):
    """Shows the latest of several texts."""

    def replace(self, text: str) -> None:
        """Show a text instead of the last one."""

    def finish(self, text: str) -> None:
        """Show a text instead of the last one, and keep it: the next text is another line."""


def make_live_line() -> LiveLine:
    """Return the line for the place where this process shows its output."""
    ipython = sys.modules.get("IPython")  # imported before us if this is a notebook
    shell = ipython.get_ipython() if ipython else None
    return NotebookLine() if hasattr(shell, "kernel") else TerminalLine()


class TerminalLine(LiveLine):
    """Writes over the last text on standard output."""

    def __init__(self) -> None:
        self._width = 0

    @override
    def replace(self, text: str) -> None:
        self._write(text, end="")
        self._width = len(text)

    @override
    def finish(self, text: str) -> None:
        self._write(text, end="\n")
        self._width = 0

    def _write(self, text: str, end: str) -> None:
        print("\r" + text.ljust(self._width), end=end, flush=True)


class NotebookLine(LiveLine):
    """Updates an output of the cell, of which the saved notebook has the last text alone."""

    def __init__(self) -> None:
        self._handle: Any = None
        self._shown_at = 0.0

    @override
    def replace(self, text: str) -> None:
        if time.monotonic() - self._shown_at >= SECONDS_BETWEEN_UPDATES:
            self._show(text)

    @override
    def finish(self, text: str) -> None:
        self._show(text)
        self._handle, self._shown_at = None, 0.0

    def _show(self, text: str) -> None:
        from IPython.display import display

        self._shown_at = time.monotonic()
        if self._handle is None:
            self._handle = display({"text/plain": text}, raw=True, display_id=True)
        else:
            self._handle.update({"text/plain": text}, raw=True)
