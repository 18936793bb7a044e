"""Classes that a recipe brings itself, and digests of their code: settings alone do not say what such a class does."""

from __future__ import annotations

import ast
import dataclasses
import hashlib
import sys
from collections.abc import Iterator, Mapping
from pathlib import Path

from aprec_like.recipe.recipe import Recipe
from aprec_like.types import Json

PACKAGE = __name__.partition(".")[0]


def describe_code(recipe: Recipe) -> Json:
    """Return the digests of the code of the recipe's own classes: those of each model, and those that all share.

    Empty for a recipe with classes of the package alone.
    """
    fields = {field.name: getattr(recipe, field.name) for field in dataclasses.fields(recipe) if field.name != "models"}
    models = {name: digest_classes(model) for name, model in recipe.models.items()}
    code = {"models": {name: found for name, found in models.items() if found}, "shared": digest_classes(fields)}
    return code if any(code.values()) else {}


def digest_classes(value: object) -> dict[str, str]:
    """Return the digests of the code of all classes in settings that are not of this package, by class name."""
    return {kind.__name__: digest_code(kind) for kind in sorted(_classes_in(value), key=lambda kind: kind.__name__)}


def is_own(kind: type) -> bool:
    """Return whether a class is not of this package."""
    return kind.__module__.partition(".")[0] != PACKAGE


def digest_code(kind: type) -> str:
    """Return a sha256 of the code of a class and of all that it uses of the user's files, without docstrings.

    The names that the class mentions are followed through its file, and through imports to files in the same folder or
    below it. Formatting and comments do not count; installed packages are not looked into.
    """
    files = _Files(kind.__module__)
    found: dict[tuple[str, str], str] = {}
    pending = [(kind.__module__, kind.__name__)]
    while pending:
        module, name = pending.pop()
        node = files.definitions(module).get(name)
        if node is None or (module, name) in found:
            continue
        found[module, name] = ast.unparse(node)
        if isinstance(node, ast.ImportFrom):
            pending += [(node.module or "", alias.name) for alias in node.names if (alias.asname or alias.name) == name]
        elif isinstance(node, ast.Import):
            imported = [alias.name for alias in node.names if (alias.asname or alias.name) == name]
            pending += [(each, defined) for each in imported for defined in files.definitions(each)]
        else:
            pending += [(module, part.id) for part in ast.walk(node) if isinstance(part, ast.Name)]
    code = "\n\n".join(sorted(found.values()))
    return hashlib.sha256(code.encode()).hexdigest()


class _Files:
    """The user's files that a module was imported with: its own, and others in the same folder or below it."""

    def __init__(self, module: str):
        self._parsed: dict[str, dict[str, ast.stmt]] = {}
        self._folder = _file_of(module).parent

    def definitions(self, module: str) -> dict[str, ast.stmt]:
        """Return what a module defines or imports at its top level, by name; nothing for other people's modules."""
        if module not in self._parsed:
            path = _file_of(module)
            is_user_file = path.is_file() and self._folder in path.parents
            body = ast.parse(path.read_bytes()).body if is_user_file else []
            self._parsed[module] = {name: _without_docstrings(node) for node in body for name in _defined_names(node)}
        return self._parsed[module]


def _classes_in(value: object) -> set[type]:
    """Return the own classes of the dataclasses in a value."""
    if isinstance(value, Mapping):
        return {kind for item in value.values() for kind in _classes_in(item)}
    if isinstance(value, (tuple, list)):
        return {kind for item in value for kind in _classes_in(item)}
    if not dataclasses.is_dataclass(value) or isinstance(value, type):
        return set()
    inner = {kind for field in dataclasses.fields(value) for kind in _classes_in(getattr(value, field.name))}
    return inner | ({type(value)} if is_own(type(value)) else set())


def _file_of(module: str) -> Path:
    """Return the file of an imported module; the empty path if it has none."""
    return Path(getattr(sys.modules.get(module), "__file__", None) or "").absolute()


def _defined_names(node: ast.stmt) -> Iterator[str]:
    if isinstance(node, (ast.ClassDef, ast.FunctionDef)):
        yield node.name
    elif isinstance(node, (ast.Import, ast.ImportFrom)):
        yield from (alias.asname or alias.name for alias in node.names)
    elif isinstance(node, (ast.Assign, ast.AnnAssign)):
        targets = node.targets if isinstance(node, ast.Assign) else [node.target]
        for target in targets:
            yield from (part.id for part in ast.walk(target) if isinstance(part, ast.Name))


def _without_docstrings(node: ast.stmt) -> ast.stmt:
    for part in ast.walk(node):
        if isinstance(part, (ast.ClassDef, ast.FunctionDef)) and ast.get_docstring(part, clean=False) is not None:
            part.body = part.body[1:] or [ast.Pass()]
    return node
