"""Writers of a table as Markdown, LaTeX, CSV and JSON."""

from __future__ import annotations

import csv
import io
import itertools
from collections.abc import Callable, Mapping, Sequence

from aprec_like.types import Json
from evaluation.printable import printable, spreadsheet_cell
from evaluation.table import Entry, Table, TableRow, as_text, join_blocks

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
    "†": r"$^\dagger$",
}
LATEX_EMPHASIS = {"best": r"\textbf{{{}}}", "second": r"\underline{{{}}}", None: "{}"}
MARKDOWN_SPECIALS = {"\\": "\\\\", "|": "\\|", "*": "\\*", "`": "\\`", "[": "\\[", "<": "&lt;"}
MARKDOWN_EMPHASIS = {"best": "**{}**", "second": "<u>{}</u>", None: "{}"}


def as_markdown(table: Table) -> str:
    """Return the table as Markdown, which has no rules and spans: the title of a span precedes each of its columns."""
    titles = itertools.chain([""], *([span] * count for span, count in table.spans), itertools.repeat(""))
    header = [_escape_markdown(f"{span} {title}".strip()) for span, title in zip(titles, table.header, strict=False)]
    rule = "|" + "|".join([" --- "] + [" ---: "] * (len(header) - 1)) + "|"
    rows = [
        "| " + " | ".join(_format_cell(entry, MARKDOWN_EMPHASIS, _escape_markdown) for entry in row) + " |"
        for row in itertools.chain(*table.non_empty_blocks)
    ]
    notes = [_escape_markdown(note) for note in (table.caption, *table.remarks) if note]
    return "\n".join(["| " + " | ".join(header) + " |", rule, *rows, *([""] if notes else []), *notes]) + "\n"


def as_latex(table: Table) -> str:
    """Return a complete table environment, which needs only the package booktabs; remarks become comments."""

    def line(row: TableRow) -> str:
        return " & ".join(_format_cell(entry, LATEX_EMPHASIS, escape_latex) for entry in row) + r" \\"

    blocks = [[line(row) for row in block] for block in ([table.header], *table.non_empty_blocks)]
    label = "".join(character if character.isalnum() else "-" for character in table.label)
    return "\n".join(
        [
            r"\begin{table}",
            *(f"% {printable(remark)}" for remark in table.remarks),
            r"\centering",
            rf"\caption{{{escape_latex(table.caption)}}}",
            rf"\label{{tab:{label}}}",
            rf"\begin{{tabular}}{{l{'r' * (len(table.header) - 1)}}}",
            r"\toprule",
            *_latex_spans(table.spans),
            *join_blocks(blocks, r"\midrule"),
            r"\bottomrule",
            r"\end{tabular}",
            r"\end{table}",
            "",
        ]
    )


def as_json(table: Table) -> Json:
    """Return the label, the header, the texts of the cells and the caption as a JSON object."""
    rows = [
        [entry if isinstance(entry, str) else entry.text + entry.mark for entry in row]
        for row in itertools.chain(*table.non_empty_blocks)
    ]
    return {"label": table.label, "header": list(table.header), "lines": rows, "caption": table.caption}


def as_csv(table: Table) -> str:
    """Return the header and the texts of the cells as comma-separated values."""
    values = as_json(table)
    return format_csv(values["header"], values["lines"])


def format_csv(header: Sequence[str], rows: Sequence[Sequence[object]]) -> str:
    """Return a header and rows as comma-separated values, without cells that a spreadsheet would compute."""
    buffer = io.StringIO()
    lines = [[spreadsheet_cell(cell) for cell in row] for row in (header, *rows)]
    csv.writer(buffer, lineterminator="\n").writerows(lines)
    return buffer.getvalue()


RENDERERS: dict[str, Callable[[Table], str]] = {"text": as_text, "markdown": as_markdown, "latex": as_latex}
"""Formats of tables for readers, by the value of `--format`."""


def escape_latex(text: str) -> str:
    """Return the text with LaTeX's special characters escaped."""
    return "".join(LATEX_SPECIALS.get(character, character) for character in printable(text))


def _format_cell(entry: Entry | str, emphasis: Mapping[str | None, str], escape: Callable[[str], str]) -> str:
    """Return the escaped text of a cell in the format of its emphasis, with its mark."""
    plain = Entry(entry) if isinstance(entry, str) else entry
    return emphasis[plain.emphasis].format(escape(plain.text)) + escape(plain.mark)


def _latex_spans(spans: Sequence[tuple[str, int]]) -> list[str]:
    if not spans:
        return []
    titles = [rf"\multicolumn{{{count}}}{{c}}{{{escape_latex(title)}}}" for title, count in spans]
    ends = list(itertools.accumulate((count for _, count in spans), initial=1))
    rules = [rf"\cmidrule(lr){{{start + 1}-{end}}}" for start, end in itertools.pairwise(ends)]
    return [" & " + " & ".join(titles) + r" \\", "".join(rules)]


def _escape_markdown(text: str) -> str:
    return "".join(MARKDOWN_SPECIALS.get(character, character) for character in printable(text))
