"""Classes that a run's recipe brought itself: which they are, and loading them from a file that the user names.

No code of a results folder is run unasked: without such a file these classes are not known.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from aprec_like.errors import InputError
from aprec_like.settings import SettingsClasses
from aprec_like.types import Json
from evaluation.results.store import RunFolder


def load_own_classes(run: RunFolder, path: Path | None) -> SettingsClasses:
    """Execute a recipe file and return its own classes by name; nothing without a file.

    Raises `InputError` if a class is not the one that the run was made with.
    """
    if path is None:
        return {}
    from aprec_like.recipe.own_code import digest_code  # imports TensorFlow, which most readers do not need
    from aprec_like.recipe.recipe_file import load_own_classes

    found = load_own_classes(path)
    for name, digest in _stored_digests(run.read_recipe()):
        if name in found and digest_code(found[name]) != digest:
            raise InputError(
                f"{path}: its class {name} is not the one of {run.path}: the code has changed since; put it back, or "
                f"name the run's copy of the recipe, {run.path / 'recipe.py'}"
            )
    return found


def known_classes(recipe: Json, package: SettingsClasses, own: SettingsClasses) -> SettingsClasses:
    """Return the classes by which settings of a run are restored.

    Args:
        recipe: the content of recipe.json.
        package: classes of this package; those of the same name as one of the recipe's own are left out.
        own: what `load_own_classes` returned.
    """
    replaced = {name for name, _ in _stored_digests(recipe)}
    return {name: kind for name, kind in package.items() if name not in replaced} | dict(own)


def _stored_digests(recipe: Json) -> Iterator[tuple[str, str]]:
    """Yield the names of a run's own classes with the digests of their code."""
    code = recipe.get("code", {})
    for classes in (*code.get("models", {}).values(), code.get("shared", {})):
        yield from classes.items()
