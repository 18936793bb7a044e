"""Contents of a model's result files, from its rankings: per-user values, top items, means, training history."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import asdict

import numpy as np
import pandas as pd

from aprec_like.interactions import PADDING
from aprec_like.out_of_core import slices
from aprec_like.ranking import Rankings
from aprec_like.recipe import Evaluation, sampled_name
from aprec_like.splits import Split
from aprec_like.training.state import EpochRecord
from aprec_like.types import Json
from evaluation.analysis.significance import mean_interval

CHUNK_CASES = 1 << 15
"""Test users whose top items are tabulated at once."""


def tabulate_history(history: list[EpochRecord]) -> pd.DataFrame:
    """Return the content of history.csv: one row per epoch."""
    columns = list(EpochRecord.__dataclass_fields__)
    return pd.DataFrame([asdict(record) for record in history], columns=columns)


def tabulate_users(rankings: Rankings, split: Split, evaluation: Evaluation) -> pd.DataFrame:
    """Return the content of per_user.parquet: one row per test user, original ids, one column per metric."""
    test = split.test
    columns = {
        "user": test.known.user_ids[test.users],
        "target": test.known.item_ids[test.targets],
        "rank": rankings.ranks,
        "target_score": rankings.target_scores,
        "sigmoid_sum": rankings.sigmoid_sums,
        "logsumexp": rankings.logsumexps,
        "seen_sigmoid_sum": rankings.seen_sigmoid_sums,
        "seen_softmax_sum": rankings.seen_softmax_sums,
    }
    columns |= {str(metric): metric.per_user(rankings.ranks) for metric in evaluation.metrics}
    if (ranks := rankings.candidate_ranks) is not None:
        columns |= {"sampled_rank": ranks}
        columns |= {sampled_name(str(metric)): metric.per_user(ranks) for metric in evaluation.metrics}
    return pd.DataFrame(columns)


def tabulate_top_items(rankings: Rankings, split: Split) -> Iterator[pd.DataFrame]:
    """Yield the content of top_items.parquet: one row per test user and position, original ids."""
    known = split.test.known
    for cases in slices(len(split.test), CHUNK_CASES):
        items, scores = rankings.top_items[cases], rankings.top_scores[cases]
        row, column = np.nonzero(items != PADDING)
        yield pd.DataFrame(
            {
                "user": known.user_ids[split.test.users[cases][row]],
                "position": (column + 1).astype(np.int32),
                "item": known.item_ids[items[row, column]],
                "score": scores[row, column],
            }
        )


def summarise(per_user: pd.DataFrame, evaluation: Evaluation) -> Json:
    """Return the content of metrics.json: means with 95 % confidence intervals over users."""
    metrics = {name: asdict(mean_interval(per_user[name].to_numpy())) for name in evaluation.columns}
    return {"metrics": metrics, "users": len(per_user)}
