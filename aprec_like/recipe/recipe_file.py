"""Loading of a recipe file; every mistake in it is reported in one line with file and line number."""

from __future__ import annotations

import ast
import importlib.util
import sys
import traceback
from pathlib import Path
from types import ModuleType

from aprec_like.datasets.local_files import RECIPE_FOLDER
from aprec_like.errors import InputError
from aprec_like.recipe.mistakes import explain
from aprec_like.recipe.own_code import is_own
from aprec_like.recipe.recipe import Recipe
from aprec_like.settings import dataclasses_in


def load_recipe(path: Path) -> Recipe:
    """Execute a recipe file and return its `recipe`; raises `InputError` with file and line for any mistake in it."""
    recipe = getattr(_execute(path), "recipe", None)
    if not isinstance(recipe, Recipe):
        raise InputError(f"{path}: must define `recipe = Recipe(...)`. Received: {type(recipe).__name__}")
    return recipe


def load_own_classes(path: Path) -> dict[str, type]:
    """Execute a recipe file and return the dataclasses that it defines or imports from outside this package."""
    return {name: kind for name, kind in dataclasses_in(_execute(path)).items() if is_own(kind)}


def _execute(path: Path) -> ModuleType:
    """Execute a recipe file as a module. It may import modules beside it, which hide none that are installed."""
    tree = _parse(path)
    _check_repeated_keys(path, tree)
    if path.suffix != ".py":
        raise InputError(f"{path}: a recipe is a Python file, NAME.py")
    module = ModuleType(f"recipe_{path.stem}")
    module.__file__ = str(path)
    RECIPE_FOLDER.set(path.parent)
    if (folder := str(path.parent.resolve())) not in sys.path:
        sys.path.append(folder)
    _check_hidden_modules(path, tree)
    sys.modules[module.__name__] = module  # dataclasses that the recipe defines look up their module here
    try:
        # An import could load outdated bytecode of the file.
        exec(compile(tree, str(path), "exec", dont_inherit=True), module.__dict__)
    except Exception as error:  # the recipe is user code and may raise anything
        raise InputError(f"{_location(path, error)}: {explain(error)}") from error
    return module


def _parse(path: Path) -> ast.Module:
    try:
        return ast.parse(path.read_bytes(), str(path))
    except OSError as error:
        raise InputError(f"{path}: cannot be read: {error.strerror}") from error
    except (SyntaxError, ValueError) as error:
        raise InputError(f"{path}:{getattr(error, 'lineno', None) or 1}: {error.args[0]}") from error


def _check_repeated_keys(path: Path, tree: ast.Module) -> None:
    """Refuse a dict literal with a repeated key: Python would silently keep only the last of two equal names."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Dict):
            keys = set()
            for key in node.keys:
                if isinstance(key, ast.Constant):
                    if key.value in keys:
                        raise InputError(f"{path}:{key.lineno}: the name {key.value!r} is used twice")
                    keys.add(key.value)


def _check_hidden_modules(path: Path, tree: ast.Module) -> None:
    """Refuse the import of a module beside the recipe if Python would take another one of the same name."""
    for node in ast.walk(tree):
        if isinstance(node, ast.ImportFrom) and not node.level:
            names = [node.module or ""]
        elif isinstance(node, ast.Import):
            names = [alias.name for alias in node.names]
        else:
            continue
        for name in {each.partition(".")[0] for each in names} - {__name__.partition(".")[0]}:
            files = (path.parent / f"{name}.py", path.parent / name / "__init__.py")
            own = next((file.resolve() for file in files if file.is_file()), None)
            spec = importlib.util.find_spec(name) if own else None
            if spec is not None and spec.origin is not None and Path(spec.origin).resolve() != own:
                raise InputError(f"{path}:{node.lineno}: {own} is hidden by another {name!r}, {spec.origin}; rename it")


def _location(path: Path, error: Exception) -> str:
    """Return the file and the line of the recipe where an error was raised."""
    lines = [frame.lineno for frame in traceback.extract_tb(error.__traceback__) if frame.filename == str(path)]
    return f"{path}:{lines[-1]}" if lines else str(path)
