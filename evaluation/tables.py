"""A comparison as text, Markdown, LaTeX and CSV."""

from __future__ import annotations

import csv
import io
import itertools
from collections.abc import Callable

from evaluation.comparison import Cell, Comparison, Row

DIGITS = 4

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
}


def caption(comparison: Comparison) -> str:
    """What the numbers are and how they were tested, in sentences."""
    seeds = {len(row.seeds) for row in comparison.rows}
    sentences = [
        f"Means over {comparison.num_users:,} users; the whole catalogue is ranked, seen items "
        + ("excluded" if comparison.exclude_seen else "included"),
        "best in bold, second underlined",
    ]
    if comparison.num_candidates:
        drawn = f"the target among itself and {comparison.num_candidates} drawn items"
        sentences.insert(1, f"(sampled): {drawn}, not comparable with rankings of the catalogue")
    if max(seeds, default=1) > 1:
        sentences.append(
            f"means over {' or '.join(map(str, sorted(seeds)))} seeds; tests are conditional on these seeds"
        )
    if comparison.family_size:
        against = f"from {comparison.baseline}" if comparison.baseline else "from the best"
        corrected = {"none": "not corrected"}.get(
            comparison.correction, f"{comparison.correction.capitalize()}-corrected"
        )
        sentences.append(
            f"* differs {against} (paired t-test over users, p < {comparison.alpha:g}, {corrected}, "
            f"{comparison.family_size} tests)"
        )
    return "; ".join(sentences) + "."


def as_text(comparison: Comparison) -> str:
    """A table for the terminal; the best value of a column is marked with >, the second with a plus sign."""
    blocks = _blocks(comparison, bold=lambda value: f">{value}", underline=lambda value: f"+{value}")
    widths = [max(len(cell) for cell in column) for column in zip(*itertools.chain(*blocks), strict=True)]
    aligned = [
        [
            "  ".join(_pad(cell, width, place) for place, (cell, width) in enumerate(zip(line, widths, strict=True)))
            for line in block
        ]
        for block in blocks
    ]
    lines = _ruled(aligned, "-" * len(aligned[0][0]))
    note = caption(comparison).replace("best in bold, second underlined", "> best, + second")
    return "\n".join(line.rstrip() for line in [*lines, "", note, *comparison.remarks]) + "\n"


def as_markdown(comparison: Comparison) -> str:
    """A Markdown table."""
    bold, underline = (lambda value: f"**{value}**"), (lambda value: f"<u>{value}</u>")
    blocks = _blocks(comparison, bold=bold, underline=underline, escape=_escape_markdown)
    header, *lines = ["| " + " | ".join(line) + " |" for line in itertools.chain(*blocks)]
    rule = "|" + "|".join([" --- "] + [" ---: "] * (len(blocks[0][0]) - 1)) + "|"
    notes = [caption(comparison), *comparison.remarks]
    return "\n".join([header, rule, *lines, "", *(_escape_markdown(note) for note in notes)]) + "\n"


def as_latex(comparison: Comparison) -> str:
    """A complete LaTeX table environment; needs the package booktabs only."""
    bold, underline = (lambda value: rf"\textbf{{{value}}}"), (lambda value: rf"\underline{{{value}}}")
    blocks = _blocks(comparison, bold=bold, underline=underline, escape=escape_latex)
    lines = _ruled([[" & ".join(line) + r" \\" for line in block] for block in blocks], r"\midrule")
    return "\n".join(
        [
            r"\begin{table}",
            r"\centering",
            rf"\caption{{{escape_latex(caption(comparison))}}}",
            rf"\label{{tab:{''.join(c if c.isalnum() else '-' for c in comparison.run)}}}",
            rf"\begin{{tabular}}{{l{'r' * (len(blocks[0][0]) - 1)}}}",
            r"\toprule",
            *lines,
            r"\bottomrule",
            r"\end{tabular}",
            r"\end{table}",
            "",
        ]
    )


def as_csv(comparison: Comparison) -> str:
    """One line per model and metric, unrounded."""
    header = ["model", "metric", "mean", "low", "high", "seed_std", "seeds", "published", "seconds_to_best"]
    lines: list[list[object]] = [
        [
            row.name,
            metric,
            cell.value.mean,
            cell.value.low,
            cell.value.high,
            cell.seed_std,
            len(row.seeds),
            cell.published,
            row.seconds_to_best,
        ]
        for row in [*comparison.rows, *comparison.bounds]
        for metric, cell in row.cells.items()
    ]
    return _csv(header, lines)


