"""Shared parts of all figures: matplotlib settings, one plot style per model, axes, legends, and saving."""

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

from evaluation.results.files import write_bytes

TEXT_COLOUR = "#1b1d21"
"""Colour of text and axes; in the page it becomes the text colour of the page, light or dark."""
GRID_COLOUR = "#8a9099"
"""Colour of grid lines and reference lines."""

RC_PARAMS: dict[str, Any] = {
    "font.size": 9,
    "axes.titlesize": 9,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "axes.grid": True,
    "grid.color": GRID_COLOUR,
    "grid.alpha": 0.25,
    "grid.linewidth": 0.6,
    "axes.axisbelow": True,
    "legend.frameon": False,
    "legend.fontsize": 8,
    "lines.linewidth": 1.4,
    "lines.markersize": 4.5,
    "text.color": TEXT_COLOUR,
    "axes.edgecolor": TEXT_COLOUR,
    "axes.labelcolor": TEXT_COLOUR,
    "axes.titlecolor": TEXT_COLOUR,
    "xtick.color": TEXT_COLOUR,
    "ytick.color": TEXT_COLOUR,
    "xtick.minor.pad": 5.0,  # aligns minor labels with major ones, whose ticks are longer
    "ytick.minor.pad": 5.0,
    "text.parse_math": False,  # a dollar sign in the name of a model is not mathematics
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
"""Three line types: with ten colours and markers the first thirty styles all differ."""
INCHES_PER_LETTER, INCHES_PER_HANDLE, INCHES_PER_LINE = 0.075, 0.6, 0.17
"""Approximate size of a legend entry."""
MIN_RATIO_WITHOUT_MINOR_LABELS = 100
"""A logarithmic axis whose ends have a smaller ratio shows at most two powers of ten and needs labels between them."""
NO_METADATA = {"pdf": {"CreationDate": None}, "svg": {"Date": None, "Creator": None, "Format": None, "Type": None}}

P = ParamSpec("P")


@dataclass(frozen=True)
class PlotStyle:
    """Colour, marker and line type of a model, the same in all figures; readable without colours too."""

    colour: str
    marker: str
    line: str

    @property
    def options(self) -> dict[str, Any]:
        """Keyword arguments of matplotlib's `plot` and `errorbar`."""
        return {"color": self.colour, "marker": self.marker, "linestyle": self.line}


def assign_styles(names: Iterable[str]) -> dict[str, PlotStyle]:
    """Return a style for each name, chosen by its position."""
    return {
        name: PlotStyle(COLOURS[i % len(COLOURS)], MARKERS[i % len(MARKERS)], LINES[i % len(LINES)])
        for i, name in enumerate(names)
    }


def styled(draw: Callable[P, Figure]) -> Callable[P, Figure]:
    """Decorate a drawing function: use `RC_PARAMS` whatever the user's settings, and lay out once for all formats."""

    @functools.wraps(draw)
    def draw_styled(*args: P.args, **kwargs: P.kwargs) -> Figure:
        with mpl.rc_context({**mpl.rcParamsDefault, **RC_PARAMS}):
            figure = draw(*args, **kwargs)
            figure.draw_without_rendering()
            figure.set_layout_engine("none")
            return figure

    return draw_styled


def make_figure(width: float, height: float, rows: int = 1, columns: int = 1, **options: Any) -> tuple[Figure, Any]:
    """Create a figure, its size in inches, and its axes as an array of shape (rows, columns)."""
    figure = Figure(figsize=(width, height), layout="constrained")
    return figure, figure.subplots(rows, columns, squeeze=False, **options)


def format_log_axes(*all_axes: Axis) -> None:
    """Label logarithmic axes with plain numbers such as 0.01 and 1,000; short axes get minor labels too."""
    for axis in all_axes:
        axis.set_major_formatter(FuncFormatter(lambda value, _: _format_number(value)))
        axis.set_minor_formatter(FuncFormatter(functools.partial(_format_minor, axis)))


def _format_number(value: float) -> str:
    return f"{value:,.0f}" if value >= 1 else f"{value:g}"


def _format_minor(axis: Axis, value: float, position: int | None = None) -> str:
    low, high = axis.get_view_interval()
    shown = "23457" if high < 10 * low else "25" if high < MIN_RATIO_WITHOUT_MINOR_LABELS * low else ""
    return _format_number(value) if f"{value:.0e}"[0] in shown else ""


def add_legend_below(figure: Figure) -> None:
    """Add one legend for all panels below them; the figure grows by its height."""
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


def save_figure(figure: Figure, path: Path) -> None:
    """Write a figure in the format of the file's suffix (.pdf, .png, .svg); without dates, so that files are equal."""
    suffix = path.suffix[1:]
    buffer = io.BytesIO()  # if a disk is full, Matplotlib's PDF writer raises another error while it closes the file
    with mpl.rc_context({**mpl.rcParamsDefault, **RC_PARAMS}):
        figure.savefig(buffer, format=suffix, metadata=NO_METADATA.get(suffix))
    write_bytes(path, buffer.getvalue())


def to_svg(figure: Figure, prefix: str) -> str:
    """Return a figure as an SVG element for a page: transparent, in the page's text colour, its ids prefixed."""
    buffer = io.StringIO()
    with mpl.rc_context({**mpl.rcParamsDefault, **RC_PARAMS}):
        figure.savefig(buffer, format="svg", transparent=True, metadata=NO_METADATA["svg"])
    text = buffer.getvalue()
    text = text[text.index("<svg") :].replace(TEXT_COLOUR, "currentColor")
    text = re.sub(r"<metadata>.*?</metadata>", "", text, flags=re.S)
    return re.sub(r'(\bid="|url\(#|href="#)', rf"\g<1>{prefix}-", text)
