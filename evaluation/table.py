"""A table, and how it looks as text, Markdown, LaTeX, CSV and JSON."""

from __future__ import annotations

import csv
import io
import itertools
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal

LATEX_SPECIALS = {
    "\\": r"\textbackslash{}",
    "&": r"\&",
    "%": r"\%",
    "$": r"\$",
    "#": r"\#",
    "_": r"\_",
    "{": r"\{",
    "}": r"\}",
    "~": r"\textasciitilde{}",
    "^": r"\textasciicircum{}",
    "<": r"\textless{}",
    ">": r"\textgreater{}",
    "|": r"\textbar{}",
}
MARKDOWN_SPECIALS = {"\\": "\\\\", "|": "\\|", "*": "\\*", "`": "\\`", "[": "\\[", "<": "&lt;"}
LATEX_MARKS = {"*": "*", "†": r"$^\dagger$"}


@dataclass(frozen=True)
class Entry:
    """A text in a table, with its emphasis and the mark behind it (a star, a dagger)."""

    text: str
    emphasis: Literal["best", "second"] | None = None
    mark: str = ""


Line = Sequence[Entry | str]


@dataclass(frozen=True)
class Table:
    """Lines in blocks, with rules between the blocks.

    Args:
        label: what LaTeX refers to it by.
        header: titles of the columns; the first column is on the left, the others on the right.
        blocks: of lines.
        caption: sentences that say what is in it.
        remarks: further lines below it.
        spans: titles above several columns each, by how many; they start at the second column.
    """

    label: str
    header: Sequence[str]
    blocks: Sequence[Sequence[Line]]
    caption: str = ""
    remarks: Sequence[str] = ()
    spans: Sequence[tuple[str, int]] = field(default_factory=tuple)

    @property
    def filled(self) -> list[Sequence[Line]]:
        """The blocks that have lines."""
        return [block for block in self.blocks if block]


def as_text(table: Table) -> str:
    """For the terminal; the best value of a column is marked with >, the second with a plus sign."""
    signs = {"best": ">", "second": "+", None: ""}

    def cell(entry: Entry | str) -> str:
        return _printable(entry if isinstance(entry, str) else signs[entry.emphasis] + entry.text + entry.mark)

    blocks = [[list(table.header)], *[[[cell(entry) for entry in line] for line in block] for block in table.filled]]
    widths = [max(map(len, column)) for column in zip(*itertools.chain(*blocks), strict=True)]
    _widen(widths, table.spans)
    lines = [["  ".join(_padded(line, widths)) for line in block] for block in blocks]
    heading = [_heading(table.spans, widths)] if table.spans else []
    lines[0] = heading + lines[0]
    note = table.caption.replace("best in bold, second underlined", "> best, + second")
    notes = [_printable(text) for text in (note, *table.remarks) if text]
    body = _ruled(lines, "-" * len(lines[0][-1]))
    return "\n".join(line.rstrip() for line in [*body, *([""] if notes else []), *notes]) + "\n"


def as_markdown(table: Table) -> str:
    """For a Markdown page; blocks and spans have no rules there, so a span stands before each of its titles."""
    bold: dict[str | None, Callable[[str], str]] = {
        "best": lambda text: f"**{text}**",
        "second": lambda text: f"<u>{text}</u>",
        None: str,
    }

    def cell(entry: Entry | str) -> str:
        plain = Entry(entry) if isinstance(entry, str) else entry
        return bold[plain.emphasis](_escape_markdown(plain.text)) + _escape_markdown(plain.mark)

    titles = itertools.chain([""], *([span] * count for span, count in table.spans), itertools.repeat(""))
    header = [_escape_markdown(f"{span} {title}".strip()) for span, title in zip(titles, table.header, strict=False)]
    lines = [[cell(entry) for entry in line] for line in itertools.chain(*table.filled)]
    rule = "|" + "|".join([" --- "] + [" ---: "] * (len(header) - 1)) + "|"
    rows = ["| " + " | ".join(line) + " |" for line in lines]
    notes = [_escape_markdown(note) for note in (table.caption, *table.remarks) if note]
    return "\n".join(["| " + " | ".join(header) + " |", rule, *rows, *([""] if notes else []), *notes]) + "\n"


