"""Results folders of runs; this package alone knows the file names.

Writes are atomic, so that readers and restarts never see partial files. Reads are verified: JSON files hold their kind
and a checksum, status.json the identity of a finished model and the sha256 of its files, dataset.json the sha256 of
cases, items and histories, recipe.json that of recipe.py. Links are refused: a write could go through them.
"""

from __future__ import annotations

import hashlib
import os
import re
from collections.abc import Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import cast
from urllib.parse import unquote

import pandas as pd

from aprec_like.errors import InputError
from aprec_like.files import open_regular, refuse_link
from aprec_like.splits import FitOn
from aprec_like.types import Json
from evaluation.results.files import (
    digest_file,
    digest_open_file,
    open_parquet,
    read_sealed_json,
    write_bytes,
    write_parquet,
    write_sealed_json,
    write_text,
)
from evaluation.results.folder_names import DATASET_FILES, check_names, encode_name
from evaluation.results.model_folder import (
    MODEL_FILES,
    OPTIONAL_FILES,
    TOP_ITEMS,
    WEIGHTS,
    ModelFolder,
    digest_files,
)
from evaluation.results.schemas import check_json, check_table

__all__ = [
    "MODEL_FILES",
    "OPTIONAL_FILES",
    "TOP_ITEMS",
    "WEIGHTS",
    "ModelFolder",
    "RunFolder",
    "check_is_finished",
    "check_names",
    "encode_name",
]

SEED_FOLDER = re.compile(r"seed_(\d{1,10})")
WRITE_AGAIN = "the same run command writes it again"


