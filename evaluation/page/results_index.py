"""The index of a folder of runs: a table in its README.md, one row per run."""

from __future__ import annotations

import ast
import sys
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from urllib.parse import quote

from aprec_like.errors import InputError
from aprec_like.types import Json
from evaluation.analysis.comparison import Comparison, compare_models
from evaluation.analysis.published import PublishedMark, PublishedNumber, compare_marks, compare_with_published
from evaluation.cli import DONE
from evaluation.figures.all_figures import main_metric
from evaluation.printable import printable
from evaluation.results.files import write_text
from evaluation.results.load import load_runs
from evaluation.results.store import RunFolder
from evaluation.table import Table
from evaluation.table_formats import as_markdown

BEGIN, END = "<!-- index of runs: python -m evaluation.report RESULTS --index -->", "<!-- end of the index -->"
"""Lines of README.md between which the index stands; the text around them is kept."""
HEADER = ("Run", "Data", "Size", "Seeds", "Best model", "Result", "Beside the paper", "Minutes", "Hardware", "Run at")
CAPTION = (
    "Size: items of a history by dimensions of the networks. Seeds: trainings of each network. Result: mean over users "
    "and its 95 % interval. Beside the paper: its numbers and marks of significance that hold here, out of all that it "
    "reports; known differences are declared, with their reasons, in the recipe. Minutes: all trainings of the run, "
    "with ranking. Run at: date and commit."
)


def write_index(folder: Path) -> int:
    """Write the index of all runs in a folder into its README.md; returns the exit code."""
    path = folder / "README.md"
    text = path.read_text() if path.exists() else f"# Results\n\n{BEGIN}\n{END}\n"
    write_text(path, replace_index(text, index_text(folder), path))
    print(path, file=sys.stderr)
    return DONE


def replace_index(text: str, index: str, path: Path) -> str:
    """Return the text of a README with another index; raises `InputError` if it has no place for one."""
    before, begin, rest = text.partition(BEGIN)
    _, end, after = rest.partition(END)
    if not (begin and end):
        raise InputError(f"{path}: needs the lines {BEGIN} and {END}, between which the index is written")
    return f"{before}{BEGIN}\n\n{index}\n{END}{after}"


def index_text(folder: Path) -> str:
    """Return the index of all runs in a folder as Markdown; raises `InputError` if there are none."""
    paths = sorted(path.parent for path in folder.glob("*/recipe.json"))
    if not paths:
        raise InputError(f"{folder}: holds no run; a run is a folder with a recipe.json")
    folders = [RunFolder(path) for path in paths]
    table = as_markdown(Table("index", HEADER, [[list(_row(folder)) for folder in folders]], CAPTION))
    links = [
        f"- [{printable(path.name)}]({quote(path.name)}): {printable(_title(path / 'recipe.py'))}" for path in paths
    ]
    return "\n".join([*links, "", table])


def _row(folder: RunFolder) -> Iterator[str]:
    runs = load_runs([folder])
    comparison = compare_models(runs)
    environment = folder.read_environment()
    statuses = [model_folder.status() for model in runs.models for model_folder in model.folders]
    yield folder.path.name
    yield runs.dataset_title
    yield ", ".join(network_sizes(runs.settings["models"]))
    yield _join_range([len(model.seeds) for model in runs.models if model.origin == "trained"])
    yield from _best(comparison)
    yield beside_paper(comparison)
    yield f"{sum(status.get('seconds_total', 0.0) for status in statuses) / 60:.0f}"
    yield f"{environment.get('cores', '?')} cores, {environment.get('processor', '?')}"
    commit = environment.get("commit")
    yield " ".join([max((status["at"][:10] for status in statuses), default=""), *([commit[:7]] if commit else [])])


def _title(path: Path) -> str:
    """Return the first line of a recipe's docstring; the recipe is parsed, not run."""
    try:
        text = ast.get_docstring(ast.parse(path.read_text()))
    except (SyntaxError, ValueError, OSError):
        return ""
    return (text or "").partition("\n")[0]


def network_sizes(models: Json) -> list[str]:
    """Return the sizes of a recipe's networks as "200 x 128", each once."""
    networks = [settings["model"] for settings in models.values() if isinstance(settings.get("model"), dict)]
    found = [
        f"{network['max_length']} x {network['embedding_dim']}"
        for network in networks
        if {"max_length", "embedding_dim"} <= network.keys()
    ]
    return list(dict.fromkeys(found))


def _join_range(counts: list[int]) -> str:
    low, high = min(counts, default=0), max(counts, default=0)
    return str(low) if low == high else f"{low} to {high}"


def _best(comparison: Comparison) -> Iterator[str]:
    """Yield the best model of the main metric, and its value."""
    metric = main_metric(comparison.metrics)
    for row in comparison.rows:
        if row.name == comparison.ranked(metric)[0]:
            value, digits = row.cells[metric].value, comparison.num_digits(metric)
            yield row.label
            yield f"{metric} {value.mean:.{digits}f} ({value.low:.{digits}f} to {value.high:.{digits}f})"


def beside_paper(comparison: Comparison) -> str:
    """Return how many of the paper's numbers and marks hold, and how many of the others are known differences."""
    found: list[PublishedNumber | PublishedMark] = [*compare_with_published(comparison), *compare_marks(comparison)]
    if not found:
        return "no numbers"
    known = comparison.claims.known_differences
    counts = Counter("hold" if not each.verdict.is_off else "known" if each.model in known else "off" for each in found)
    known_text = f"{counts['known']} known difference{'s' * (counts['known'] > 1)}"
    others = [text for name, text in (("known", known_text), ("off", f"{counts['off']} off")) if counts[name]]
    return ", ".join([f"{counts['hold']} of {len(found)} hold", *others])
