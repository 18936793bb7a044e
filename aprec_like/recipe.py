"""A recipe: one Python file that declares an experiment."""

from __future__ import annotations

import ast
import sys
import traceback
import types
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from aprec_like.candidates import UniformCandidates
from aprec_like.datasets import Dataset
from aprec_like.errors import InputError
from aprec_like.filters import Filter, filtered
from aprec_like.interactions import Interactions
from aprec_like.metrics import NDCG, Metric, Recall
from aprec_like.models import CountingModel, Oracle
from aprec_like.presets import MFBPR, gSASRec
from aprec_like.settings import check_type
from aprec_like.splits import AsGiven, LeaveOneOut, SplitRule
from aprec_like.training.settings import Trained

__all__ = ["MFBPR", "Evaluation", "Recipe", "Trained", "gSASRec", "load_recipe", "sampled_name"]

Numbers = Mapping[str, Mapping[str, float]]
"""Values of metrics by the name of a model."""


@dataclass(frozen=True)
class Evaluation:
    """How rankings are judged.

    Args:
        metrics: the columns of the table.
        exclude_seen: leave the items of a user's history out of the ranking.
        depth: how many of the best items are stored per user.
        candidates: rank the target among drawn items too; gives every metric a second, not comparable, column.
    """

    metrics: tuple[Metric, ...] = (Recall(1), Recall(10), NDCG(10))
    exclude_seen: bool = True
    depth: int = 100
    candidates: UniformCandidates | None = None

    def __post_init__(self) -> None:
        if not self.metrics:
            raise ValueError("Evaluation needs at least one metric. Received: none")
        for metric in self.metrics:
            check_type("Evaluation", "metrics", metric, Metric)
        if len(set(self.metrics)) < len(self.metrics):
            raise ValueError(f"Evaluation needs each metric once. Received: {', '.join(map(str, self.metrics))}")
        if self.depth < 1:
            raise ValueError(f"Evaluation needs a depth of at least 1. Received: depth={self.depth}")

    @property
    def columns(self) -> tuple[str, ...]:
        """The names of the metrics, and of their sampled doubles."""
        names = tuple(map(str, self.metrics))
        return names + (tuple(map(sampled_name, names)) if self.candidates else ())


def sampled_name(metric: str) -> str:
    """The name of a metric of the rank among drawn candidates."""
    return f"{metric} (sampled)"


