"""A results folder: the only code that knows the names of its files.

Files are written whole or not at all, so that a reader or a restart never meets half a file. What is read is verified:
JSON files hold a checksum of themselves and pin the other files by their sha256: status.json those of a finished model,
dataset.json the cases and the catalogue.
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
PINNED_FILES = ("history.csv", "metrics.json", "per_user.parquet", "top_items.parquet", WEIGHTS)
PINNED_BY_DATASET = ("cases.parquet", "items.parquet")
OWN_NAMES = {
    "recipe.py", "recipe.json", "dataset.json", "environment.json", *PINNED_BY_DATASET, "table.md", "table.tex",
    "table.csv", "significance.csv", "figures", "report.html",
}  # fmt: skip
"""What a run calls its own; no model's folder may be called so."""


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
        return self.path / WEIGHTS

    @property
    def checkpoint_path(self) -> Path:
        """The folder from which training goes on."""
        return self.weights_path.parent

    def status(self) -> Json:
        """What became of the model; state `none` if it was never started. Raises `InputError` if it is damaged."""
        path = self.path / "status.json"
        return read_json_with_checksum(path) if path.exists() else {"state": "none"}

    def is_finished(self) -> bool:
        """Whether the model's results are complete."""
        return self.status().get("state") == "finished"

    def write_status(self, state: str, **details: Any) -> None:
        """Say what became of the model."""
        now = datetime.now(UTC).isoformat(timespec="seconds")
        write_json_with_checksum(self.path / "status.json", {"state": state, "at": now, **details})

    def remove(self) -> None:
        """Remove everything, so that the model counts as never started."""
        with storage_errors(self.path):
            (self.path / "status.json").unlink(missing_ok=True)  # first: what is finished must be whole
        remove_folder(self.path)

    def write_history(self, history: pd.DataFrame) -> None:
        """Write one row per epoch."""
        write_text(self.path / "history.csv", history.to_csv(index=False, lineterminator="\n"))

    def write_metrics(self, metrics: Json) -> None:
        """Write the means."""
        write_json(self.path / "metrics.json", metrics)

    def write_per_user(self, frame: pd.DataFrame) -> None:
        """Write one row per user."""
        write_parquet(self.path / "per_user.parquet", frame)

    def write_top_items(self, frame: pd.DataFrame) -> None:
        """Write the best items of every user."""
        write_parquet(self.path / "top_items.parquet", frame)

    def write_weights(self, save: Callable[[Path], None]) -> None:
        """Write the weights of the best epoch, which `save` puts into a file."""
        with atomic_write(self.weights_path) as part:
            save(part)

    def finish(self, **details: Any) -> None:
        """Mark the model as finished, and pin its files."""
        pins = {name: sha256_of(self.path / name) for name in PINNED_FILES if (self.path / name).exists()}
        self.write_status("finished", **details, sha256=pins)

    def read_metrics(self) -> Json:
        """The means of a finished model."""
        return read_json(self.verified("metrics.json"))

    def read_per_user(self) -> pd.DataFrame:
        """The per-user values of a finished model."""
        return read_parquet(self.verified("per_user.parquet"))

    def read_top_items(self) -> pd.DataFrame:
        """The best items of every user of a finished model."""
        return read_parquet(self.verified("top_items.parquet"))

    def read_history(self) -> pd.DataFrame:
        """One row per epoch of a finished model; none for a model that only counts."""
        return pd.read_csv(self.verified("history.csv"))

    def verified(self, name: str) -> Path:
        """The path of a file of a finished model, which is what the run wrote."""
        path = self.path / name
        pinned = self.status().get("sha256", {}).get(name)
        if not path.is_file() or pinned != sha256_of(path):
            raise InputError(f"{path}: is missing or not what the run wrote; train the model again with --fresh --only")
        return path


@dataclass(frozen=True)
class RunFolder:
    """The results of one recipe."""

    path: Path

    @property
    def lock_path(self) -> Path:
        """Lock file, held while a run command writes to the folder."""
        return self.path / ".lock"

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

    def read_recipe(self) -> Json:
        """Return the settings of the recipe that the results were made with."""
        path = self.path / "recipe.json"
        if not path.exists():
            raise InputError(f"{self.path}: is not a results folder (it has no recipe.json)")
        return read_json_with_checksum(path)

    def write_recipe(self, source: bytes, settings: Json) -> None:
        """Keep the recipe as written and as understood."""
        write_bytes(self.path / "recipe.py", source)
        write_json_with_checksum(self.path / "recipe.json", settings)

    def read_dataset(self) -> Json:
        """The numbers and digests of the data."""
        return read_json_with_checksum(self.path / "dataset.json")

    def write_dataset(self, description: Json) -> None:
        """Keep the numbers and digests of the data, and pin the cases and the catalogue, which are there already."""
        pins = {name: sha256_of(self.path / name) for name in PINNED_BY_DATASET if (self.path / name).exists()}
        write_json_with_checksum(self.path / "dataset.json", description | {"files": pins})

    def write_cases(self, frame: pd.DataFrame) -> None:
        """Keep who is asked for what, and what these users are like."""
        write_parquet(self.path / "cases.parquet", frame)

    def read_cases(self) -> pd.DataFrame:
        """What the test users are like."""
        return self._read_pinned("cases.parquet")

    def write_items(self, frame: pd.DataFrame) -> None:
        """Keep the catalogue: ids, how often each item occurs before the targets, and titles."""
        write_parquet(self.path / "items.parquet", frame)

    def read_items(self) -> pd.DataFrame:
        """The catalogue."""
        return self._read_pinned("items.parquet")

    def _read_pinned(self, name: str) -> pd.DataFrame:
        path = self.path / name
        if not path.exists():
            raise InputError(f"{self.path}: has no {name} (published folders may leave it out); a new run has")
        if self.read_dataset().get("files", {}).get(name) != sha256_of(path):
            raise InputError(f"{path}: is not what the run wrote; the command that made the run writes it again")
        return read_parquet(path)

    def write_environment(self, description: Json) -> None:
        """Keep what the run was made with."""
        write_json_with_checksum(self.path / "environment.json", description)

    def read_environment(self) -> Json:
        """What the run was made with."""
        return read_json_with_checksum(self.path / "environment.json")

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


def check_is_finished(name: str, finished: Sequence[str], run: object) -> None:
    """Check that a model is among the names of a run's finished models."""
    if name not in finished:
        names = ", ".join(dict.fromkeys(finished)) or "none"
        raise InputError(f"{run}: has no finished model {name!r}; finished are {names}")


def encode_name(name: str) -> str:
    """The name of a model or recipe as the name of a folder: odd characters and leading dots percent-encoded.

    A name that a run needs for itself, such as table.md, has its first letter encoded.
    """
    encoded = quote(name, safe=" ()+,=@")
    if encoded.startswith(".") or encoded.casefold() in OWN_NAMES:
        encoded = f"%{ord(encoded[0]):02X}{encoded[1:]}"
    if len(encoded) > MAX_NAME_BYTES:
        raise InputError(
            f"the name of a model or recipe must encode to at most {MAX_NAME_BYTES} bytes. Received: {name[:40]!r}..."
        )
    return encoded


def check_names(names: Iterable[str]) -> None:
    """Models of a run must have folders of their own, also where a file system knows no upper and lower case."""
    found: dict[str, str] = {}
    for name in names:
        other = found.setdefault(encode_name(name).casefold(), name)
        if other != name:
            raise InputError(
                f"names of models must differ in more than upper and lower case. Received: {other}, {name}"
            )
