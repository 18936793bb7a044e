"""Names of models and recipes as names of folders, and the titles of folders and of their data."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from pathlib import Path
from urllib.parse import quote, unquote

from aprec_like.errors import InputError
from aprec_like.types import Json

MAX_NAME_BYTES = 200
DATASET_FILES = ("cases.parquet", "items.parquet", "histories.parquet")
"""Files with their sha256 in dataset.json."""
RESERVED_NAMES = {
    "recipe.py", "recipe.json", "dataset.json", "environment.json", *DATASET_FILES, "table.md", "table.tex",
    "table.csv", "significance.csv", "figures", "report.html", "report.json",
}  # fmt: skip
"""Names of files in a run's folder, which no model's folder may have."""


def encode_name(name: str) -> str:
    """Return the folder name of a model or recipe: special characters and leading dots are percent-encoded.

    The first letter of a reserved name, such as table.md, is encoded too.
    """
    encoded = quote(name, safe=" ()+,=@")
    if encoded.startswith(".") or encoded.casefold() in RESERVED_NAMES:
        encoded = f"%{ord(encoded[0]):02X}{encoded[1:]}"
    if len(encoded) > MAX_NAME_BYTES:
        raise InputError(
            f"the name of a model or recipe must encode to at most {MAX_NAME_BYTES} bytes. Received: {name[:40]!r}..."
        )
    return encoded


def check_names(names: Iterable[str]) -> None:
    """Check that the folders of models are distinct, on case-insensitive file systems too."""
    found: dict[str, str] = {}
    for name in names:
        other = found.setdefault(encode_name(name).casefold(), name)
        if other != name:
            raise InputError(
                f"names of models must differ in more than upper and lower case. Received: {other}, {name}"
            )


def titles_of(folders: Sequence[Path]) -> list[str]:
    """Return the names of results folders, each with as many parent folders as make them distinct."""
    paths = [folder.resolve() for folder in folders]
    if len(set(paths)) < len(paths):
        raise InputError(f"{next(path for path in paths if paths.count(path) > 1)}: is named twice")
    for depth in range(1, max(len(path.parts) for path in paths) + 1):
        titles = [unquote("/".join(path.parts[-depth:])) for path in paths]
        if len(set(titles)) == len(titles):
            break
    return titles


def title_of_data(recipe: Json) -> str:
    """Return the title of a described recipe, else its dataset's file or class; empty if neither is known."""
    dataset = recipe.get("dataset", {})
    path = str(dataset.get("path", ""))
    file_name = path.replace("\\", "/").rpartition("/")[2].removesuffix(".gz")
    return str(recipe.get("title") or file_name.partition(".")[0] or dataset.get("class", ""))
