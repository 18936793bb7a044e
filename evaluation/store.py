"""A results folder: the only code that knows the names of its files.

Everything is written to a temporary file first and then moved into place, so that a reader or a restart never
meets half a file. The files of a finished model are pinned by their sha256 in status.json and verified on reading.
"""

from __future__ import annotations

import json
import os
import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any
from urllib.parse import quote, unquote

import pandas as pd

from aprec_like.datasets.download import sha256_of
from aprec_like.errors import InputError

Json = dict[str, Any]

MAX_NAME_BYTES = 200
PINNED_FILES = ("history.csv", "metrics.json", "per_user.parquet", "top_items.parquet")


@dataclass(frozen=True)
class ModelFolder:
    """The results of one model with one seed."""

    path: Path

    @property
    def log_path(self) -> Path:
        """Where the model's process writes its log."""
        return self.path / "log.txt"

    @property
    def weights_path(self) -> Path:
        """The weights of the best epoch."""
        return self.path / "checkpoint" / "best.weights.h5"

    def status(self) -> Json:
        """What became of the model; state `none` if it was never started."""
        path = self.path / "status.json"
        return read_json(path) if path.exists() else {"state": "none"}

    def is_finished(self) -> bool:
        """Whether the model's results are complete."""
        return self.status().get("state") == "finished"

    def write_status(self, state: str, **details: Any) -> None:
        """Say what became of the model."""
        now = datetime.now(UTC).isoformat(timespec="seconds")
        write_json(self.path / "status.json", {"state": state, "at": now, **details})

    def write_history(self, history: pd.DataFrame) -> None:
        """Write one row per epoch."""
        write_text(self.path / "history.csv", history.to_csv(index=False, lineterminator="\n"))

    def write_metrics(self, metrics: Json) -> None:
        """Write the means."""
        write_json(self.path / "metrics.json", metrics)

    def write_per_user(self, frame: pd.DataFrame) -> None:
        """Write one row per user."""
        _write_parquet(self.path / "per_user.parquet", frame)

    def write_top_items(self, frame: pd.DataFrame) -> None:
        """Write the best items of every user."""
        _write_parquet(self.path / "top_items.parquet", frame)

    def finish(self, **details: Any) -> None:
        """Mark the model as finished, and pin its files."""
        pins = {name: sha256_of(self.path / name) for name in PINNED_FILES if (self.path / name).exists()}
        self.write_status("finished", **details, sha256=pins)

    def read_metrics(self) -> Json:
        """The means of a finished model."""
        return read_json(self._verified("metrics.json"))

    def read_per_user(self) -> pd.DataFrame:
        """The per-user values of a finished model."""
        return pd.read_parquet(self._verified("per_user.parquet"))

    def read_top_items(self) -> pd.DataFrame:
        """The best items of every user of a finished model."""
        return pd.read_parquet(self._verified("top_items.parquet"))

    def read_history(self) -> pd.DataFrame:
        """One row per epoch of a finished model; none for a model that only counts."""
        return pd.read_csv(self._verified("history.csv"))

    def _verified(self, name: str) -> Path:
        path = self.path / name
        pinned = self.status().get("sha256", {}).get(name)
        if not path.is_file() or pinned != sha256_of(path):
            raise InputError(f"{path}: is missing or not what the run wrote; train the model again with --fresh --only")
        return path


