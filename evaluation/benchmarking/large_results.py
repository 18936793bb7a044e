"""Measures comparisons and reports of results of millions of users, which are made up."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import pandas as pd
import pyarrow as pa

from aprec_like.metrics import NDCG, Recall
from aprec_like.out_of_core import slices
from aprec_like.settings import describe
from aprec_like.types import Array, Json
from evaluation.results.store import RunFolder
from evaluation.tracking.stages import stage

DATASET = {"class": "ParquetFolder", "path": "log"}
METRICS = (Recall(1), Recall(10), NDCG(10))
MODELS = ("first", "second")
NUM_ITEMS = 1_000_000
DEPTH = 20
CHUNK_USERS, CHUNK_LISTS = 1 << 20, 1 << 15
"""Users whose values, and whose top items, are made at once."""


def measure_compare(run: RunFolder, num_users: int) -> None:
    """Print seconds and peak memory of comparing two models over many users, whose results are written if need be."""
    from evaluation.analysis.comparison import compare_models
    from evaluation.results.load import load_runs

    if not run.path.exists():
        with stage("write"):
            write_results(run, num_users)
    with stage("load"):
        runs = load_runs([run])
    with stage("compare"):
        comparison = compare_models(runs)
    for row in comparison.rows:
        print(row.name, *(f"{name} {cell.value.mean:.6f}" for name, cell in row.cells.items()))


def measure_report(run: RunFolder, num_users: int) -> None:
    """Print seconds and peak memory of the report of two models over many users, written if need be."""
    from evaluation.page.build import ReportOptions, write_report

    if not run.path.exists():
        with stage("write"):
            write_results(run, num_users, has_top_items=True)
    with stage("report"):
        write_report(ReportOptions(run.path, user=None, truth=False))


def write_results(run: RunFolder, num_users: int, *, has_top_items: bool = False) -> None:
    """Write a results folder of two models with random ranks, and with random top items and what belongs to them."""
    columns = [str(metric) for metric in METRICS]
    depth = DEPTH if has_top_items else 0
    evaluation = {"class": "Evaluation", "metrics": columns, "exclude_seen": True, "depth": depth, "candidates": None}
    settings = {"models": {name: _describe_model(has_top_items) for name in MODELS}, "columns": columns}
    run.write_recipe(b"", settings | {"evaluation": evaluation, "dataset": DATASET})
    if has_top_items:
        _write_data(run, num_users)
    for seed, name in enumerate(MODELS):
        folder = run.model(name, 1)
        folder.write_per_user(_tabulate_users(num_users, np.random.default_rng(seed)))
        if has_top_items:
            folder.write_top_items(_tabulate_top_items(num_users, np.random.default_rng(seed)))
        folder.write_history(pd.DataFrame({"epoch": [], "validation": [], "seconds": []}))
        folder.write_metrics({"metrics": {}, "users": num_users})
        folder.finish(seconds_to_best=0.0)


def _describe_model(has_top_items: bool) -> Json:
    """Return the settings of a model whose scores are probabilities, or of one that counts."""
    if not has_top_items:
        return {"class": "Popularity"}
    from aprec_like.losses import BCE
    from aprec_like.models import SASRec
    from aprec_like.training import Trained, Training

    description: Json = describe(Trained(SASRec(), BCE(1), Training()))
    return description


def _write_data(run: RunFolder, num_users: int) -> None:
    """Write the descriptions of items and test users."""
    users, items = np.arange(num_users, dtype=np.uint64), np.arange(NUM_ITEMS, dtype=np.uint64)
    run.write_cases(
        pd.DataFrame({"user": make_ids("u", users), "history_length": users % 50 + 2, "target_count": users % 99})
    )
    run.write_items(pd.DataFrame({"item": make_ids("i", items), "count": items[::-1] % 10_000}))
    run.write_environment({"aprec_like": "", "python": "", "packages": {}, "processor": ""})
    split = {"train_interactions": 0, "validation_users": 0, "test_users": num_users, "digest": "0"}
    sizes = {"users": num_users, "items": NUM_ITEMS, "interactions": 0, "tied_share": 0.0, "sha256": "0"}
    run.write_dataset({"dataset": DATASET, "filters": [], "split": split, **sizes})


def _tabulate_users(num_users: int, random: np.random.Generator) -> Iterator[pd.DataFrame]:
    """Yield the content of per_user.parquet, users and targets the same for all models."""
    for chunk in slices(num_users, CHUNK_USERS):
        users = np.arange(chunk.start, chunk.stop, dtype=np.uint64)
        ranks = np.ceil(NUM_ITEMS ** random.random(len(users)))
        yield pd.DataFrame(
            {
                "user": make_ids("u", users),
                "target": make_ids("i", users % np.uint64(NUM_ITEMS)),
                "rank": ranks,
                "target_score": random.random(len(users), np.float32),
                "sigmoid_sum": random.random(len(users), np.float32) * 100,
                "logsumexp": random.random(len(users), np.float32) + 10,
                **{str(metric): metric.per_user(ranks) for metric in METRICS},
            }
        )


def _tabulate_top_items(num_users: int, random: np.random.Generator) -> Iterator[pd.DataFrame]:
    """Yield the content of top_items.parquet, popular items more often."""
    items = pa.array(make_ids("i", np.arange(NUM_ITEMS, dtype=np.uint64)))
    for chunk in slices(num_users, CHUNK_LISTS):
        users = np.arange(chunk.start, chunk.stop, dtype=np.uint64)
        rows = np.repeat(np.arange(len(users)), DEPTH)
        scores = -np.sort(-random.normal(size=(len(users), DEPTH)).astype(np.float32), axis=1)
        chosen = (random.random(len(rows)) ** 3 * NUM_ITEMS).astype(np.int64)
        yield pd.DataFrame(
            {
                "user": pa.array(make_ids("u", users)).take(pa.array(rows)).to_pandas(),
                "position": np.tile(np.arange(1, DEPTH + 1, dtype=np.int32), len(users)),
                "item": items.take(pa.array(chosen)).to_pandas(),
                "score": scores.ravel(),
            }
        )


def make_ids(prefix: str, numbers: Array) -> list[str]:
    """Return ids of 17 characters that are not in the order of their numbers."""
    return [f"{prefix}{number:016x}" for number in (numbers * np.uint64(0x9E3779B97F4A7C15)).tolist()]
