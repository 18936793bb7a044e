"""The results folder of one model with one seed: its files, how they are sealed, and how they are verified."""

from __future__ import annotations

import contextlib
import hashlib
import os
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from io import BufferedReader
from pathlib import Path
from typing import Any

import pandas as pd

from aprec_like.errors import InputError
from aprec_like.files import atomic_write, open_regular, read_regular, refuse_link, remove_folder, storage_errors
from aprec_like.types import Json
from evaluation.results.files import (
    digest_file,
    digest_open_file,
    parse_csv,
    parse_json,
    parse_parquet,
    read_sealed_json,
    write_json,
    write_parquet,
    write_sealed_json,
    write_text,
)
from evaluation.results.identity import Identity
from evaluation.results.schemas import check_json, check_table
from evaluation.results.top_items import TopItems, open_top_items
from evaluation.results.user_columns import UserColumns, open_user_columns

WEIGHTS = "checkpoint/best.weights.h5"
PER_USER = "per_user.parquet"
TOP_ITEMS = "top_items.parquet"
MODEL_FILES = ("history.csv", "metrics.json", PER_USER, TOP_ITEMS, WEIGHTS)
"""Files with their sha256 in status.json."""
OPTIONAL_FILES = (TOP_ITEMS, WEIGHTS)
"""Large files of a finished model that a published folder may leave out."""
TRAIN_AGAIN = "train again with --fresh --only"


