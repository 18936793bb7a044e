"""What every export has in common: its source in a results folder, its answers, and the check against `recommend`."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from rich.progress import Progress

from aprec_like.errors import InputError
from aprec_like.interactions import Histories, offsets_from_lengths
from aprec_like.types import Array
from evaluation.inference.recommendations import LoadedModel, predict, score_catalogue, top_items
from evaluation.results.load_split import load_split
from evaluation.results.store import RunFolder

NUM_CHECKED_USERS = 200
"""Test users whose recommendations an export must repeat."""
TOLERANCE = 1e-5
"""Largest error of a score, relative to scores above 1."""
CHECKED_USERS_AT_ONCE = 20


@dataclass(frozen=True, eq=False)
class ExportSource(LoadedModel):
    """A finished model of a run, to be exported.

    Args:
        k: number of items that are recommended unless a request says otherwise.
        histories: histories of test users, for the check.
    """

    k: int
    histories: Histories


@dataclass(frozen=True, eq=False)
class Answer:
    """What an exported model recommends to some users.

    Args:
        items: for each user (k,) item numbers.
        scores: for each user (k,) their scores.
        probabilities: for each user (k,) their probabilities; `None` if there are none.
    """

    items: Sequence[Array] | Array
    scores: Sequence[Array] | Array
    probabilities: Sequence[Array] | Array | None = None


Exported = Callable[[Sequence[Array]], Answer]
"""An exported model, loaded again: from histories of item numbers to its recommendations."""


def checked_histories(run: RunFolder, data_dir: Path) -> Histories:
    """Return the histories of up to `NUM_CHECKED_USERS` test users; from the data if the run stored none."""
    if run.has_histories:
        frame = run.read_histories()
        lengths = np.bincount(frame["case"].to_numpy())
        histories = Histories(frame["item"].to_numpy(), offsets_from_lengths(lengths))
    else:
        histories = load_split(run, data_dir).test.histories()
    chosen = np.unique(np.linspace(0, len(histories) - 1, NUM_CHECKED_USERS).astype(int))
    rows = [histories.items[histories.offsets[row] : histories.offsets[row + 1]] for row in chosen]
    return Histories(np.concatenate(rows), offsets_from_lengths(np.array([len(row) for row in rows])))


def check_export(source: ExportSource, exported: Exported, progress: Progress) -> int:
    """Compare an export with `recommend`, user by user; returns the number of users.

    The p-th recommended item must have the score of `recommend`'s p-th item in both models, so that only items of equal
    scores, within the tolerance, may change places. Raises `InputError` on a difference.
    """
    histories, task = source.histories, progress.add_task("checking against recommend", total=len(source.histories))
    rows = [histories.items[histories.offsets[row] : histories.offsets[row + 1]] for row in range(len(histories))]
    for first in range(0, len(rows), CHECKED_USERS_AT_ONCE):
        users = rows[first : first + CHECKED_USERS_AT_ONCE]
        answer = exported(users)
        for row, history in enumerate(users):
            probabilities = None if answer.probabilities is None else answer.probabilities[row]
            _check_user(source, history, answer.items[row], answer.scores[row], probabilities)
        progress.advance(task, len(users))
    return len(rows)


def _check_user(source: ExportSource, history: Array, items: Array, scores: Array, predicted: Array | None) -> None:
    all_scores = score_catalogue(source.scorer, history)
    expected = top_items(all_scores, history if source.exclude_seen else history[:0], source.k)
    items, scores = items[: len(expected)], scores[: len(expected)]
    wanted = all_scores[expected]
    errors = np.maximum(abs(scores - wanted), abs(all_scores[items] - wanted)) / np.maximum(1, abs(wanted))
    is_seen = source.exclude_seen and np.isin(items, history).any()
    if is_seen or len(np.unique(items)) < len(expected) or not errors.max(initial=0) <= TOLERANCE:
        raise InputError(
            f"the exported {source.model} recommends {_ids(source, items)} to a test user, `recommend` "
            f"{_ids(source, expected)} (largest error of a score {errors.max():.1g}); nothing was exported"
        )
    if predicted is not None and source.probability is not None:
        wanted = predict(source.probability, all_scores, items)
        if not abs(predicted[: len(items)] - wanted).max(initial=0) <= TOLERANCE:
            raise InputError(f"the exported {source.model} predicts other probabilities than `recommend`")


def _ids(source: ExportSource, items: Array) -> str:
    return ", ".join(str(item) for item in source.catalogue["item"].to_numpy()[items[:3]]) + ", ..."
