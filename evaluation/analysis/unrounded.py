"""A comparison as CSV and JSON with unrounded numbers, and the table files of a results folder."""

from __future__ import annotations

from dataclasses import asdict

from aprec_like.types import Json
from evaluation.analysis.captions import caption, notes
from evaluation.analysis.comparison import Cell, Comparison, Row
from evaluation.analysis.main_table import differences_table, main_table
from evaluation.table_formats import as_latex, as_markdown, format_csv


def comparison_csv(comparison: Comparison) -> str:
    """Return one line per model and metric."""
    header = ["model", "metric", "mean", "low", "high", "seed_std", "seeds", "published", "seconds_to_best"]
    tuning = ["trials", "epochs", "hours"] if comparison.has_tuning else []
    header += [f"tuning_{name}" for name in tuning]
    rows: list[list[object]] = [
        [
            row.name, metric, cell.value.mean, cell.value.low, cell.value.high, cell.seed_std, len(row.seeds),
            cell.published, row.seconds_to_best, *((row.tuning or {}).get(name) for name in tuning),
        ]
        for row in [*comparison.rows, *comparison.bounds]
        for metric, cell in row.cells.items()
    ]  # fmt: skip
    return format_csv(header, rows)


def significance_csv(comparison: Comparison) -> str:
    """Return one line per test."""
    header = [
        "model", "comparator", "metric", "difference", "low", "high", "relative", "p_value", "p_corrected", "test",
        "correction", "family_size", "is_significant", "effect_size", "wins", "ties", "losses", "detectable",
        "standard_error", "degrees_of_freedom",
    ]  # fmt: skip
    rows: list[list[object]] = []
    for row in comparison.rows:
        for metric, cell in row.cells.items():
            if cell.test is not None:
                test, rules = cell.test, comparison.rules
                rows.append([
                    row.name, cell.comparator, metric, test.difference.mean, test.difference.low, test.difference.high,
                    cell.relative, test.p_value, cell.p_corrected, rules.test, rules.correction,
                    comparison.family_size, comparison.is_significant(cell), test.effect_size, test.wins, test.ties,
                    test.losses, cell.detectable, test.standard_error, test.degrees_of_freedom,
                ])  # fmt: skip
    return format_csv(header, rows)


def comparison_json(comparison: Comparison) -> Json:
    """Return all fields of the comparison as a JSON object."""

    def cell_json(cell: Cell) -> Json:
        return asdict(cell) | {"is_significant": comparison.is_significant(cell)}

    def row_json(row: Row) -> Json:
        return {
            "seeds": list(row.seeds),
            "seconds_to_best": row.seconds_to_best,
            "origin": row.origin,
            "caveats": [caveat.advice for caveat in row.caveats],
            "tuning": row.tuning,
            "metrics": {metric: cell_json(cell) for metric, cell in row.cells.items()},
        }

    return {
        "run": comparison.run,
        "users": comparison.num_users,
        "exclude_seen": comparison.exclude_seen,
        "metrics": list(comparison.metrics),
        "rules": asdict(comparison.rules),
        "family_size": comparison.family_size,
        "training_std": comparison.training_std,
        "best": {metric: comparison.ranked(metric)[0] for metric in comparison.metrics if comparison.rows},
        "models": {row.name: row_json(row) for row in comparison.rows},
        "bounds": {row.name: row_json(row) for row in comparison.bounds},
        "literature": comparison.literature,
        "caption": caption(comparison),
        "notes": notes(comparison),
        "remarks": comparison.remarks,
    }


def table_files(comparison: Comparison) -> dict[str, str]:
    """Return the texts of the table files of a results folder, by file name."""
    return {
        "table.md": as_markdown(main_table(comparison)) + "\n" + as_markdown(differences_table(comparison)),
        "table.tex": as_latex(main_table(comparison, show_published=False)),
        "table.csv": comparison_csv(comparison),
        "significance.csv": significance_csv(comparison),
    }
