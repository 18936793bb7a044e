"""A table of text cells, and how it is printed as plain text; `table_formats` writes the other formats."""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import Literal

from aprec_like.errors import InputError
from evaluation.printable import printable


@dataclass(frozen=True)
class Entry:
    """A cell of a table.

    Args:
        text: of the cell.
        emphasis: of the best and the second value of a column.
        mark: after the text, such as a star or a dagger.
        spread: standard deviation over seeds, which LaTeX shows after the text; empty if it is not known.
    """

    text: str
    emphasis: Literal["best", "second"] | None = None
    mark: str = ""
    spread: str = ""


TableRow = Sequence[Entry | str]


def as_sentence(text: str) -> str:
    """Return a text that begins with a word, not a name, as a sentence.

    Example:
        >>> as_sentence("means over 2 trainings")
        'Means over 2 trainings.'
    """
    return f"{text[0].upper()}{text[1:]}."


def signed(value: float, form: str) -> str:
    """Return a difference with its sign; one that rounds to zero has none.

    Args:
        value: the difference.
        form: how numbers are formatted: ".3f", ".1%".

    Example:
        >>> signed(0.25, ".1%"), signed(-0.0123, ".3f"), signed(-0.0001, ".3f")
        ('+25.0%', '-0.012', '0.000')
    """
    text = format(value, f"+z{form}")
    return text if any(digit in text for digit in "123456789") else text.removeprefix("+")


@dataclass(frozen=True)
class Table:
    """Rows of cells in blocks that are separated by rules.

    Args:
        label: the label in LaTeX.
        header: column titles; the first column is left-aligned, the others right-aligned.
        blocks: lists of rows.
        caption: what the numbers and marks of the table mean.
        notes: sentences that readers must know as well; below the table, in LaTeX too.
        remarks: lines for those who write the paper; comments in LaTeX.
        spans: titles above several columns, each with its number of columns, starting at the second column.
    """

    label: str
    header: Sequence[str]
    blocks: Sequence[Sequence[TableRow]]
    caption: str = ""
    notes: Sequence[str] = ()
    remarks: Sequence[str] = ()
    spans: Sequence[tuple[str, int]] = field(default_factory=tuple)

    def without_columns(self, titles: Sequence[str]) -> Table:
        """Return the table without the columns of these titles; raises `InputError` for a title that no column has."""
        choices = self.header[1:]
        if unknown := [title for title in titles if title not in choices]:
            raise InputError(f"there is no column {unknown[0]!r}; there are {', '.join(dict.fromkeys(choices))}")
        kept = [number for number, title in enumerate(self.header) if number == 0 or title not in titles]
        ends = list(itertools.accumulate((count for _, count in self.spans), initial=1))
        counts = [sum(start <= number < end for number in kept) for start, end in itertools.pairwise(ends)]
        return replace(
            self,
            header=[self.header[number] for number in kept],
            blocks=[[[row[number] for number in kept] for row in block] for block in self.blocks],
            spans=[(title, count) for (title, _), count in zip(self.spans, counts, strict=True) if count],
        )

    @property
    def non_empty_blocks(self) -> list[Sequence[TableRow]]:
        """The blocks that have rows."""
        return [block for block in self.blocks if block]


def as_text(table: Table) -> str:
    """Return the table for a terminal; > marks the best value of a column, + the second."""
    signs = {"best": ">", "second": "+", None: ""}

    def cell(entry: Entry | str) -> str:
        return printable(entry if isinstance(entry, str) else signs[entry.emphasis] + entry.text + entry.mark)

    body = [[[cell(entry) for entry in row] for row in block] for block in table.non_empty_blocks]
    blocks = [[[printable(title) for title in table.header]], *body]
    widths = [max(map(len, column)) for column in zip(*itertools.chain(*blocks), strict=True)]
    spans = [(printable(title), count) for title, count in table.spans]
    _widen_for_spans(widths, spans)
    lines = [["  ".join(_pad(row, widths)) for row in block] for block in blocks]
    lines[0] = [*([_span_line(spans, widths)] if spans else []), *lines[0]]
    caption = table.caption.replace("best in bold, second underlined", "> best, + second")
    texts = [printable(text) for text in (caption, *table.notes, *table.remarks) if text]
    ruled = join_blocks(lines, "-" * len(lines[0][-1]))
    return "\n".join(line.rstrip() for line in [*ruled, *([""] if texts else []), *texts]) + "\n"


def join_blocks(blocks: Sequence[Sequence[str]], rule: str) -> list[str]:
    """Return the lines of all blocks, with a rule between each block and the next."""
    return [line for number, block in enumerate(blocks) for line in ([rule] if number else []) + list(block)]


def _widen_for_spans(widths: list[int], spans: Sequence[tuple[str, int]]) -> None:
    """Widen the last column of each span until the span's title fits."""
    column = 1
    for title, count in spans:
        width = sum(widths[column : column + count]) + 2 * (count - 1)
        widths[column + count - 1] += max(0, len(title) - width)
        column += count


def _span_line(spans: Sequence[tuple[str, int]], widths: list[int]) -> str:
    parts, column = [" " * widths[0]], 1
    for title, count in spans:
        parts.append(title.center(sum(widths[column : column + count]) + 2 * (count - 1)))
        column += count
    return "  ".join(parts)


def _pad(row: Sequence[str], widths: list[int]) -> list[str]:
    return [
        text.ljust(width) if column == 0 else text.rjust(width)
        for column, (text, width) in enumerate(zip(row, widths, strict=True))
    ]