@dataclass(frozen=True)
class RunFolder:
    """Results folder of a run: one recipe with all its models."""

    path: Path

    @property
    def lock_path(self) -> Path:
        """Lock file, held while a run command writes to the folder."""
        return self.path / ".lock"

    def model(self, name: str, seed: int) -> ModelFolder:
        """Return the folder of a model and seed; raises `InputError` if a link stands in its place."""
        path = self.path / encode_name(name) / f"seed_{seed}"
        refuse_link(path.parent)
        refuse_link(path)
        return ModelFolder(path)

    def models(self) -> Iterator[tuple[str, int, ModelFolder]]:
        """Yield name, seed and folder of every model that was started, sorted by name and seed."""
        found = []
        for folder in _subfolders(self.path):
            for path in _subfolders(folder):
                if (match := SEED_FOLDER.fullmatch(path.name)) and os.path.lexists(path / "status.json"):
                    name = unquote(folder.name)
                    if not name.isprintable():
                        raise InputError(f"{folder}: is not the folder of a model: its name cannot be printed")
                    found.append((name, int(match[1]), ModelFolder(path)))
        yield from sorted(found, key=lambda entry: entry[:2])

    def read_recipe(self) -> Json:
        """Return the settings of the recipe that the results were made with; `run` is the name of the run."""
        path = self.path / "recipe.json"
        if not os.path.lexists(path):
            raise InputError(f"{self.path}: is not a results folder (it has no recipe.json)")
        return check_json(path, "recipe", read_sealed_json(path, "recipe"))

    def fit_on(self) -> FitOn:
        """Return which interactions the models learned from; recipes of earlier versions were `mixed`."""
        return cast(FitOn, self.read_recipe().get("fit_on", "mixed"))

    def write_recipe(self, source: bytes, settings: Json) -> None:
        """Write recipe.py, the recipe's source, and recipe.json, its settings."""
        write_bytes(self.path / "recipe.py", source)
        write_sealed_json(
            self.path / "recipe.json", "recipe", settings | {"source": hashlib.sha256(source).hexdigest()}
        )

    def verify(self, recipe: Json) -> None:
        """Check that the files of the run are all there and as they were written; `recipe` is recipe.json's content.

        Runs of earlier versions, which have no name in recipe.json, may lack some. The histories, a large file, are
        verified when they are read.
        """
        for folder in _subfolders(self.path):
            for path in _subfolders(folder):
                is_model = SEED_FOLDER.fullmatch(path.name) and os.path.lexists(path / "per_user.parquet")
                if is_model and not os.path.lexists(path / "status.json"):
                    raise InputError(f"{path / 'status.json'}: is missing; the same run command trains the model again")
        if "run" in recipe:
            pinned = {"recipe.py": recipe.get("source")} | self.read_dataset().get("files", {})
            self.read_environment()
            for name in ("recipe.py", "cases.parquet", "items.parquet"):
                path = self.path / name
                if (name == "recipe.py" or os.path.lexists(path)) and pinned.get(name) != digest_file(path):
                    raise InputError(f"{path}: was changed after the run; {WRITE_AGAIN}")

    @property
    def has_dataset(self) -> bool:
        """Whether the folder has a dataset.json."""
        return (self.path / "dataset.json").exists()

    def read_dataset(self) -> Json:
        """Read dataset.json: sizes and digests of the data."""
        path = self.path / "dataset.json"
        return check_json(path, "dataset", read_sealed_json(path, "dataset"))

    def write_dataset(self, description: Json) -> None:
        """Write dataset.json, with the sha256 of cases and items, which must be written before."""
        pinned = {"files": digest_files(self.path, DATASET_FILES)}
        write_sealed_json(self.path / "dataset.json", "dataset", description | pinned)

    def write_cases(self, frame: pd.DataFrame) -> None:
        """Write cases.parquet: one row per test user, with the target and properties of both."""
        write_parquet(self.path / "cases.parquet", frame)

    def read_cases(self, columns: Collection[str] | None = None) -> pd.DataFrame:
        """Read cases.parquet, or those of its columns that are among `columns`."""
        return self._read_verified("cases.parquet", columns)

    def write_items(self, frame: pd.DataFrame) -> None:
        """Write items.parquet: the catalogue's ids, counts of interactions before the targets, and titles."""
        write_parquet(self.path / "items.parquet", frame)

    def read_items(self, columns: Collection[str] | None = None) -> pd.DataFrame:
        """Read items.parquet, or those of its columns that are among `columns`."""
        return self._read_verified("items.parquet", columns)

    def write_histories(self, frames: Iterable[pd.DataFrame]) -> None:
        """Write histories.parquet: the known items of every test user, oldest first, as rows of cases and items."""
        write_parquet(self.path / "histories.parquet", frames)

    def read_histories(self) -> pd.DataFrame:
        """Read histories.parquet."""
        return self._read_verified("histories.parquet")

    @property
    def has_items(self) -> bool:
        """Whether the folder has the catalogue, which published folders may leave out."""
        return (self.path / "items.parquet").exists()

    @property
    def has_histories(self) -> bool:
        """Whether the folder has the histories, which older and published folders lack."""
        return (self.path / "histories.parquet").exists()

    def _read_verified(self, name: str, columns: Collection[str] | None = None) -> pd.DataFrame:
        path = self.path / name
        if not os.path.lexists(path):
            raise InputError(f"{self.path}: has no {name} (published folders may leave it out); a new run writes it")
        with open_regular(path) as file:
            if self.read_dataset().get("files", {}).get(name) != digest_open_file(path, file):
                raise InputError(f"{path}: was changed after the run; {WRITE_AGAIN}")
            file.seek(0)
            with open_parquet(path, file) as table:
                check_table(path, table.schema_arrow.empty_table().to_pandas())
                wanted = [each for each in table.schema_arrow.names if columns is None or each in columns]
                return check_table(path, table.read(wanted).to_pandas(), wanted)

    def write_environment(self, description: Json) -> None:
        """Write environment.json: versions and hardware."""
        write_sealed_json(self.path / "environment.json", "environment", description)

    def read_environment(self) -> Json:
        """Read environment.json."""
        path = self.path / "environment.json"
        return check_json(path, "environment", read_sealed_json(path, "environment"))

    @property
    def figures_path(self) -> Path:
        """Folder of figures."""
        return self.path / "figures"

    @property
    def report_path(self) -> Path:
        """HTML page of the run."""
        return self.path / "report.html"

    def write_report_data(self, data: Json) -> None:
        """Write report.json: what the page shows of files that are too large to publish."""
        write_sealed_json(self.path / "report.json", "report", data)

    def read_report_data(self) -> Json | None:
        """Read report.json; `None` if there is none."""
        path = self.path / "report.json"
        return check_json(path, "report", read_sealed_json(path, "report")) if os.path.lexists(path) else None

    def write_report(self, page: str) -> None:
        """Write the HTML page of the run."""
        write_text(self.report_path, page)

    def write_tables(self, tables: dict[str, str]) -> None:
        """Write tables, given as text by file name."""
        for name, text in tables.items():
            write_text(self.path / name, text)


def _subfolders(folder: Path) -> list[Path]:
    """Return the folders in a folder, if that exists; raises `InputError` for links and what cannot be read."""
    found = []
    try:
        with os.scandir(folder) as entries:
            for entry in entries:
                if entry.is_symlink():
                    refuse_link(Path(entry.path))
                if entry.is_dir(follow_symlinks=False):
                    found.append(Path(entry.path))
    except FileNotFoundError:
        return []
    except OSError as error:
        raise InputError(f"{folder}: cannot be read: {error.strerror}") from error
    return found


def check_is_finished(name: str, finished: Sequence[str], run: object) -> None:
    """Check that a model is among the names of a run's finished models."""
    if name not in finished:
        names = ", ".join(dict.fromkeys(finished)) or "none"
        raise InputError(f"{run}: has no finished model {name!r}; finished are {names}")
