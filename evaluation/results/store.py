"""Results folders: the only module that knows their file names.

Writes are atomic, so that readers and restarts never see partial files. Reads are verified: JSON files hold a checksum
of their content, status.json the sha256 of the files of a finished model, dataset.json that of cases and items.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any
from urllib.parse import quote, unquote

import pandas as pd

from aprec_like.errors import InputError
from aprec_like.files import atomic_write, remove_folder, sha256_of, storage_errors
from aprec_like.types import Json
from evaluation.results.files import (
    read_json,
    read_json_with_checksum,
    read_parquet,
    write_bytes,
    write_json,
    write_json_with_checksum,
    write_parquet,
    write_text,
)

MAX_NAME_BYTES = 200
WEIGHTS = "checkpoint/best.weights.h5"
MODEL_FILES = ("history.csv", "metrics.json", "per_user.parquet", "top_items.parquet", WEIGHTS)
"""Files with their sha256 in status.json."""
DATASET_FILES = ("cases.parquet", "items.parquet")
"""Files with their sha256 in dataset.json."""
RESERVED_NAMES = {
    "recipe.py", "recipe.json", "dataset.json", "environment.json", *DATASET_FILES, "table.md", "table.tex",
    "table.csv", "significance.csv", "figures", "report.html",
}  # fmt: skip
"""Names of files in a run's folder, which no model's folder may have."""


@dataclass(frozen=True)
class ModelFolder:
    """Results folder of one model with one seed."""

    path: Path

    @property
    def log_path(self) -> Path:
        """Log file of the model's worker."""
        return self.path / "log.txt"

    @property
    def weights_path(self) -> Path:
        """Weights of the best epoch."""
        return self.path / WEIGHTS

    @property
    def checkpoint_path(self) -> Path:
        """Folder of checkpoints."""
        return self.weights_path.parent

    def status(self) -> Json:
        """Read status.json, verified; the state is `none` if the model was never started."""
        path = self.path / "status.json"
        return read_json_with_checksum(path) if path.exists() else {"state": "none"}

    def is_finished(self) -> bool:
        """Return whether the model's results are complete."""
        return self.status().get("state") == "finished"

    def write_status(self, state: str, **details: Any) -> None:
        """Write the model's state (running, interrupted, failed or finished) with details."""
        now = datetime.now(UTC).isoformat(timespec="seconds")
        write_json_with_checksum(self.path / "status.json", {"state": state, "at": now, **details})

    def remove(self) -> None:
        """Remove the folder."""
        with storage_errors(self.path):
            (self.path / "status.json").unlink(missing_ok=True)  # first, so that a finished model is always complete
        remove_folder(self.path)

    def write_history(self, history: pd.DataFrame) -> None:
        """Write history.csv: one row per epoch."""
        write_text(self.path / "history.csv", history.to_csv(index=False, lineterminator="\n"))

    def write_metrics(self, metrics: Json) -> None:
        """Write metrics.json: means over users."""
        write_json(self.path / "metrics.json", metrics)

    def write_per_user(self, frame: pd.DataFrame) -> None:
        """Write per_user.parquet: one row per test user."""
        write_parquet(self.path / "per_user.parquet", frame)

    def write_top_items(self, frame: pd.DataFrame) -> None:
        """Write top_items.parquet: one row per test user and position."""
        write_parquet(self.path / "top_items.parquet", frame)

    def write_weights(self, save: Callable[[Path], None]) -> None:
        """Write the weights of the best epoch; `save` writes them to the path that it gets."""
        with atomic_write(self.weights_path) as part:
            save(part)

    def finish(self, **details: Any) -> None:
        """Mark the model as finished, with the sha256 of its files."""
        self.write_status("finished", **details, sha256=_digests(self.path, MODEL_FILES))

    def read_metrics(self) -> Json:
        """Read metrics.json of a finished model."""
        return read_json(self.verified("metrics.json"))

    def read_per_user(self) -> pd.DataFrame:
        """Read per_user.parquet of a finished model."""
        return read_parquet(self.verified("per_user.parquet"))

    def read_top_items(self) -> pd.DataFrame:
        """Read top_items.parquet of a finished model."""
        return read_parquet(self.verified("top_items.parquet"))

    def read_history(self) -> pd.DataFrame:
        """Read history.csv of a finished model; no rows for a counting model."""
        return pd.read_csv(self.verified("history.csv"))

    def verified(self, name: str) -> Path:
        """Return the path of a file of a finished model, after checking its sha256."""
        path = self.path / name
        expected = self.status().get("sha256", {}).get(name)
        if not path.is_file() or expected != sha256_of(path):
            raise InputError(f"{path}: is missing or was changed after the run; train again with --fresh --only")
        return path


