"""The work of `evaluation.compare`: load runs, compare their models, print tables in the chosen format."""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path

from aprec_like.errors import InputError
from aprec_like.types import Json
from evaluation.analysis.breakdown import (
    beyond_accuracy_table,
    effects_table,
    measure_beyond_accuracy,
    strata_table,
    stratify,
)
from evaluation.analysis.captions import caveat_sentences
from evaluation.analysis.comparison import Comparison, Row, Rules, compare_models
from evaluation.analysis.ladder import ladder_table
from evaluation.analysis.main_table import differences_table, side_by_side
from evaluation.analysis.pairwise import compare_pairs, pairwise_table
from evaluation.analysis.published import is_as_published, published_table
from evaluation.analysis.training_cost import cost_table, model_costs, time_table
from evaluation.analysis.unrounded import comparison_csv, comparison_json
from evaluation.cli import DONE, FAILED
from evaluation.results.imported import import_results
from evaluation.results.load import LoadedRuns, load_runs
from evaluation.results.store import RunFolder, encode_name
from evaluation.results.trec import export_results
from evaluation.table import Table
from evaluation.table_formats import RENDERERS, Fit, as_csv, as_json, as_latex


@dataclass(frozen=True)
class CompareOptions:
    """The command line, which `python -m evaluation.compare --help` explains."""

    runs: list[Path]
    metric: list[str]
    baseline: str | None
    test: str
    correction: str
    alpha: float
    format: str
    check: bool
    imported: list[Path]
    export: Path | None
    side_by_side: bool
    pairwise: bool
    ladder: bool
    effects: bool
    beyond_accuracy: bool
    cost: bool
    time_to: list[float]
    explain: list[str] | None
    figures: Path | None
    fit: Fit
    without: list[str]

    @property
    def has_request(self) -> bool:
        """Whether a table other than the main one was asked for."""
        of_models = (self.pairwise, self.ladder, self.effects, self.beyond_accuracy, self.cost)
        return any((self.check, *of_models, self.time_to, self.explain))

    @property
    def rules(self) -> Rules:
        """Settings of the significance tests."""
        return Rules(self.baseline, self.test, self.correction, self.alpha)


def load_groups(options: CompareOptions) -> list[LoadedRuns]:
    """Load the runs of each comparison: all together, or each on its own with --side-by-side and --check."""
    folders = [RunFolder(path) for path in options.runs]
    is_separate = options.side_by_side or options.check
    groups = [[folder] for folder in folders] if is_separate else [folders]
    loaded = [load_runs(group, options.metric) for group in groups]
    return [_add_imported(runs, options.imported) for runs in loaded] if options.imported else loaded


def _add_imported(runs: LoadedRuns, paths: Sequence[Path]) -> LoadedRuns:
    for path in paths:
        runs = replace(runs, models=[*runs.models, import_results(path, runs)])
    return runs


def print_comparisons(groups: Sequence[LoadedRuns], options: CompareOptions) -> int:
    """Print the tables that the options ask for; returns the exit code."""
    comparisons = [compare_models(runs, options.rules) for runs in groups]
    if options.check and not any(comparison.published_metrics for comparison in comparisons):
        raise InputError(
            "--check needs published numbers; the recipe has none for its finished models and these metrics"
        )
    all_rows = [row for comparison in comparisons for row in comparison.rows]
    extra = [_with_caveats(published_table(comparisons), all_rows)] if options.check else []
    for runs, comparison in zip(groups, comparisons, strict=True):
        extra += [_with_caveats(table, comparison.rows) for table in _extra_tables(runs, comparison, options)]
        if options.explain:
            explained = [row for row in comparison.rows if row.name in options.explain]
            extra += [_with_caveats(table, explained) for table in _strata_tables(runs, *options.explain)]
    if options.export:
        _export(groups, options.export)
    if options.format == "json":
        print(json.dumps(_to_json(groups, comparisons, extra, options), indent=2, allow_nan=False))
    elif options.format == "csv":
        print("\n".join(map(as_csv, extra) if options.has_request else map(comparison_csv, comparisons)), end="")
    else:
        print("\n".join(_render(table, options) for table in extra or _main_tables(comparisons, options)), end="")
    return DONE if not options.check or all(map(is_as_published, comparisons)) else FAILED


def _main_tables(comparisons: Sequence[Comparison], options: CompareOptions) -> list[Table]:
    """Return the main table, and differences except for a paper, which has no room for them."""
    is_paper = options.format == "latex"
    main = side_by_side(comparisons, show_published=not is_paper, without=options.without)
    return [main] if is_paper else [main, *map(differences_table, comparisons)]


def _render(table: Table, options: CompareOptions) -> str:
    return as_latex(table, options.fit) if options.format == "latex" else RENDERERS[options.format](table)


def _with_caveats(table: Table, rows: Sequence[Row]) -> Table:
    """Return a table whose notes say what readers must know about the trainings of the models that it compares."""
    return replace(table, notes=[*table.notes, *caveat_sentences(rows)])


def _extra_tables(runs: LoadedRuns, comparison: Comparison, options: CompareOptions) -> Iterator[Table]:
    rules = options.rules
    for metric in runs.metrics:
        if options.pairwise:
            yield pairwise_table(compare_pairs(runs, metric, rules))
        if options.ladder:
            yield ladder_table(runs, metric, rules)
        if options.effects:
            yield effects_table(runs, metric, rules)
    if options.beyond_accuracy:
        yield beyond_accuracy_table(runs, measure_beyond_accuracy(runs))
    if options.cost:
        yield cost_table(runs)
    if options.time_to:
        yield time_table(runs, options.time_to)


def _strata_tables(runs: LoadedRuns, first: str, second: str) -> Iterator[Table]:
    for metric in runs.metrics:
        yield strata_table(stratify(runs, metric, first, second), metric, first, second)


def _to_json(
    groups: Sequence[LoadedRuns], comparisons: Sequence[Comparison], extra: Sequence[Table], options: CompareOptions
) -> Json:
    values = [comparison_json(comparison) for comparison in comparisons]
    if options.cost:
        for one, runs in zip(values, groups, strict=True):
            one["costs"] = {name: asdict(cost) for name, cost in model_costs(runs).items()}
    value: Json = values[0] if len(values) == 1 else {"comparisons": values}
    return value | {"tables": [as_json(table) for table in extra]}


def _export(groups: Sequence[LoadedRuns], folder: Path) -> None:
    for runs in groups:
        for path in export_results(runs, folder if len(groups) == 1 else folder / encode_name(runs.title)):
            print(path, file=sys.stderr)
