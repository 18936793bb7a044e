"""The outcome of a search as a recipe file: the source that was tuned, with the best settings after it."""

from __future__ import annotations

import ast
import hashlib
import json
import textwrap
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, fields
from pathlib import Path
from typing import Any

from aprec_like.recipe import TuningBudget
from aprec_like.recipe.ranges import Choice
from aprec_like.recipe.space import SearchSpace

ORIGIN = "Written by evaluation.tune"
"""Words by which a file that may be written again is recognised."""
LINE_LENGTH = 120


@dataclass(frozen=True)
class ChosenModel:
    """What the file says of a tuned model.

    Args:
        name: of the model.
        space: ranges of the searched settings.
        values: the best settings by name.
        budget: of the search.
        reason: how they were chosen.
    """

    name: str
    space: SearchSpace
    values: Mapping[str, Any]
    budget: TuningBudget
    reason: str


def tuned_source(source: str, path: Path, target: Path, chosen: Sequence[ChosenModel], date: str) -> str:
    """Return the source of a recipe with the best settings; it runs as it is, and says where it comes from.

    Args:
        source: of the recipe that was tuned.
        path: of its file.
        target: file for which the source is made.
        chosen: the tuned models.
        date: of today.
    """
    tree = ast.parse(source)
    lines = source.splitlines()
    has_docstring = ast.get_docstring(tree, clean=False) is not None
    body = lines[tree.body[0].end_lineno :] if has_docstring else lines
    title = (ast.get_docstring(tree) or path.stem).splitlines()[0]
    digest = hashlib.sha256(source.encode()).hexdigest()
    origin = (
        f"{ORIGIN} from {path.name} (sha256 {digest[:16]}) on {date}: settings of "
        f"{', '.join(model.name for model in chosen)} chosen on validation. Its source follows unchanged; the chosen "
        "settings are at the end."
    )
    docstring = [
        f'"""{title}' if title.endswith((".", "?", "!")) else f'"""{title}.',
        "",
        *textwrap.wrap(origin, LINE_LENGTH),
        "",
        f"Run:       python -m evaluation.run {target}",
        *_indent("Expected:", [f"{model.name}: {model.reason}" for model in chosen]),
        "Duration:  not measured",
        '"""',
    ]
    return "\n".join([*docstring, *body, "", *_settings_code(chosen)]) + "\n"


def _indent(title: str, texts: Sequence[str]) -> list[str]:
    return [f"{title if number == 0 else '':<10} {text}" for number, text in enumerate(texts)]


def _settings_code(chosen: Sequence[ChosenModel]) -> list[str]:
    lines = [
        "# The settings that validation chose, and what it cost to choose them.",
        "from aprec_like.recipe import TuningBudget, tuned_recipe  # noqa: E402",
        "",
        "recipe = tuned_recipe(",
        "    recipe,",
        "    settings={",
    ]
    for model in chosen:
        lines.append(f"        {_quoted(model.name)}: {{")
        for name, value in model.values.items():
            lines.append(f"            {_quoted(name)}: {_value_code(model, name, value)},")
        lines.append("        },")
    lines += ["    },", "    budgets={"]
    lines += [f"        {_quoted(model.name)}: {_budget_code(model.budget)}," for model in chosen]
    return [*lines, "    },", ")"]


def _value_code(model: ChosenModel, name: str, value: Any) -> str:
    """Return the code of a value; settings are taken from the space, because their class may have any name here."""
    if isinstance(value, str):
        return _quoted(value)
    if value is None or isinstance(value, (int, float, bool)):
        return repr(value)
    each = model.space[name]
    if not isinstance(each, Choice):
        raise TypeError(f"only a choice has values that are no numbers or texts. Received: {value!r}")
    return f"recipe.spaces[{_quoted(model.name)}][{_quoted(name)}].values[{each.values.index(value)}]"


def _quoted(text: str) -> str:
    """Return a text as a Python literal in double quotes."""
    return json.dumps(text)


def _budget_code(budget: TuningBudget) -> str:
    values = {field.name: getattr(budget, field.name) for field in fields(budget)}
    shown = [f"{name}={value!r}" for name, value in values.items() if value is not None]
    return f"TuningBudget({', '.join(shown)})"
