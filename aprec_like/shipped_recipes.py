"""The recipes that come with this package: in the folder recipes/ of a checkout, inside the package where installed."""

from __future__ import annotations

from pathlib import Path

FOLDERS = (Path(__file__).parent / "recipes", Path(__file__).parent.parent / "recipes")
"""In an installed package, and in a checkout."""


def list_recipes() -> list[str]:
    """Return the names of the recipes."""
    return sorted(path.stem for path in _folder().glob("*.py") if not path.stem.startswith("_"))


def find_recipe(path: Path) -> Path:
    """Return the path of a recipe: the given one, or if no file is there the shipped recipe of this name."""
    shipped = _folder() / f"{path}.py"
    is_name = path.parent == Path() and not path.exists()
    return shipped if is_name and shipped.exists() else path


def _folder() -> Path:
    return next((folder for folder in FOLDERS if (folder / "quickstart.py").exists()), FOLDERS[-1])
