"""Progress of reading a large table, on standard error."""

from __future__ import annotations

import sys
import time
from types import TracebackType
from typing import Self

SECONDS_QUIET = 3.0
"""What takes less is not shown."""
SECONDS_BETWEEN = {True: 0.5, False: 15.0}
"""Between two lines, on a terminal and elsewhere."""


class RowProgress:
    """Rows done, rows per second and the share of all work.

    Args:
        verb: what is done to the rows, such as "reading".
        total: units of work, such as files.
    """

    def __init__(self, verb: str, total: int) -> None:
        self._verb, self._total = verb, total
        self._is_terminal = sys.stderr.isatty()
        self._started = time.monotonic()
        self._next = self._started + SECONDS_QUIET
        self._line = ""

    def update(self, num_rows: int, num_done: int) -> None:
        """Show the progress after `num_rows` rows, when `num_done` units of work are begun or done."""
        now = time.monotonic()
        if now < self._next:
            return
        self._next = now + SECONDS_BETWEEN[self._is_terminal]
        rate = num_rows / (now - self._started)
        self._line = f"{self._verb}: {num_rows:,} rows, {rate:,.0f} rows/s, {num_done:,} of {self._total:,}"
        print(self._line, end="\r" if self._is_terminal else "\n", file=sys.stderr, flush=True)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        if self._line and self._is_terminal:
            print(" " * len(self._line), end="\r", file=sys.stderr, flush=True)