@dataclass(frozen=True)
class ModelFolder:
    """Results folder of one model with one seed.

    Args:
        path: the folder.
        known_status: the content of status.json if it was read before; `None` to read it whenever it is needed.
    """

    path: Path
    known_status: Json | None = field(default=None, compare=False, repr=False)

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

    @property
    def refit_path(self) -> Path:
        """Folder of the checkpoints of a second training, which learns the validation part too."""
        return self.checkpoint_path / "refit"

    def status(self) -> Json:
        """Read status.json, verified; the state is `none` if the model was never started."""
        if self.known_status is not None:
            return dict(self.known_status)
        path = self.path / "status.json"
        if not os.path.lexists(path):
            return {"state": "none", "at": ""}
        status = check_json(path, "status", read_sealed_json(path, "status"))
        if status["state"] == "finished":
            check_json(path, "finished status", status)
        elif "before" in status:
            check_json(path, "finished status", check_json(path, "status", status["before"]))
        return status

    def with_status(self) -> ModelFolder:
        """Return the folder with its status as it is now, for readers that ask for it often."""
        return replace(self, known_status=self.status())

    def is_finished(self) -> bool:
        """Return whether the model's results are complete."""
        return self.status().get("state") == "finished"

    def as_finished(self) -> ModelFolder | None:
        """Return the folder with the status that it has or had when the model was finished; `None` if it never was.

        Readers of the result verify files against that status. It may be an earlier one: a model that is ranked again,
        or whose training goes on, keeps it as `before` until it is finished again.
        """
        status = self.status()
        if status["state"] != "finished":
            status = status.get("before", {})
        return replace(self, known_status=status) if status else None

    def write_status(self, state: str, **details: Any) -> None:
        """Write the model's state (running, interrupted, failed or finished) with details."""
        now = datetime.now(UTC).isoformat(timespec="seconds")
        if state != "finished":
            with contextlib.suppress(InputError):
                if before := self.as_finished():
                    details["before"] = before.status()
        write_sealed_json(self.path / "status.json", "status", {"state": state, "at": now, **details})

    def remove(self) -> None:
        """Remove the folder; it is renamed first, so that no reader finds a part of it."""
        removed = self.path.with_name(f".removed-{self.path.name}")
        remove_folder(removed)
        with storage_errors(self.path), contextlib.suppress(FileNotFoundError):
            self.path.rename(removed)
        remove_folder(removed)

    def write_history(self, history: pd.DataFrame) -> None:
        """Write history.csv: one row per epoch."""
        write_text(self.path / "history.csv", history.to_csv(index=False, lineterminator="\n"))

    def write_metrics(self, metrics: Json) -> None:
        """Write metrics.json: means over users."""
        write_json(self.path / "metrics.json", metrics)

    def write_per_user(self, frames: pd.DataFrame | Iterable[pd.DataFrame]) -> None:
        """Write per_user.parquet: one row per test user."""
        write_parquet(self.path / PER_USER, frames)

    def write_top_items(self, frames: pd.DataFrame | Iterable[pd.DataFrame]) -> None:
        """Write top_items.parquet: one row per test user and position."""
        write_parquet(self.path / TOP_ITEMS, frames)

    def write_weights(self, save: Callable[[Path], None]) -> None:
        """Write the weights of the best epoch; `save` writes them to the path that it gets."""
        with atomic_write(self.weights_path) as part:
            save(part)

    def finish(self, *, identity: Identity | None = None, **details: Any) -> None:
        """Mark the model as finished, with its identity and the sha256 of its files."""
        owner = {"identity": identity.to_json()} if identity else {}
        self.write_status("finished", **details, **owner, sha256=digest_files(self.path, MODEL_FILES))

    def replace_metrics(self, metrics: Json) -> None:
        """Write other means over the same users to metrics.json of a finished model."""
        self.write_metrics(metrics)
        self._replace_status(sha256=self.status()["sha256"] | digest_files(self.path, ["metrics.json"]))

    def replace_identity(self, identity: Identity) -> None:
        """Write another identity of a finished model, after settings changed on which its results do not depend."""
        self._replace_status(identity=identity.to_json())

    def write_depth(self, depth: int) -> None:
        """Write how many top items of a user the stored ranking of a finished model has."""
        self._replace_status(depth=depth)

    def _replace_status(self, **changes: Any) -> None:
        write_sealed_json(self.path / "status.json", "status", self.status() | changes)

    def check_identity(self, expected: Identity) -> None:
        """Check that these are results of this model and seed, of these settings and data; raises `InputError`.

        Results of earlier versions do not say what they are of.
        """
        stored = self.status().get("identity")
        if stored is not None and (differences := list(expected.differences(stored))):
            raise InputError(f"{self.path}: {'; '.join(differences)}; put it back, or {TRAIN_AGAIN} {expected.model!r}")

    def verify(self, names: Iterable[str] = MODEL_FILES) -> list[str]:
        """Check that files of a finished model are as they were written; returns the optional ones that are missing.

        Raises `InputError` if another file is missing, or any was changed.
        """
        pinned = self.status().get("sha256", {})
        missing = []
        for name in names:
            if name in pinned:
                if name in OPTIONAL_FILES and not os.path.lexists(self.path / name):
                    missing.append(name)
                else:
                    self.verified(name)
        return missing

    def read_metrics(self) -> Json:
        """Read metrics.json of a finished model."""
        path, data = self._read("metrics.json")
        return check_json(path, "metrics", parse_json(path, data))

    def read_per_user(self) -> pd.DataFrame:
        """Read per_user.parquet of a finished model."""
        path, data = self._read(PER_USER)
        return check_table(path, parse_parquet(path, data))

    def read_cases(self) -> pd.DataFrame:
        """Read the columns user and target of per_user.parquet."""
        with self.open_per_user() as columns:
            return columns.read_cases()

    @contextlib.contextmanager
    def open_per_user(self) -> Iterator[UserColumns]:
        """Open per_user.parquet of a finished model, to read some of its columns."""
        with self._open_verified(PER_USER) as (path, file), open_user_columns(path, file) as columns:
            yield columns

    @property
    def has_top_items(self) -> bool:
        """Whether the folder has the top items, which published folders may leave out."""
        return os.path.lexists(self.path / TOP_ITEMS)

    def read_top_items(self) -> pd.DataFrame:
        """Read top_items.parquet of a finished model."""
        with self.open_top_items() as top:
            return top.table.read().to_pandas()

    @contextlib.contextmanager
    def open_top_items(self) -> Iterator[TopItems]:
        """Open top_items.parquet of a finished model, to read it in parts."""
        with self._open_verified(TOP_ITEMS) as (path, file), open_top_items(path, file) as top:
            yield top

    def read_history(self) -> pd.DataFrame:
        """Read history.csv of a finished model; no rows for a counting model."""
        path, data = self._read("history.csv")
        return check_table(path, parse_csv(path, data))

    def verified(self, name: str) -> Path:
        """Return the path of a file of a finished model, after checking its sha256."""
        path = self._existing(name)
        self._check_digest(name, digest_file(path))
        return path

    def _read(self, name: str) -> tuple[Path, bytes]:
        """Return path and content of a file of a finished model, after checking the content's sha256."""
        path = self._existing(name)
        data = read_regular(path)
        self._check_digest(name, hashlib.sha256(data).hexdigest())
        return path, data

    @contextlib.contextmanager
    def _open_verified(self, name: str) -> Iterator[tuple[Path, BufferedReader]]:
        """Open a file of a finished model, after checking its sha256."""
        path = self._existing(name)
        with open_regular(path) as file:
            self._check_digest(name, digest_open_file(path, file))
            file.seek(0)
            yield path, file

    def _existing(self, name: str) -> Path:
        path = self.path / name
        refuse_link(path.parent)
        if not os.path.lexists(path):
            raise InputError(f"{path}: is missing; {TRAIN_AGAIN}")
        return path

    def _check_digest(self, name: str, received: str) -> None:
        if self.status().get("sha256", {}).get(name) != received:
            raise InputError(f"{self.path / name}: was changed after the run; {TRAIN_AGAIN}")


def digest_files(folder: Path, names: Iterable[str]) -> Json:
    """Return the sha256 of the files that exist, by name."""
    return {name: digest_file(folder / name) for name in names if (folder / name).exists()}
