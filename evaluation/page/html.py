"""Parts of an HTML page: everything that comes from data is escaped here, and nothing is fetched from anywhere."""

from __future__ import annotations

import base64
import hashlib
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from html import escape
from importlib import resources

from evaluation.figures.all_figures import ReportFigure
from evaluation.figures.style import to_svg
from evaluation.table import Entry, Table

WIDE_INCHES = 6.0
"""Figures wider than this have a row of the page to themselves."""


@dataclass(frozen=True)
class Html:
    """Text that is HTML already; any other text gets escaped."""

    text: str


def html(value: str | Html) -> str:
    """A value as it may stand in a page."""
    return value.text if isinstance(value, Html) else escape(value)


def element(name: str, *children: str | Html, **attributes: str) -> Html:
    """An element; attributes that are Python keywords end in an underscore."""
    written = "".join(f' {key.rstrip("_").replace("_", "-")}="{escape(value)}"' for key, value in attributes.items())
    return Html(f"<{name}{written}>{''.join(map(html, children))}</{name}>")


def joined(parts: Iterable[Html], separator: str = "\n") -> Html:
    """Parts one after the other."""
    return Html(separator.join(part.text for part in parts))


def section(identifier: str, title: str, *parts: Html) -> Html:
    """A part of the page that its menu leads to."""
    return element("section", element("h2", title), *parts, id=identifier)


def details(title: str, *parts: Html) -> Html:
    """Something that opens on demand."""
    return element("details", element("summary", title), *parts)


def facts(pairs: Iterable[tuple[str, str | Html]]) -> Html:
    """Names and values."""
    return element("dl", joined(joined([element("dt", name), element("dd", value)], "") for name, value in pairs))


def listing(lines: Sequence[str | Html]) -> Html:
    """A list of sentences; nothing if there are none."""
    return element("ul", joined(element("li", line) for line in lines)) if lines else Html("")


def copyable(identifier: str, title: str, text: str) -> Html:
    """A text to copy."""
    button = element("button", "Copy", class_="copy", type="button", data_of=identifier)
    return joined([element("h3", title, button), element("pre", element("code", text), id=identifier)])


def grid(header: Sequence[str], blocks: Sequence[Sequence[Sequence[Html]]], caption: str = "") -> Html:
    """A table of `td` elements in blocks; a click on a title sorts every block."""

    def title(text: str, place: int) -> Html:
        button = element("button", text, type="button")
        return element("th", button, scope="col", data_first="descending" if place else "ascending")

    head = element("thead", element("tr", *(title(text, place) for place, text in enumerate(header))))
    bodies = [element("tbody", *(element("tr", *line) for line in block)) for block in blocks if block]
    table = element("div", element("table", head, *bodies, class_="sortable"), class_="scroll")
    return joined([table, *([element("p", caption, class_="soft")] if caption else [])])


def table_of(table: Table) -> Html:
    """A table of the harness."""

    def cell(entry: Entry | str) -> Html:
        plain = Entry(entry) if isinstance(entry, str) else entry
        return value_cell(plain)

    blocks = [[[cell(entry) for entry in line] for line in block] for block in table.filled]
    return joined([grid(table.header, blocks, table.caption), listing(list(table.remarks))])


def value_cell(entry: Entry, note: str = "", value: float | None = None) -> Html:
    """A cell with its emphasis, its mark and a note below; `value` is what it is sorted by."""
    attributes = {} if value is None else {"data_value": repr(value)}
    text = element("span", entry.text, class_=entry.emphasis) if entry.emphasis else Html(escape(entry.text))
    mark = element("span", entry.mark, class_="mark") if entry.mark else Html("")
    return element("td", text, mark, *([element("span", note, class_="interval")] if note else []), **attributes)


def figures(report_figures: Sequence[ReportFigure]) -> Html:
    """Figures, as drawings of the page itself."""

    def shown(report_figure: ReportFigure) -> Html:
        drawing = element("div", Html(to_svg(report_figure.figure, report_figure.name)), class_="scroll")
        is_wide = report_figure.figure.get_figwidth() > WIDE_INCHES
        attributes = {"class_": "wide"} if is_wide else {}
        return element("figure", drawing, element("figcaption", report_figure.caption), **attributes)

    return element("div", *map(shown, report_figures), class_="figures") if report_figures else Html("")


def whole_page(title: str, header: Html, sections: Sequence[tuple[str, str, Html]]) -> str:
    """The page: sections by identifier and title, with a menu; scripts other than its own are forbidden by hash."""
    style, script = (
        resources.files("evaluation.page").joinpath(f"assets/page.{kind}").read_text() for kind in ("css", "js")
    )
    digest = base64.b64encode(hashlib.sha256(script.encode()).digest()).decode()
    policy = f"default-src 'none'; img-src data:; style-src 'unsafe-inline'; script-src 'sha256-{digest}'"
    menu = [element("li", element("a", name, href=f"#{identifier}")) for identifier, name, _ in sections]
    body = joined(section(identifier, name, content) for identifier, name, content in sections)
    return f"""<!DOCTYPE html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta http-equiv="Content-Security-Policy" content="{policy}">
<title>{escape(title)}</title>
<style>
{style}</style>
</head>
<body>
<header>{header.text}</header>
<nav aria-label="Sections">{element("ul", *menu).text}</nav>
<main>
{body.text}
</main>
<script>{script}</script>
</body>
</html>
"""