@dataclass(frozen=True)
class Recipe:
    """An experiment: models compared on the same users of one dataset.

    Args:
        dataset: where the interactions come from.
        filters: what is left out of them, one after the other.
        split: what is learned from and what is predicted.
        models: by the name that stands in the table.
        evaluation: how they are judged.
        groups: which models stand together in the table, by the name of the group; the others stand before them.
        seeds: of training; every model is trained once for each.
        published: a paper's numbers for these models, printed beside ours.
        literature: rows quoted from elsewhere, printed below the table and never tested.
    """

    dataset: Dataset
    models: Mapping[str, Trained | CountingModel]
    filters: tuple[Filter, ...] = ()
    split: SplitRule = field(default_factory=LeaveOneOut)
    evaluation: Evaluation = field(default_factory=Evaluation)
    groups: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    seeds: tuple[int, ...] = (1,)
    published: Numbers = field(default_factory=dict)
    literature: Numbers = field(default_factory=dict)

    def __post_init__(self) -> None:
        check_type("Recipe", "dataset", self.dataset, Dataset)
        check_type("Recipe", "split", self.split, SplitRule)
        for kept in self.filters:
            check_type("Recipe", "filters", kept, Filter)
        if self.filters and isinstance(self.split, AsGiven):
            raise ValueError("Recipe can't filter data that came split: AsGiven counts in the unfiltered sequences")
        check_type("Recipe", "evaluation", self.evaluation, Evaluation)
        if not self.models:
            raise ValueError("Recipe needs at least one model. Received: none")
        for name, model in self.models.items():
            if not isinstance(name, str) or not name.strip() or not name.isprintable():
                raise ValueError(f"Recipe needs printable names of models. Received: {name!r}")
            check_type("Recipe", f"models[{name!r}]", model, (Trained, CountingModel))
            if isinstance(model, Oracle) and model.dataset != self.dataset:
                raise ValueError(
                    f"Recipe needs {name!r} to be the Oracle of its own dataset. Received: {model.dataset}"
                )
            if isinstance(model, Oracle) and self.filters:
                raise ValueError(f"Recipe can't have the Oracle {name!r} of filtered data: it knows the unfiltered law")
        if len(set(self.seeds)) < max(1, len(self.seeds)) or not all(0 <= seed < 2**32 for seed in self.seeds):
            raise ValueError(f"Recipe needs distinct seeds from 0 to 2**32 - 1. Received: seeds={self.seeds}")
        grouped = [name for names in self.groups.values() for name in names]
        if set(grouped) - set(self.models) or len(set(grouped)) < len(grouped):
            raise ValueError(f"Recipe needs groups of its own models, each in one group. Received: {self.groups}")
        if unknown := set(self.published) - set(self.models):
            raise ValueError(
                f"Recipe needs published numbers of its own models; others belong in literature. "
                f"Received: {', '.join(sorted(unknown))}"
            )

    def load(self, data_dir: Path) -> Interactions:
        """The filtered interactions; raises `InputError` if they can't be had or there is nothing to rank."""
        interactions = filtered(self.dataset.load(data_dir), self.filters)
        if interactions.num_items < 2:
            raise InputError(f"ranking needs at least 2 items. Received: {interactions.num_items}")
        return interactions


def load_recipe(path: Path) -> Recipe:
    """Run a recipe file and return its `recipe`; any mistake in it is an `InputError` with file and line."""
    try:
        source = path.read_bytes()
    except OSError as error:
        raise InputError(f"{path}: cannot be read: {error.strerror}") from error
    try:
        tree = ast.parse(source, str(path))
    except (SyntaxError, ValueError) as error:
        raise InputError(f"{path}:{getattr(error, 'lineno', None) or 1}: {error.args[0]}") from error
    _check_repeated_keys(path, tree)
    if path.suffix != ".py":
        raise InputError(f"{path}: a recipe is a Python file, NAME.py")
    module = types.ModuleType(f"recipe_{path.stem}")
    module.__file__ = str(path)
    sys.modules[module.__name__] = module  # where dataclasses look when the recipe defines its own
    try:
        # Not by an import, which may find bytecode of an earlier version beside the file.
        exec(compile(tree, str(path), "exec", dont_inherit=True), module.__dict__)
    except Exception as error:  # whatever the user's own code raises is the user's to read, in one line
        raise InputError(f"{_place(path, error)}: {_message(error)}") from error
    if not isinstance(recipe := getattr(module, "recipe", None), Recipe):
        raise InputError(f"{path}: must define `recipe = Recipe(...)`. Received: {type(recipe).__name__}")
    return recipe


def _check_repeated_keys(path: Path, tree: ast.AST) -> None:
    """Python keeps the last of two equal keys of a dict literal without a word; in a recipe that loses a model."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Dict):
            names: set[Any] = set()
            for key in node.keys:
                if isinstance(key, ast.Constant):
                    if key.value in names:
                        raise InputError(f"{path}:{key.lineno}: the name {key.value!r} is used twice")
                    names.add(key.value)


def _place(path: Path, error: Exception) -> str:
    """File and line of the recipe that the error came from."""
    lines = [frame.lineno for frame in traceback.extract_tb(error.__traceback__) if frame.filename == str(path)]
    return f"{path}:{lines[-1]}" if lines else str(path)


def _message(error: Exception) -> str:
    message = " ".join(str(error).split()) or "no message"
    return message if type(error) in (ValueError, InputError) else f"{type(error).__name__}: {message}"
