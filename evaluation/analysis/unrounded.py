"""A comparison as CSV and JSON with every number unrounded, and the table files of a results folder."""

from __future__ import annotations

from dataclasses import asdict
from typing import Any

from evaluation.analysis.comparison import Cell, Comparison, Row
from evaluation.analysis.main_table import caption, differences_table, main_table, paper_table
from evaluation.table import as_latex, as_markdown, csv_of


def as_csv(comparison: Comparison) -> str:
    """One line per model and metric, unrounded."""
    header = ["model", "metric", "mean", "low", "high", "seed_std", "seeds", "published", "seconds_to_best"]
    lines: list[list[object]] = [
        [
            row.name, metric, cell.value.mean, cell.value.low, cell.value.high, cell.seed_std, len(row.seeds),
            cell.published, row.seconds_to_best,
        ]
        for row in [*comparison.rows, *comparison.bounds]
        for metric, cell in row.cells.items()
    ]  # fmt: skip
    return csv_of(header, lines)


def significance_csv(comparison: Comparison) -> str:
    """One line per test, unrounded."""
    header = [
        "model", "comparator", "metric", "difference", "low", "high", "relative", "p_value", "p_corrected", "test",
        "correction", "family_size", "is_significant", "effect_size", "wins", "ties", "losses", "detectable",
    ]  # fmt: skip
    lines: list[list[object]] = []
    for row in comparison.rows:
        for metric, cell in row.cells.items():
            if cell.test is not None:
                test, rules = cell.test, comparison.rules
                lines.append([
                    row.name, cell.comparator, metric, test.difference.mean, test.difference.low, test.difference.high,
                    cell.relative, test.p_value, cell.p_corrected, rules.test, rules.correction,
                    comparison.family_size, comparison.is_significant(cell), test.effect_size, test.wins, test.ties,
                    test.losses, cell.detectable,
                ])  # fmt: skip
    return csv_of(header, lines)


def as_json(comparison: Comparison) -> dict[str, Any]:
    """Everything, unrounded."""

    def cell(value: Cell) -> dict[str, Any]:
        return asdict(value) | {"is_significant": comparison.is_significant(value)}

    def row(value: Row) -> dict[str, Any]:
        return {
            "seeds": list(value.seeds),
            "seconds_to_best": value.seconds_to_best,
            "metrics": {metric: cell(found) for metric, found in value.cells.items()},
        }

    return {
        "run": comparison.run,
        "users": comparison.num_users,
        "exclude_seen": comparison.exclude_seen,
        "metrics": list(comparison.metrics),
        "rules": asdict(comparison.rules),
        "family_size": comparison.family_size,
        "best": {metric: comparison.ranked(metric)[0] for metric in comparison.metrics if comparison.rows},
        "models": {value.name: row(value) for value in comparison.rows},
        "bounds": {value.name: row(value) for value in comparison.bounds},
        "literature": comparison.literature,
        "caption": caption(comparison),
        "remarks": comparison.remarks,
    }


def all_files(comparison: Comparison) -> dict[str, str]:
    """The table files of a results folder, by name."""
    return {
        "table.md": as_markdown(main_table(comparison)) + "\n" + as_markdown(differences_table(comparison)),
        "table.tex": as_latex(paper_table(comparison)),
        "table.csv": as_csv(comparison),
        "significance.csv": significance_csv(comparison),
    }