def as_latex(table: Table) -> str:
    """A complete table environment; needs the package booktabs only. Remarks become comments."""
    wraps: dict[str | None, Callable[[str], str]] = {
        "best": lambda text: rf"\textbf{{{text}}}",
        "second": lambda text: rf"\underline{{{text}}}",
        None: str,
    }

    def cell(entry: Entry | str) -> str:
        plain = Entry(entry) if isinstance(entry, str) else entry
        return wraps[plain.emphasis](escape_latex(plain.text)) + LATEX_MARKS.get(plain.mark, escape_latex(plain.mark))

    header = [escape_latex(title) for title in table.header]
    blocks = [[header], *[[[cell(entry) for entry in line] for line in block] for block in table.filled]]
    lines = _ruled([[" & ".join(line) + r" \\" for line in block] for block in blocks], r"\midrule")
    label = "".join(character if character.isalnum() else "-" for character in table.label)
    caption = escape_latex(table.caption)
    for mark, command in LATEX_MARKS.items():
        caption = caption.replace(mark, command)
    return "\n".join(
        [
            r"\begin{table}",
            *(f"% {_printable(remark)}" for remark in table.remarks),
            r"\centering",
            rf"\caption{{{caption}}}",
            rf"\label{{tab:{label}}}",
            rf"\begin{{tabular}}{{l{'r' * (len(table.header) - 1)}}}",
            r"\toprule",
            *_latex_spans(table.spans),
            *lines,
            r"\bottomrule",
            r"\end{tabular}",
            r"\end{table}",
            "",
        ]
    )


def as_records(table: Table) -> dict[str, Any]:
    """For JSON: the texts of the cells."""
    lines = [
        [entry if isinstance(entry, str) else entry.text + entry.mark for entry in line]
        for line in itertools.chain(*table.filled)
    ]
    return {"label": table.label, "header": list(table.header), "lines": lines, "caption": table.caption}


def as_csv(table: Table) -> str:
    """For a spreadsheet: the header and the texts of the cells."""
    found = as_records(table)
    return csv_of(found["header"], found["lines"])


def csv_of(header: Sequence[str], lines: Sequence[Sequence[object]]) -> str:
    """Lines as comma-separated values."""
    buffer = io.StringIO()
    csv.writer(buffer, lineterminator="\n").writerows([header, *lines])
    return buffer.getvalue()


RENDERERS: dict[str, Callable[[Table], str]] = {"text": as_text, "markdown": as_markdown, "latex": as_latex}


def escape_latex(text: str) -> str:
    """Text with LaTeX's special characters escaped."""
    return "".join(LATEX_SPECIALS.get(character, character) for character in _printable(text))


def _latex_spans(spans: Sequence[tuple[str, int]]) -> list[str]:
    if not spans:
        return []
    titles = [rf"\multicolumn{{{count}}}{{c}}{{{escape_latex(title)}}}" for title, count in spans]
    ends = list(itertools.accumulate((count for _, count in spans), initial=1))
    rules = [rf"\cmidrule(lr){{{start + 1}-{end}}}" for start, end in itertools.pairwise(ends)]
    return [" & " + " & ".join(titles) + r" \\", "".join(rules)]


def _widen(widths: list[int], spans: Sequence[tuple[str, int]]) -> None:
    """Make the last column of a span wide enough for its title."""
    column = 1
    for title, count in spans:
        width = sum(widths[column : column + count]) + 2 * (count - 1)
        widths[column + count - 1] += max(0, len(title) - width)
        column += count


def _heading(spans: Sequence[tuple[str, int]], widths: list[int]) -> str:
    parts, column = [" " * widths[0]], 1
    for title, count in spans:
        parts.append(title.center(sum(widths[column : column + count]) + 2 * (count - 1)))
        column += count
    return "  ".join(parts)


def _padded(line: Sequence[str], widths: list[int]) -> list[str]:
    return [
        text.ljust(width) if column == 0 else text.rjust(width)
        for column, (text, width) in enumerate(zip(line, widths, strict=True))
    ]


def _ruled(blocks: Sequence[Sequence[str]], rule: str) -> list[str]:
    """The lines of all blocks with a rule between one block and the next."""
    return [line for number, block in enumerate(blocks) for line in ([rule] if number else []) + list(block)]


def _escape_markdown(text: str) -> str:
    return "".join(MARKDOWN_SPECIALS.get(character, character) for character in _printable(text))


def _printable(text: str) -> str:
    """Text in one line and without control characters, which a terminal would obey."""
    return "".join(character if character.isprintable() else " " for character in text)
