"""Writers of a table as Markdown, HTML, LaTeX, CSV and JSON."""

from __future__ import annotations

import csv
import html
import io
import itertools
import re
from collections.abc import Callable, Mapping, Sequence
from typing import Literal

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
    "±": r"$\pm$",
}
LATEX_MARKS = {"*": r"$^{*}$", "†": r"$^\dagger$"}
MINUS = re.compile(r"(?<![\w.)-])-(?=\d)")
"""A hyphen that stands for a minus sign."""
LATEX_FIT_START: Mapping[str, Sequence[str]] = {
    "natural": (),
    "column": (
        r"\footnotesize",
        r"\setlength{\tabcolsep}{3pt}",
        r"\resizebox{\ifdim\width>\columnwidth\columnwidth\else\width\fi}{!}{%",
    ),
    "page": (r"\small", r"\resizebox{\ifdim\width>\textwidth\textwidth\else\width\fi}{!}{%"),
}
"""What precedes a table of a fit; the scaled box ends after the table."""
LATEX_EMPHASIS = {"best": r"\textbf{{{}}}", "second": r"\underline{{{}}}", None: "{}"}
HTML_EMPHASIS = {"best": "<b>{}</b>", "second": "<u>{}</u>", None: "{}"}
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
    texts = [_escape_markdown(text) for text in (table.caption, *table.notes, *table.remarks) if text]
    return "\n".join(["| " + " | ".join(header) + " |", rule, *rows, *([""] if texts else []), *texts]) + "\n"


def as_html(table: Table) -> str:
    """Return the table as an HTML element, its texts below, for notebooks; all texts are escaped."""

    def cells(row: TableRow, tag: str) -> str:
        texts = [_format_cell(entry, HTML_EMPHASIS, _escape_html) for entry in row]
        styles = ["text-align: left", *["text-align: right"] * (len(texts) - 1)]
        return "".join(f'<{tag} style="{style}">{text}</{tag}>' for style, text in zip(styles, texts, strict=True))

    spans = "".join(f'<th colspan="{count}">{_escape_html(title)}</th>' for title, count in table.spans)
    head = (f"<tr><th></th>{spans}</tr>" if spans else "") + f"<tr>{cells(table.header, 'th')}</tr>"
    bodies = ["".join(f"<tr>{cells(row, 'td')}</tr>" for row in block) for block in table.non_empty_blocks]
    texts = [f"<p>{_escape_html(text)}</p>" for text in (table.caption, *table.notes, *table.remarks) if text]
    rows = "".join(f'<tbody style="border-top: 1px solid">{body}</tbody>' for body in bodies)
    return f"<div><table><thead>{head}</thead>{rows}</table>{''.join(texts)}</div>"


Fit = Literal["natural", "column", "page"]
"""Width of a LaTeX table: its own, at most that of a column, or at most that of a page with two columns."""


def as_latex(table: Table, fit: Fit = "natural") -> str:
    """Return a complete table environment; the first comment names the packages that it needs, remarks are comments.

    Args:
        table: the table.
        fit: `column` and `page` give a table, or a table* over both columns, in a smaller font, which is scaled down
            where it is still too wide.
    """
    rooms = _latex_rooms(table)

    def line(row: TableRow) -> str:
        return " & ".join(map(_latex_cell, row, rooms)) + r" \\"

    titles = [" & ".join(escape_latex(title) for title in table.header) + r" \\"]
    blocks = [titles, *([line(row) for row in block] for block in table.non_empty_blocks)]
    label = "".join(character if character.isalnum() else "-" for character in table.label)
    environment = "table*" if fit == "page" else "table"
    packages = ["booktabs", *([] if fit == "natural" else ["graphicx"])]
    has_spread = any(room.spread for room in rooms)
    caption = table.caption + (" ± is the standard deviation over seeds." if has_spread else "")
    columns = f"l{'r' * (len(table.header) - 1)}"
    return "\n".join(
        [
            rf"\begin{{{environment}}}",
            f"% needs {', '.join(f'{chr(92)}usepackage{{{package}}}' for package in packages)}",
            *(f"% {printable(remark)}" for remark in table.remarks),
            r"\centering",
            rf"\caption{{{escape_latex(caption)}}}",
            rf"\label{{tab:{label}}}",
            *LATEX_FIT_START[fit],
            rf"\begin{{tabular}}{{{columns if fit == 'natural' else f'@{{}}{columns}@{{}}'}}}",
            r"\toprule",
            *_latex_spans(table.spans),
            *join_blocks(blocks, r"\midrule"),
            r"\bottomrule",
            r"\end{tabular}" + ("" if fit == "natural" else "%"),
            *([] if fit == "natural" else ["}"]),
            *_latex_notes(table.notes),
            rf"\end{{{environment}}}",
            "",
        ]
    )


def _latex_notes(notes: Sequence[str]) -> list[str]:
    """Return the notes as one paragraph below the table, as wide as the text around it."""
    if not notes:
        return []
    return [r"\par\smallskip", r"\parbox{\linewidth}{\footnotesize\raggedright", *map(escape_latex, notes), "}"]


def _latex_rooms(table: Table) -> list[Entry]:
    """Return for each column a spread and a mark that one of its cells has, for which the others leave room."""

    def room(column: Sequence[Entry | str]) -> Entry:
        cells = [cell for cell in column if isinstance(cell, Entry)]
        spreads, marks = ([getattr(cell, name) for cell in cells] for name in ("spread", "mark"))
        return Entry("", mark=max(marks, default=""), spread=max(spreads, default=""))

    rows = [*itertools.chain(*table.non_empty_blocks)] or [table.header]
    return [room(column) for column in zip(*rows, strict=True)]


def _latex_cell(entry: Entry | str, room: Entry) -> str:
    """Return a cell; where it lacks a spread or a mark that its column has, room for it keeps the numbers aligned."""
    plain = Entry(entry) if isinstance(entry, str) else entry
    if not plain.text:
        return ""
    text = LATEX_EMPHASIS[plain.emphasis].format(MINUS.sub("$-$", escape_latex(plain.text)))
    missing = ("" if plain.mark else _latex_mark(room.mark)) + ("" if plain.spread else _latex_spread(room.spread))
    space = rf"\phantom{{{missing}}}" if missing else ""
    return text + _latex_spread(plain.spread) + _latex_mark(plain.mark) + space


def _latex_spread(spread: str) -> str:
    return rf"{{\scriptsize$\pm${spread}}}" if spread else ""


def _latex_mark(mark: str) -> str:
    return LATEX_MARKS.get(mark, escape_latex(mark))


def as_json(table: Table) -> Json:
    """Return the label, the header, the texts of the cells the caption and the notes as a JSON object."""
    rows = [
        [entry if isinstance(entry, str) else entry.text + entry.mark for entry in row]
        for row in itertools.chain(*table.non_empty_blocks)
    ]
    return {"label": table.label, "header": list(table.header), "lines": rows, "caption": table.caption} | (
        {"notes": list(table.notes)} if table.notes else {}
    )


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


def _escape_html(text: str) -> str:
    return html.escape(printable(text))


def _escape_markdown(text: str) -> str:
    return "".join(MARKDOWN_SPECIALS.get(character, character) for character in printable(text))