def significance_csv(comparison: Comparison) -> str:
    """One line per test, unrounded."""
    header = [
        "model", "comparator", "metric", "difference", "low", "high", "p_value", "p_corrected", "correction",
        "family_size", "is_significant", "effect_size", "wins", "ties", "losses",
    ]  # fmt: skip
    lines: list[list[object]] = []
    for row in comparison.rows:
        for metric, cell in row.cells.items():
            if cell.test is not None:
                test, comparator = cell.test, comparison.baseline or comparison.ranked(metric)[0]
                lines.append([
                    row.name, comparator, metric, test.difference.mean, test.difference.low, test.difference.high,
                    test.p_value, cell.p_corrected, comparison.correction, comparison.family_size,
                    _is_significant(cell, comparison.alpha), test.effect_size, test.wins, test.ties, test.losses,
                ])  # fmt: skip
    return _csv(header, lines)


def all_files(comparison: Comparison) -> dict[str, str]:
    """The table files of a results folder, by name."""
    return {
        "table.md": as_markdown(comparison),
        "table.tex": as_latex(comparison),
        "table.csv": as_csv(comparison),
        "significance.csv": significance_csv(comparison),
    }


def escape_latex(text: str) -> str:
    """Text with LaTeX's special characters escaped."""
    return "".join(LATEX_SPECIALS.get(character, character) for character in text)


def _blocks(
    comparison: Comparison,
    bold: Callable[[str], str],
    underline: Callable[[str], str],
    escape: Callable[[str], str] = str,
) -> list[list[list[str]]]:
    """The cells as marked-up texts, in blocks between rules: header, models, bounds, quoted rows; none is empty."""
    rows, bounds, metrics = comparison.rows, comparison.bounds, comparison.metrics
    has_published = any(cell.published is not None for row in rows for cell in row.cells.values())
    header = ["Model", *metrics, *([f"{metric} (paper)" for metric in metrics] if has_published else []), "Minutes"]
    order = {metric: comparison.ranked(metric) for metric in metrics}
    digits = {metric: _quoted_digits(comparison, metric) for metric in metrics}

    def measured(row: Row, metric: str) -> str:
        cell = row.cells[metric]
        text = f"{cell.value.mean:.{DIGITS}f}"
        place = order[metric].index(row.name) if row in rows and len(rows) > 1 else None
        text = bold(text) if place == 0 else underline(text) if place == 1 else text
        return text + ("*" if _is_significant(cell, comparison.alpha) else "")

    def quoted(metric: str, value: float | None) -> str:
        return "" if value is None else f"{value:.{digits[metric]}f}"

    def own_line(row: Row) -> list[str]:
        published = [quoted(metric, row.cells[metric].published) for metric in metrics] if has_published else []
        values = [measured(row, metric) for metric in metrics]
        return [escape(row.name), *values, *published, f"{row.seconds_to_best / 60:.1f}"]

    def quoted_line(name: str, values: dict[str, float]) -> list[str]:
        numbers = [quoted(metric, values.get(metric)) for metric in metrics]
        return [escape(f"{name} (quoted)"), *([""] * len(numbers) if has_published else []), *numbers, ""]

    blocks = [
        [[escape(title) for title in header]],
        *([own_line(row) for row in group] for group in _grouped(comparison)),
        [own_line(row) for row in bounds],
        [quoted_line(name, values) for name, values in comparison.literature.items()],
    ]
    return [block for block in blocks if block]


def _grouped(comparison: Comparison) -> list[list[Row]]:
    """The rows group by group; those without a group come first."""
    group_of = {name: group for group, names in comparison.groups.items() for name in names}
    return [[row for row in comparison.rows if group_of.get(row.name) == group] for group in (None, *comparison.groups)]


def _ruled(blocks: list[list[str]], rule: str) -> list[str]:
    """The lines of all blocks with a rule between one block and the next."""
    return [line for number, block in enumerate(blocks) for line in ([rule] if number else []) + block]


def _escape_markdown(text: str) -> str:
    return text.replace("|", "\\|").replace("*", "\\*")


def _is_significant(cell: Cell, alpha: float) -> bool:
    return cell.p_corrected is not None and cell.p_corrected < alpha


def _quoted_digits(comparison: Comparison, metric: str) -> int:
    """As many digits as the longest of a metric's quoted numbers: a source's 0.300 is a float's 0.3."""
    published = [row.cells[metric].published for row in comparison.rows]
    numbers = [*published, *(values.get(metric) for values in comparison.literature.values())]
    return max((len(str(number).partition(".")[2]) for number in numbers if number is not None), default=0)


def _pad(value: str, width: int, column: int) -> str:
    return value.ljust(width) if column == 0 else value.rjust(width)


def _csv(header: list[str], lines: list[list[object]]) -> str:
    buffer = io.StringIO()
    writer = csv.writer(buffer, lineterminator="\n")
    writer.writerow(header)
    writer.writerows(lines)
    return buffer.getvalue()
