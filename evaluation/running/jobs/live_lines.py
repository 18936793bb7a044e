"""Lines at the bottom of a terminal that show progress, below the lines that stay."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from typing import Self

from rich.console import Console, Group
from rich.live import Live
from rich.text import Text

from evaluation.printable import printable, unfiltered


class LiveLines:
    """Context manager of lines on standard error: live ones in a terminal, elsewhere one below the other."""

    def __init__(self) -> None:
        console = Console(file=unfiltered(sys.stderr))
        self.live = Live(console=console, transient=True, auto_refresh=False) if console.is_terminal else None

    def __enter__(self) -> Self:
        if self.live:
            self.live.start()
        return self

    def __exit__(self, *error: object) -> None:
        if self.live:
            self.live.stop()

    def print_line(self, line: str) -> None:
        """Print a line that stays, above the live ones."""
        if self.live:
            self.live.console.print(Text(printable(line)))
        else:
            print(printable(line), file=sys.stderr, flush=True)

    def show(self, lines: Sequence[str]) -> None:
        """Replace the live lines; without a terminal, print them."""
        if self.live:
            texts = [Text(printable(line), no_wrap=True, overflow="ellipsis") for line in lines]
            self.live.update(Group(*texts), refresh=True)
        else:
            for line in lines:
                self.print_line(line)
