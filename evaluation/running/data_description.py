"""The description of a run's data: contents of dataset.json, cases, items and histories.parquet."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import asdict

import numpy as np
import pandas as pd

from aprec_like.filters import is_repeat
from aprec_like.interactions import Interactions
from aprec_like.out_of_core import slices, to_series
from aprec_like.recipe import Recipe
from aprec_like.settings import describe
from aprec_like.splits import FitOn, Split, TemporalSplit, leave_one_out_leakage
from aprec_like.types import Json
from evaluation.table_formats import escape_latex

SECONDS_PER_DAY = 86_400
CHUNK_CASES = 1 << 16
"""Test users whose histories are held at once."""


def describe_data(recipe: Recipe, interactions: Interactions, split: Split) -> Json:
    """Return the content of dataset.json: settings, sizes and digests, which identify the data exactly."""
    leakage = None if isinstance(recipe.split, TemporalSplit) else leave_one_out_leakage(interactions)
    return {
        "dataset": describe(recipe.dataset),
        "filters": describe(recipe.filters),
        "notes": list(recipe.dataset.notes),
        "users": interactions.num_users,
        "items": interactions.num_items,
        "interactions": interactions.num_interactions,
        "density": density(interactions),
        "validation_interactions": split.test.known.num_interactions - split.train.num_interactions,
        "sha256": interactions.digest(),
        "tied_share": interactions.tied_share(),
        "split": {
            "train_interactions": split.train.num_interactions,
            "validation_users": len(split.validation),
            "test_users": len(split.test),
            "digest": split.digest(),
            **_describe_sample(recipe, split),
        },
        "unreachable_targets": count_unreachable(split, recipe.fit_on, exclude_seen=recipe.evaluation.exclude_seen),
        **({"leakage": asdict(leakage)} if leakage else {}),
    }


def _describe_sample(recipe: Recipe, split: Split) -> Json:
    """Return the number of all test users and the seed, if a sample of them is ranked."""
    if split.sampled_from is None:
        return {}
    return {"sampled_from": split.sampled_from, "sample_seed": recipe.evaluation.seed}


def count_unreachable(split: Split, fit_on: FitOn, *, exclude_seen: bool) -> Json:
    """Count the test targets that no ranking can hit, and those that models have no chance to learn.

    Returns:
        `cold`: targets that never occur before the test. `seen`: targets in the user's history, if these are excluded.
        `unlearned`: other targets that occur in the validation part alone, if not all models learn from it.
    """
    test = split.test
    is_seen = np.zeros(len(test), bool)
    for cases in slices(len(test), CHUNK_CASES) if exclude_seen else ():
        histories, targets = test.histories(cases), test.targets[cases]
        rows = histories.rows
        is_seen[cases.start + rows[histories.items == targets[rows]]] = True
    counts = {"cold": int(np.count_nonzero(~test.is_learnable())), "seen": int(np.count_nonzero(is_seen))}
    if fit_on == "train+validation":
        return counts
    is_unlearned = test.is_learnable() & (split.train.item_counts()[test.targets] == 0) & ~is_seen
    return counts | {"unlearned": int(np.count_nonzero(is_unlearned))}


def describe_cases(split: Split) -> pd.DataFrame:
    """Return one row per test user, in the order of per_user.parquet: ids, history length and target frequency.

    With timestamps also the user's activity: interactions per day of the history.
    """
    known, users, targets = split.test.known, split.test.users, split.test.targets
    lengths = known.lengths[users]
    columns = {
        "user": to_series(known.user_ids[users]),
        "target": to_series(known.item_ids[targets]),
        "history_length": lengths,
        "target_count": known.item_counts()[targets],
    }
    if known.timestamps is not None:
        spans = known.timestamps[known.offsets[1:][users] - 1] - known.timestamps[known.offsets[:-1][users]]
        columns["activity"] = lengths / np.maximum(1, spans / SECONDS_PER_DAY)
    return pd.DataFrame(columns)


def describe_items(split: Split) -> pd.DataFrame:
    """Return one row per item: id, numbers of interactions before the test and in training, columns of the dataset."""
    known = split.test.known
    counts = {"count": known.item_counts(), "train_count": split.train.item_counts()}
    described = {name: to_series(column) for name, column in known.item_columns.items()}
    return pd.DataFrame({"item": to_series(known.item_ids), **counts, **described})


def describe_histories(split: Split) -> Iterator[pd.DataFrame]:
    """Yield one row per known interaction of a test user, oldest first: its row in cases, its item's row in items."""
    for cases in slices(len(split.test), CHUNK_CASES):
        histories = split.test.histories(cases)
        rows = (cases.start + histories.rows).astype(np.int32)
        yield pd.DataFrame({"case": rows, "item": histories.items.astype(np.int32)})


def latex_row(title: str, interactions: Interactions) -> str:
    """Return a row of a LaTeX table of datasets: name, users, items, interactions, mean length, density."""
    users, items, count = interactions.num_users, interactions.num_items, interactions.num_interactions
    share = f"{density(interactions):.4%}".replace("%", r"\%")
    return rf"{escape_latex(title)} & {users:,} & {items:,} & {count:,} & {count / users:.1f} & {share} \\"


def density(interactions: Interactions) -> float:
    """Return the share of pairs of a user and an item that occur, however often."""
    num_pairs = interactions.num_interactions - int(is_repeat(interactions).sum())
    return num_pairs / (interactions.num_users * interactions.num_items)
