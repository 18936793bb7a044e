"""Tables, figures and facts as values for the template of the page, and the rendering of the template.

Jinja2 with autoescape renders `assets/page.html.jinja`: every text is escaped, so that the name of a model can't become
markup. Only values of the type `Markup` are not: SVG, CSS and JavaScript that the project makes itself.
"""

from __future__ import annotations

import base64
import hashlib
from collections.abc import Sequence
from dataclasses import dataclass
from importlib import resources

import jinja2
from markupsafe import Markup

from evaluation.figures.all_figures import ReportFigure
from evaluation.figures.style import to_svg
from evaluation.printable import printable_lines
from evaluation.table import Entry, Table

WIDE_INCHES = 6.0
"""Wider figures take the whole width of the page."""


@dataclass(frozen=True)
class Badge:
    """A label beside the name of a model; `title` is shown on hover."""

    text: str
    is_warning: bool = False
    title: str = ""


@dataclass(frozen=True)
class Cell:
    """A cell of a table.

    Args:
        text: main text.
        emphasis: "best", "second" or `None`.
        mark: star or dagger behind the text.
        note: small text below, such as an interval.
        sort_value: number to sort by instead of the text.
        badges: labels behind the text.
        css_class: class of the cell.
    """

    text: str = ""
    emphasis: str | None = None
    mark: str = ""
    note: str = ""
    sort_value: float | None = None
    badges: Sequence[Badge] = ()
    css_class: str = ""


@dataclass(frozen=True)
class HtmlTable:
    """A table that can be sorted by its columns, block by block; each block is a list of rows of cells."""

    header: Sequence[str]
    blocks: Sequence[Sequence[Sequence[Cell]]]
    caption: str = ""
    notes: Sequence[str] = ()
    remarks: Sequence[str] = ()


@dataclass(frozen=True)
class HtmlFigure:
    """A figure as an SVG element."""

    svg: Markup
    caption: str
    is_wide: bool


@dataclass(frozen=True)
class Fact:
    """A name with one or more values."""

    name: str
    values: Sequence[str]
    is_code: bool = False


def number_cell(value: float | None, form: str) -> Cell:
    """Return a cell with a number in a format such as ".4f"; an empty one for `None`."""
    return Cell("" if value is None else format(value, form))


def to_html_table(table: Table) -> HtmlTable:
    """Return a table of the harness as a table of the page."""

    def cell(entry: Entry | str) -> Cell:
        return Cell(entry) if isinstance(entry, str) else Cell(entry.text, entry.emphasis, entry.mark)

    blocks = [[[cell(entry) for entry in row] for row in block] for block in table.blocks]
    return HtmlTable(table.header, blocks, table.caption, table.notes, table.remarks)


def to_html_figure(figure: ReportFigure) -> HtmlFigure:
    """Return a figure as SVG, which takes the colour of the page's text."""
    svg = Markup(to_svg(figure.figure, figure.name))
    return HtmlFigure(svg, figure.caption, is_wide=figure.figure.get_figwidth() > WIDE_INCHES)


def render_page(page: object, template: str = "page.html.jinja") -> str:
    """Return the HTML of a page; it needs no other file, and its policy allows no other script.

    Args:
        page: what the template shows, as its variable `page`.
        template: file in the assets folder.
    """
    loader = jinja2.PackageLoader("evaluation.page", "assets")
    environment = jinja2.Environment(
        loader=loader,
        autoescape=True,
        finalize=_finalize,
        undefined=jinja2.StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    style, script = (read_asset(f"page.{suffix}") for suffix in ("css", "js"))
    digest = base64.b64encode(hashlib.sha256(script.encode()).digest()).decode()
    environment.globals |= {"page": page, "style": Markup(style), "script": Markup(script), "script_digest": digest}
    return environment.get_template(template).render() + "\n"


def _finalize(value: object) -> object:
    """Return what the template shows of a value: a text from outside without characters that can't be seen."""
    return printable_lines(value) if isinstance(value, str) and not isinstance(value, Markup) else value


def read_asset(name: str) -> str:
    """Return the text of a file in the assets folder."""
    return resources.files("evaluation.page").joinpath(f"assets/{name}").read_text("utf-8")
