"""Contents of a model's result files, from its rankings: per-user values, top items, means, training history."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import asdict

import numpy as np
import pandas as pd

from aprec_like.interactions import PADDING
from aprec_like.out_of_core import slices, to_series
from aprec_like.ranking import Rankings
from aprec_like.recipe import Evaluation, sampled_name
from aprec_like.splits import Split
from aprec_like.training.state import EpochRecord
from aprec_like.types import Array, Json
from evaluation.analysis.significance import mean_interval

CHUNK_CASES = 1 << 15
"""Test users whose top items are tabulated at once."""
ROW_GROUP_CASES = 1 << 20
"""Test users whose values are tabulated at once; the rows of a row group of Parquet."""


def tabulate_history(history: list[EpochRecord]) -> pd.DataFrame:
    """Return the content of history.csv: one row per epoch."""
    columns = list(EpochRecord.__dataclass_fields__)
    return pd.DataFrame([asdict(record) for record in history], columns=columns)


def tabulate_users(rankings: Rankings, split: Split, evaluation: Evaluation) -> Iterator[pd.DataFrame]:
    """Yield the content of per_user.parquet: one row per test user, original ids, one column per metric."""
    test = split.test
    for cases in slices(len(test), ROW_GROUP_CASES):
        yield pd.DataFrame(
            {
                "user": to_series(test.known.user_ids[test.users[cases]]),
                "target": to_series(test.known.item_ids[test.targets[cases]]),
                "rank": rankings.ranks[cases],
                "target_score": rankings.target_scores[cases],
                "sigmoid_sum": rankings.sigmoid_sums[cases],
                "logsumexp": rankings.logsumexps[cases],
                "seen_sigmoid_sum": rankings.seen_sigmoid_sums[cases],
                "seen_softmax_sum": rankings.seen_softmax_sums[cases],
                **metric_columns(rankings, evaluation, cases),
            }
        )


def tabulate_top_items(rankings: Rankings, split: Split) -> Iterator[pd.DataFrame]:
    """Yield the content of top_items.parquet: one row per test user and position, original ids."""
    known = split.test.known
    for cases in slices(len(split.test), CHUNK_CASES):
        items, scores = rankings.top_items[cases], rankings.top_scores[cases]
        row, column = np.nonzero(items != PADDING)
        yield pd.DataFrame(
            {
                "user": to_series(known.user_ids[split.test.users[cases][row]]),
                "position": (column + 1).astype(np.int32),
                "item": to_series(known.item_ids[items[row, column]]),
                "score": scores[row, column],
            }
        )


def metric_columns(rankings: Rankings, evaluation: Evaluation, cases: slice = slice(None)) -> dict[str, Array]:
    """Return the values of all metrics for some cases, by default for all, and the rank among sampled candidates."""
    columns = {str(metric): metric.per_user(rankings.ranks[cases]) for metric in evaluation.metrics}
    if rankings.candidate_ranks is not None:
        columns["sampled_rank"] = ranks = rankings.candidate_ranks[cases]
        columns |= {sampled_name(str(metric)): metric.per_user(ranks) for metric in evaluation.metrics}
    return columns


def summarise(values: Mapping[str, Array], evaluation: Evaluation) -> Json:
    """Return the content of metrics.json: means with 95 % confidence intervals over users.

    Args:
        values: (users,) values by metric.
        evaluation: settings that name the metrics.
    """
    metrics = {name: asdict(mean_interval(values[name])) for name in evaluation.columns}
    return {"metrics": metrics, "users": len(values[evaluation.columns[0]])}
