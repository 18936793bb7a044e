"""Compare finished models: means, intervals, significance against the best or a baseline, in any format.

python -m evaluation.compare results/ml1m_gsasrec --format latex
"""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

from evaluation.cli import DONE, EXIT_CODES, FAILED, run_command

if TYPE_CHECKING:
    from evaluation.analysis.comparison import Comparison, Rules
    from evaluation.results.load import LoadedRuns
    from evaluation.table import Table

EXAMPLES = """examples:
  compare results/ml1m_gsasrec                                  the table of a run
  compare results/ml1m_gsasrec --baseline SASRec --format latex a table for a paper, daggers against SASRec
  compare results/a results/b                                   models of two runs on the same data
  compare results/ml1m results/steam --side-by-side             two datasets in one table
  compare results/a --import theirs.run                         another tool's ranking in the same tested table
  compare results/a --explain gSASRec SASRec                    among which users one beats the other
"""


def parse_arguments() -> argparse.Namespace:
    """The command line."""
    parser = argparse.ArgumentParser(
        prog="python -m evaluation.compare",
        description="Print the table of a run, or of several runs on the same data: means over users, and a paired "
        "test of every model against the best of each metric or against a baseline.",
        epilog=EXAMPLES + "\n" + EXIT_CODES,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument(
        "runs", type=Path, nargs="+", metavar="RUN", help="results folders, such as results/ml1m_gsasrec"
    )
    parser.add_argument("--metric", nargs="+", default=[], metavar="NAME", help="only these metrics, such as NDCG@10")
    parser.add_argument("--baseline", metavar="NAME", help="compare every model with this one instead of the best")
    parser.add_argument(
        "--test",
        choices=("paired-t", "randomisation", "bootstrap", "wilcoxon"),
        default="paired-t",
        help="over users (default: paired-t)",
    )
    parser.add_argument(
        "--correction", choices=("holm", "bonferroni", "none"), default="holm", help="for several tests (default: holm)"
    )
    parser.add_argument(
        "--alpha", type=float, default=0.05, metavar="LEVEL", help="level of significance (default: 0.05)"
    )
    parser.add_argument(
        "--format", choices=("text", "markdown", "latex", "csv", "json"), default="text", help="default: text"
    )
    parser.add_argument(
        "--check", action="store_true", help="ours beside the published numbers; exit code 1 if one is off"
    )
    parser.add_argument(
        "--import",
        dest="imported",
        type=Path,
        nargs="+",
        default=[],
        metavar="FILE",
        help="other tools' results: TREC runs, CSV (user, item, score or rank), or a metric column per user",
    )
    parser.add_argument(
        "--export", type=Path, metavar="DIR", help="write our rankings as TREC runs, the targets as qrels"
    )
    parser.add_argument(
        "--side-by-side", action="store_true", help="runs on different data next to each other, untested"
    )
    parser.add_argument("--pairwise", action="store_true", help="every pair of models")
    parser.add_argument("--ladder", action="store_true", help="each model against the one before it in the recipe")
    parser.add_argument("--effects", action="store_true", help="architectures by losses: what each change brings")
    parser.add_argument("--beyond-accuracy", action="store_true", help="coverage, and popularity of what is shown")
    parser.add_argument(
        "--time-to",
        type=float,
        nargs="+",
        default=[],
        metavar="VALUE",
        help="minutes of training until the validation metric reached these values",
    )
    parser.add_argument(
        "--explain",
        nargs=2,
        metavar="NAME",
        help="the difference of two models by history length, popularity, activity",
    )
    parser.add_argument(
        "--figures", type=Path, metavar="DIR", help="write what --pairwise and --explain show as figures"
    )
    arguments = parser.parse_args()
    if not 0 < arguments.alpha < 1:
        parser.error("--alpha must lie between 0 and 1")
    if arguments.figures and not (arguments.pairwise or arguments.explain):
        parser.error("--figures needs --pairwise or --explain")
    return arguments


def main() -> int:
    """Print the comparison that the command line asks for."""
    arguments = parse_arguments()
    from evaluation.analysis.comparison import Rules, compare_models
    from evaluation.results.load import load_runs
    from evaluation.results.store import RunFolder

    rules = Rules(arguments.baseline, arguments.test, arguments.correction, arguments.alpha)
    folders = [RunFolder(path) for path in arguments.runs]
    groups = [[folder] for folder in folders] if arguments.side_by_side else [folders]
    loaded = [_with_imports(load_runs(group, arguments.metric), arguments.imported) for group in groups]
    comparisons = [compare_models(runs, rules) for runs in loaded]
    tables, is_right = _further_tables(loaded, comparisons, rules, arguments)
    if arguments.export:
        _export(loaded, arguments.export)
    _print(comparisons, tables, arguments)
    return DONE if is_right else FAILED


def _with_imports(runs: LoadedRuns, paths: list[Path]) -> LoadedRuns:
    from dataclasses import replace

    from evaluation.results.trec import import_results

    for path in paths:
        runs = replace(runs, models=[*runs.models, import_results(path, runs)])
    return runs


def _further_tables(
    loaded: list[LoadedRuns], comparisons: list[Comparison], rules: Rules, arguments: argparse.Namespace
) -> tuple[list[Table], bool]:
    """The tables that options ask for, and whether all published numbers were met."""
    from evaluation.analysis import breakdown as findings
    from evaluation.analysis.ladder import ladder_table
    from evaluation.analysis.time_to_quality import time_table

    tables, is_right = [], True
    for runs, comparison in zip(loaded, comparisons, strict=True):
        if arguments.check:
            table, is_met = findings.published_table(comparison)
            tables.append(table)
            is_right &= is_met
        for metric in runs.metrics:
            if arguments.pairwise:
                pairs = findings.compare_pairs(runs, metric, rules)
                tables.append(findings.pairwise_table(pairs))
                if arguments.figures:
                    _draw("pairwise", runs, metric, arguments.figures, pairs)
            if arguments.ladder:
                tables.append(ladder_table(runs, metric, rules))
            if arguments.effects:
                tables.append(findings.effects_table(runs, metric, rules))
            if arguments.explain:
                strata = findings.stratify(runs, metric, *arguments.explain)
                tables.append(findings.strata_table(strata, metric, *arguments.explain))
                if arguments.figures:
                    _draw("strata", runs, metric, arguments.figures, strata, *arguments.explain)
        if arguments.beyond_accuracy:
            tables.append(findings.beyond_accuracy_table(runs))
        if arguments.time_to:
            tables.append(time_table(runs, arguments.time_to))
    return tables, is_right


def _draw(kind: str, runs: LoadedRuns, metric: str, folder: Path, *arguments: Any) -> None:
    from evaluation.figures import results as plots
    from evaluation.figures.style import save_figure
    from evaluation.results.store import encode_name

    path = folder / f"{encode_name(runs.title)}-{kind}-{encode_name(metric)}.pdf"
    draw = plots.draw_pairwise if kind == "pairwise" else plots.draw_strata
    save_figure(draw(metric, *arguments), path)
    print(path, file=sys.stderr)


def _export(loaded: list[LoadedRuns], folder: Path) -> None:
    from evaluation.results.store import encode_name
    from evaluation.results.trec import export_results

    for runs in loaded:
        for path in export_results(runs, folder if len(loaded) == 1 else folder / encode_name(runs.title)):
            print(path, file=sys.stderr)


def _print(comparisons: list[Comparison], tables: list[Table], arguments: argparse.Namespace) -> None:
    from evaluation.analysis import unrounded as records
    from evaluation.analysis.main_table import side_by_side
    from evaluation.table import RENDERERS, as_csv, as_records

    if arguments.format == "json":
        found = [records.as_json(comparison) for comparison in comparisons]
        result: dict[str, Any] = found[0] if len(found) == 1 else {"comparisons": found}
        print(json.dumps(result | {"tables": [as_records(table) for table in tables]}, indent=2, allow_nan=False))
    elif arguments.format == "csv":
        print("\n".join([*map(records.as_csv, comparisons), *map(as_csv, tables)]), end="")
    else:
        table = side_by_side(comparisons, has_published=arguments.format != "latex")
        shown = [table, *_differences(comparisons, arguments.format), *tables]
        print("\n".join(RENDERERS[arguments.format](table) for table in shown), end="")


def _differences(comparisons: list[Comparison], kind: str) -> Iterator[Table]:
    """Every difference in detail; a paper's table does without."""
    from evaluation.analysis.main_table import differences_table

    if kind != "latex":
        yield from (differences_table(comparison) for comparison in comparisons)


if __name__ == "__main__":
    sys.exit(run_command(main))
