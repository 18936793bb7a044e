"""What all figures share: type, one look per model, and saving. Nothing is shown and no state is shared."""

from __future__ import annotations

import functools
import io
import math
import re
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Any, ParamSpec

import matplotlib as mpl
from matplotlib.axis import Axis
from matplotlib.figure import Figure
from matplotlib.ticker import FuncFormatter

from evaluation.results.files import write_figure

INK = "#1b1d21"
"""The colour of text and axes; the page replaces it by its own, which is light on dark."""
PALE = "#8a9099"
"""The colour of grid lines and of what stands in the background."""

STYLE: dict[str, Any] = {
    "font.size": 9,
    "axes.titlesize": 9,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "axes.grid": True,
    "grid.color": PALE,
    "grid.alpha": 0.25,
    "grid.linewidth": 0.6,
    "axes.axisbelow": True,
    "legend.frameon": False,
    "legend.fontsize": 8,
    "lines.linewidth": 1.4,
    "lines.markersize": 4.5,
    "text.color": INK,
    "axes.edgecolor": INK,
    "axes.labelcolor": INK,
    "axes.titlecolor": INK,
    "xtick.color": INK,
    "ytick.color": INK,
    "xtick.minor.pad": 5.0,  # as far from the axis as the major ones, whose ticks are longer
    "ytick.minor.pad": 5.0,
    "text.parse_math": False,  # names come from recipes, and a dollar sign in one is a dollar sign
    "pdf.fonttype": 42,
    "svg.fonttype": "none",
    "svg.hashsalt": "aprec_like",
    "savefig.dpi": 200,
}
COLOURS = (
    "#0072b2", "#d55e00", "#009e73", "#cc79a7", "#e69f00", "#56b4e9", "#8c6bb1", "#a6761d", "#66a61e", "#808080",
)  # fmt: skip
MARKERS = "os^DvPX<>*"
LINES = ("-", "--", "-.")
"""Three, so that with ten colours and markers the first thirty looks all differ."""
INCHES_PER_LETTER, INCHES_PER_HANDLE, INCHES_PER_LINE = 0.075, 0.6, 0.17
"""What the entry of a legend takes, about."""
FEW_POWERS = 100
"""An axis whose ends have at most this ratio holds one or two powers of ten, too few to read it by."""
NO_DATE = {"pdf": {"CreationDate": None}, "svg": {"Date": None, "Creator": None, "Format": None, "Type": None}}

P = ParamSpec("P")


@dataclass(frozen=True)
class Look:
    """How a model looks in every figure; without colours, marker and line still tell it."""

    colour: str
    marker: str
    line: str


def looks_of(names: Iterable[str]) -> dict[str, Look]:
    """A look for each name, by its place."""
    return {
        name: Look(COLOURS[i % len(COLOURS)], MARKERS[i % len(MARKERS)], LINES[i % len(LINES)])
        for i, name in enumerate(names)
    }


def styled(draw: Callable[P, Figure]) -> Callable[P, Figure]:
    """Draw in the house's style, whatever the user's matplotlib is set to, and lay out once for all formats."""

    @functools.wraps(draw)
    def drawn(*args: P.args, **kwargs: P.kwargs) -> Figure:
        with mpl.rc_context({**mpl.rcParamsDefault, **STYLE}):
            figure = draw(*args, **kwargs)
            figure.draw_without_rendering()
            figure.set_layout_engine("none")
            return figure

    return drawn


def make_figure(width: float, height: float, rows: int = 1, columns: int = 1, **options: Any) -> tuple[Figure, Any]:
    """A figure of this many inches and its (rows, columns) axes."""
    figure = Figure(figsize=(width, height), layout="constrained")
    return figure, figure.subplots(rows, columns, squeeze=False, **options)


def plain_numbers(*of_axes: Axis) -> None:
    """Write the numbers of logarithmic axes as 0.01 and 1,000; where powers of ten are few, some between them too."""
    for axis in of_axes:
        axis.set_major_formatter(FuncFormatter(lambda value, _: _plain(value)))
        axis.set_minor_formatter(FuncFormatter(functools.partial(_between_powers, axis)))


def _plain(value: float) -> str:
    return f"{value:,.0f}" if value >= 1 else f"{value:g}"


def _between_powers(axis: Axis, value: float, place: int | None = None) -> str:
    low, high = axis.get_view_interval()
    shown = "23457" if high < 10 * low else "25" if high < FEW_POWERS * low else ""
    return _plain(value) if f"{value:.0e}"[0] in shown else ""


def legend_below(figure: Figure) -> None:
    """One legend for all panels of a figure, where no data can be; the figure grows with it."""
    handles: dict[str, Any] = {}
    for axes in figure.axes:
        for handle, label in zip(*axes.get_legend_handles_labels(), strict=True):
            handles.setdefault(label, handle)
    if not handles:
        return
    width = INCHES_PER_LETTER * max(map(len, handles)) + INCHES_PER_HANDLE
    columns = min(len(handles), max(1, int(figure.get_figwidth() / width)))
    rows = math.ceil(len(handles) / columns)
    figure.set_figheight(figure.get_figheight() + INCHES_PER_LINE * rows)
    figure.legend(handles.values(), handles.keys(), loc="outside lower center", ncols=columns)


def save(figure: Figure, path: Path) -> None:
    """Write a figure; the ending of the name says how (.pdf, .png, .svg)."""
    kind = path.suffix[1:]
    with mpl.rc_context({**mpl.rcParamsDefault, **STYLE}):
        write_figure(path, lambda temporary: figure.savefig(temporary, format=kind, metadata=NO_DATE.get(kind)))


def as_svg(figure: Figure, prefix: str) -> str:
    """A figure as an element for a page: no background, ink as the page's text, ids of its own."""
    buffer = io.StringIO()
    with mpl.rc_context({**mpl.rcParamsDefault, **STYLE}):
        figure.savefig(buffer, format="svg", transparent=True, metadata=NO_DATE["svg"])
    text = buffer.getvalue()
    text = text[text.index("<svg") :].replace(INK, "currentColor")
    text = re.sub(r"<metadata>.*?</metadata>", "", text, flags=re.S)
    return re.sub(r'(\bid="|url\(#|href="#)', rf"\g<1>{prefix}-", text)