@dataclass(frozen=True)
class RunFolder:
    """The results of one recipe."""

    path: Path

    def model(self, name: str, seed: int) -> ModelFolder:
        """The folder of one model and seed."""
        return ModelFolder(self.path / encode_name(name) / f"seed_{seed}")

    def models(self) -> Iterator[tuple[str, int, ModelFolder]]:
        """Name, seed and folder of everything that was started, by name and seed."""
        found = []
        for path in self.path.glob("*/seed_*/status.json"):
            seed = path.parent.name.removeprefix("seed_")
            if seed.isdecimal():
                found.append((unquote(path.parent.parent.name), int(seed), ModelFolder(path.parent)))
        yield from sorted(found, key=lambda entry: entry[:2])

    def read_recipe(self) -> Json | None:
        """The settings that the folder's results were made with; `None` in a new folder."""
        path = self.path / "recipe.json"
        return read_json(path) if path.exists() else None

    def write_recipe(self, source: bytes, settings: Json) -> None:
        """Keep the recipe as written and as understood."""
        write_bytes(self.path / "recipe.py", source)
        write_json(self.path / "recipe.json", settings)

    def read_dataset(self) -> Json:
        """The numbers and digests of the data."""
        return read_json(self.path / "dataset.json")

    def write_dataset(self, description: Json) -> None:
        """Keep the numbers and digests of the data."""
        write_json(self.path / "dataset.json", description)

    def write_cases(self, frame: pd.DataFrame) -> None:
        """Keep who is asked for what, and what these users are like."""
        _write_parquet(self.path / "cases.parquet", frame)

    def read_cases(self) -> pd.DataFrame | None:
        """What the test users are like; `None` in the folder of an older version."""
        return _read_parquet(self.path / "cases.parquet")

    def write_items(self, frame: pd.DataFrame) -> None:
        """Keep the catalogue: ids, how often each item occurs before the targets, and titles."""
        _write_parquet(self.path / "items.parquet", frame)

    def read_items(self) -> pd.DataFrame | None:
        """The catalogue; `None` in the folder of an older version."""
        return _read_parquet(self.path / "items.parquet")

    def write_environment(self, description: Json) -> None:
        """Keep what the run was made with."""
        write_json(self.path / "environment.json", description)

    def read_environment(self) -> Json:
        """What the run was made with."""
        return read_json(self.path / "environment.json")

    @property
    def figures_path(self) -> Path:
        """The folder of figures."""
        return self.path / "figures"

    @property
    def report_path(self) -> Path:
        """The page that shows the run."""
        return self.path / "report.html"

    def write_report(self, page: str) -> None:
        """Write the page that shows the run."""
        write_text(self.report_path, page)

    def write_tables(self, tables: dict[str, str]) -> None:
        """Write the files of tables, by name."""
        for name, text in tables.items():
            write_text(self.path / name, text)


def encode_name(name: str) -> str:
    """A model's name as the name of a folder: odd characters and leading dots percent-encoded."""
    encoded = quote(name, safe=" ()+,=@")
    encoded = encoded.replace(".", "%2E", 1) if encoded.startswith(".") else encoded
    if len(encoded) > MAX_NAME_BYTES:
        raise InputError(
            f"the name of a model must encode to at most {MAX_NAME_BYTES} bytes. Received: {name[:40]!r}..."
        )
    return encoded


def read_json(path: Path) -> Json:
    """The object in a JSON file."""
    try:
        value = json.loads(path.read_text("utf-8"))
    except OSError as error:
        raise InputError(f"{path}: cannot be read: {error.strerror}") from error
    except ValueError as error:
        raise InputError(f"{path}: is damaged: {error}") from error
    if not isinstance(value, dict):
        raise InputError(f"{path}: must hold a JSON object. Received: {type(value).__name__}")
    return value


def write_json(path: Path, value: Json) -> None:
    """Write an object as JSON; numbers unrounded."""
    write_text(path, json.dumps(value, indent=2, ensure_ascii=False, allow_nan=False) + "\n")


def write_text(path: Path, text: str) -> None:
    """Write a text file as UTF-8."""
    write_bytes(path, text.encode())


def write_bytes(path: Path, data: bytes) -> None:
    """Write a file."""
    with _moved_into_place(path) as temporary:
        temporary.write_bytes(data)


def write_figure(path: Path, save: Callable[[Path], None]) -> None:
    """Write a figure that `save` draws into a file."""
    with _moved_into_place(path) as temporary:
        save(temporary)


def _write_parquet(path: Path, frame: pd.DataFrame) -> None:
    with _moved_into_place(path) as temporary:
        frame.to_parquet(temporary, index=False)


def _read_parquet(path: Path) -> pd.DataFrame | None:
    if not path.exists():
        return None
    try:
        return pd.read_parquet(path)
    except (OSError, ValueError) as error:
        raise InputError(f"{path}: is damaged: {error}") from error


@contextmanager
def _moved_into_place(path: Path) -> Iterator[Path]:
    """A temporary path beside `path` that becomes it, flushed to disk, if the block ends well."""
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        descriptor, name = tempfile.mkstemp(prefix=f".{path.name}.", dir=path.parent)
    except OSError as error:
        raise InputError(f"{path}: cannot be written: {error.strerror}") from error
    os.close(descriptor)
    temporary = Path(name)
    try:
        yield temporary
        temporary.chmod(0o644)
        with temporary.open("rb") as file:
            os.fsync(file.fileno())
        temporary.replace(path)
    except OSError as error:
        raise InputError(f"{path}: cannot be written: {error.strerror}") from error
    finally:
        temporary.unlink(missing_ok=True)
