"""An exported SavedModel, loaded: recommendations, reasons, and a search of its items."""

from __future__ import annotations

import csv
import threading
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
import tensorflow as tf

from aprec_like.errors import InputError, first_line
from aprec_like.types import Json
from evaluation.inference.export_model import DESCRIPTION, ITEMS
from evaluation.results.files import read_json

MAX_FOUND = 20
"""Items that a search returns."""
CALLS_AT_ONCE = 4
"""Model calls at the same time; further requests wait."""

ItemId = int | str


@dataclass(frozen=True, eq=False)
class ServedModel:
    """A SavedModel with what its folder says about it.

    Args:
        description: content of export.json.
        items: pairs of id and title; the title is empty if there is none.
        signatures: of the SavedModel.
    """

    description: Json
    items: Sequence[tuple[str, str]]
    signatures: Any

    def __post_init__(self) -> None:
        object.__setattr__(self, "_calls", threading.BoundedSemaphore(CALLS_AT_ONCE))

    @property
    def name(self) -> str:
        """Name of the model."""
        return str(self.description["model"])

    @property
    def has_numbers(self) -> bool:
        """Whether ids are numbers."""
        return isinstance(self.description["padding"], int)

    @property
    def num_items(self) -> int:
        """Size of the catalogue."""
        return len(self.items)

    def recommend(self, histories: Sequence[Sequence[ItemId]], k: int, exclude_seen: bool) -> list[Json]:
        """Return one object per history: `ids`, `scores` and what else the model gives, without padding."""
        items = self._tensor(histories)
        found = self._call("recommend", items=items, k=tf.constant(k), exclude_seen=tf.constant(exclude_seen))
        num_items = np.isfinite(found["scores"]).sum(axis=1)
        return [
            {
                name: _plain(values[row]) if values.ndim == 1 else [_plain(value) for value in values[row][:count]]
                for name, values in found.items()
            }
            for row, count in enumerate(num_items)
        ]

    def similarities(self, history: Sequence[ItemId], recommended: Sequence[ItemId]) -> list[list[float]]:
        """Return for each recommended item its cosines with the items of the history; empty if the model has none."""
        if "similarities" not in self.signatures:
            return []
        inputs = {"items": self._tensor([history]), "recommended": self._tensor([recommended])}
        found = self._call("similarities", **inputs)["similarities"][0]
        return [[float(value) for value in row] for row in found]

    def _call(self, signature: str, **inputs: Any) -> dict[str, Any]:
        with self._calls:  # type: ignore[attr-defined]
            return {name: value.numpy() for name, value in self.signatures[signature](**inputs).items()}

    def _tensor(self, histories: Sequence[Sequence[ItemId]]) -> Any:
        padding = self.description["padding"]
        length = max(1, max(map(len, histories), default=1))
        rows = [[padding] * (length - len(history)) + list(history) for history in histories]
        return tf.constant(rows, tf.int64 if self.has_numbers else tf.string)

    def search(self, text: str) -> list[Json]:
        """Return items whose id or title contains a text, exact ids first, then those that begin with it."""
        wanted = text.strip().casefold()
        if not wanted:
            return []
        found = [
            (identity.casefold() != wanted, not label.startswith(wanted), number)
            for number, (identity, label) in enumerate(self._labels)
            if wanted in label or identity.casefold() == wanted
        ]
        return [self.describe(number) for *_, number in sorted(found)[:MAX_FOUND]]

    def describe(self, number: int) -> Json:
        """Return id and title of an item."""
        identity, title = self.items[number]
        return {"id": int(identity) if self.has_numbers else identity, "title": title}

    @cached_property
    def _labels(self) -> list[tuple[str, str]]:
        return [(identity, (title or identity).casefold()) for identity, title in self.items]


def _plain(value: Any) -> Any:
    return value.decode("utf-8", "replace") if isinstance(value, bytes) else value.item()


def load_served_model(folder: Path) -> ServedModel:
    """Load a folder that `evaluation.export` wrote; raises `InputError` for anything else."""
    description = read_json(folder / DESCRIPTION)
    if description.get("format") != "saved_model":
        raise InputError(f"{folder}: is exported as {description.get('format')}; only a saved_model can be served")
    try:
        with (folder / ITEMS).open(encoding="utf-8", newline="") as file:
            items = [(row["item"], row.get("title") or "") for row in csv.DictReader(file)]
        signatures = tf.saved_model.load(str(folder)).signatures
    except (OSError, KeyError, UnicodeDecodeError, csv.Error, tf.errors.OpError) as error:
        raise InputError(f"{folder}: cannot be loaded: {first_line(error)}") from error
    missing = [name for name in ("model", "padding", "k", "exclude_seen") if name not in description]
    if missing or "recommend" not in signatures:
        raise InputError(f"{folder}: is not a model that this version exported")
    return ServedModel(description, items, signatures)
