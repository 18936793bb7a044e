"""Folders of a study: its definition, the journal of its trials, and a small folder for each trial."""

from __future__ import annotations

import json
import os
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pandas as pd

from aprec_like.errors import InputError
from aprec_like.files import read_regular, refuse_link, refuse_links, remove_folder
from aprec_like.types import Json
from evaluation.results.files import parse_csv, read_sealed_json, write_bytes, write_sealed_json, write_text
from evaluation.results.json_checks import Check, count, fields, list_of, name, number, or_none, settings, text
from evaluation.results.schemas import check_table
from evaluation.results.store import encode_name

STUDY: Check = fields(
    {
        "model": name,
        "settings": settings,
        "space": settings,
        "data": text,
        "split": text,
        "metric": name,
        "seeds": list_of(count),
        "seed": count,
    }
)
TRIAL_STATES = ("complete", "pruned", "failed")


def _trial_state(value: Any, place: str) -> None:
    if value not in TRIAL_STATES:
        raise ValueError(f"{place} must be one of {', '.join(TRIAL_STATES)}. Received: {value!r}")


TRIAL: Check = fields(
    {"state": _trial_state, "epochs": count, "seconds": number},
    {"value": or_none(number), "values": list_of(number), "best_epoch": or_none(count), "reason": text},
)


def _read(path: Path, kind: str, check: Check) -> Json:
    value = read_sealed_json(path, kind)
    try:
        check(value, "")
    except ValueError as error:
        raise InputError(f"{path}: is damaged, or of another version: {error}") from error
    return value


@dataclass(frozen=True)
class TrialFolder:
    """Folder of a trial, or of a further training of the best trial: its log, curve and result."""

    path: Path

    @property
    def name(self) -> str:
        """Name of the folder."""
        return self.path.name

    @property
    def lock_path(self) -> Path:
        """Lock file, held by the command that runs the trial."""
        return self.path / ".lock"

    @property
    def writer_lock_path(self) -> Path:
        """Lock file, held by the process that trains and writes to the folder."""
        return self.path / ".writer-lock"

    @property
    def log_path(self) -> Path:
        """Log file."""
        return self.path / "log.txt"

    def checkpoint_path(self, seed: int) -> Path:
        """Folder of the checkpoints of a training, which is removed at its end."""
        return self.path / "checkpoint" / f"seed_{seed}"

    def remove_checkpoints(self) -> None:
        """Remove the checkpoints of all trainings."""
        remove_folder(self.path / "checkpoint")

    @property
    def is_finished(self) -> bool:
        """Whether the trial has a result."""
        return os.path.lexists(self.path / "trial.json")

    def result(self) -> Json:
        """Read trial.json: state, value, epochs, seconds."""
        return _read(self.path / "trial.json", "trial", TRIAL)

    def write_result(self, state: str, **details: Any) -> None:
        """Write trial.json, the last file of a trial."""
        write_sealed_json(self.path / "trial.json", "trial", {"state": state, **details})

    def write_curve(self, curve: pd.DataFrame) -> None:
        """Write history.csv: one row per seed and epoch."""
        write_text(self.path / "history.csv", curve.to_csv(index=False, lineterminator="\n"))

    def read_curve(self) -> pd.DataFrame:
        """Read history.csv; no rows for a trial that failed before its first epoch."""
        path = self.path / "history.csv"
        if not os.path.lexists(path):
            return pd.DataFrame({"seed": [], "epoch": [], "validation": [], "seconds": []})
        return check_table(path, parse_csv(path, read_regular(path)))


@dataclass(frozen=True)
class StudyFolder:
    """Folder of the study of one model."""

    path: Path

    @property
    def lock_path(self) -> Path:
        """Lock file, held while a trial is chosen."""
        return self.path / ".lock"

    @property
    def journal_path(self) -> Path:
        """Optuna's journal of the trials."""
        return self.path / "journal.jsonl"

    @property
    def exists(self) -> bool:
        """Whether a study was started."""
        return os.path.lexists(self.path / "study.json")

    def read_definition(self) -> Json:
        """Read study.json: what the trials have in common."""
        return _read(self.path / "study.json", "study", STUDY)

    def write_definition(self, definition: Json) -> None:
        """Write study.json."""
        write_sealed_json(self.path / "study.json", "study", definition)

    def trial(self, number: int) -> TrialFolder:
        """Return the folder of a trial."""
        return self._trial_folder(f"trial_{number:04}")

    def winner(self, number: int, seed: int) -> TrialFolder:
        """Return the folder of a further training of a trial's settings with another seed."""
        return self._trial_folder(f"winner_{number:04}_seed_{seed}")

    def _trial_folder(self, folder: str) -> TrialFolder:
        refuse_link(self.path / folder)
        return TrialFolder(self.path / folder)

    def trial_folders(self) -> Iterator[TrialFolder]:
        """Yield the folders of all trials and further trainings."""
        for path in sorted([*self.path.glob("trial_*"), *self.path.glob("winner_*")]):
            yield self._trial_folder(path.name)

    def remove(self) -> None:
        """Remove the study with all its trials."""
        remove_folder(self.path)


@dataclass(frozen=True)
class TuningFolder:
    """Results folder of the studies of a recipe's models."""

    path: Path

    def study(self, model: str) -> StudyFolder:
        """Return the folder of a model's study; raises `InputError` for links."""
        folder = StudyFolder(self.path / encode_name(model))
        refuse_link(self.path)
        refuse_link(folder.path)
        return folder

    def check(self) -> None:
        """Raise `InputError` if the folder holds a link."""
        refuse_links(self.path)

    @property
    def figures_path(self) -> Path:
        """Folder of figures."""
        return self.path / "figures"

    @property
    def page_path(self) -> Path:
        """HTML page of the studies."""
        return self.path / "report.html"

    def tuned_recipe_path(self, stem: str) -> Path:
        """Recipe with the best settings."""
        return self.path / f"{stem}_tuned.py"

    def write_page(self, page: str) -> None:
        """Write the HTML page."""
        write_text(self.page_path, page)

    def write_trials(self, table: str) -> Path:
        """Write trials.csv, one line per trial of every model; returns its path."""
        write_text(self.path / "trials.csv", table)
        return self.path / "trials.csv"

    def write_summary(self, summary: Json) -> None:
        """Write summary.json: unrounded numbers of every study."""
        write_text(self.path / "summary.json", json.dumps(summary, indent=2, ensure_ascii=False) + "\n")

    def write_recipe(self, path: Path, source: str) -> None:
        """Write the recipe with the best settings."""
        write_bytes(path, source.encode())