@dataclass(frozen=True)
class RunFolder:
    """Results folder of a run: one recipe with all its models."""

    path: Path

    @property
    def lock_path(self) -> Path:
        """Lock file, held while a run command writes to the folder."""
        return self.path / ".lock"

    def model(self, name: str, seed: int) -> ModelFolder:
        """Return the folder of a model and seed."""
        return ModelFolder(self.path / encode_name(name) / f"seed_{seed}")

    def models(self) -> Iterator[tuple[str, int, ModelFolder]]:
        """Yield name, seed and folder of every model that was started, sorted by name and seed."""
        found = []
        for path in self.path.glob("*/seed_*/status.json"):
            seed = path.parent.name.removeprefix("seed_")
            if seed.isdecimal():
                found.append((unquote(path.parent.parent.name), int(seed), ModelFolder(path.parent)))
        yield from sorted(found, key=lambda entry: entry[:2])

    def read_recipe(self) -> Json:
        """Return the settings of the recipe that the results were made with."""
        path = self.path / "recipe.json"
        if not path.exists():
            raise InputError(f"{self.path}: is not a results folder (it has no recipe.json)")
        return read_json_with_checksum(path)

    def write_recipe(self, source: bytes, settings: Json) -> None:
        """Write recipe.py, the recipe's source, and recipe.json, its settings."""
        write_bytes(self.path / "recipe.py", source)
        write_json_with_checksum(self.path / "recipe.json", settings)

    def read_dataset(self) -> Json:
        """Read dataset.json: sizes and digests of the data."""
        return read_json_with_checksum(self.path / "dataset.json")

    def write_dataset(self, description: Json) -> None:
        """Write dataset.json, with the sha256 of cases and items, which must be written before."""
        write_json_with_checksum(
            self.path / "dataset.json", description | {"files": _digests(self.path, DATASET_FILES)}
        )

    def write_cases(self, frame: pd.DataFrame) -> None:
        """Write cases.parquet: one row per test user, with the target and properties of both."""
        write_parquet(self.path / "cases.parquet", frame)

    def read_cases(self) -> pd.DataFrame:
        """Read cases.parquet."""
        return self._read_verified("cases.parquet")

    def write_items(self, frame: pd.DataFrame) -> None:
        """Write items.parquet: the catalogue's ids, counts of interactions before the targets, and titles."""
        write_parquet(self.path / "items.parquet", frame)

    def read_items(self) -> pd.DataFrame:
        """Read items.parquet."""
        return self._read_verified("items.parquet")

    def _read_verified(self, name: str) -> pd.DataFrame:
        path = self.path / name
        if not path.exists():
            raise InputError(f"{self.path}: has no {name} (published folders may leave it out); a new run writes it")
        if self.read_dataset().get("files", {}).get(name) != sha256_of(path):
            raise InputError(f"{path}: was changed after the run; the same run command writes it again")
        return read_parquet(path)

    def write_environment(self, description: Json) -> None:
        """Write environment.json: versions and hardware."""
        write_json_with_checksum(self.path / "environment.json", description)

    def read_environment(self) -> Json:
        """Read environment.json."""
        return read_json_with_checksum(self.path / "environment.json")

    @property
    def figures_path(self) -> Path:
        """Folder of figures."""
        return self.path / "figures"

    @property
    def report_path(self) -> Path:
        """HTML page of the run."""
        return self.path / "report.html"

    def write_report(self, page: str) -> None:
        """Write the HTML page of the run."""
        write_text(self.report_path, page)

    def write_tables(self, tables: dict[str, str]) -> None:
        """Write tables, given as text by file name."""
        for name, text in tables.items():
            write_text(self.path / name, text)


def _digests(folder: Path, names: Iterable[str]) -> Json:
    """Return the sha256 of the files that exist, by name."""
    return {name: sha256_of(folder / name) for name in names if (folder / name).exists()}


def check_is_finished(name: str, finished: Sequence[str], run: object) -> None:
    """Check that a model is among the names of a run's finished models."""
    if name not in finished:
        names = ", ".join(dict.fromkeys(finished)) or "none"
        raise InputError(f"{run}: has no finished model {name!r}; finished are {names}")


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
