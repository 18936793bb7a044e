"""Measures `compare` of models that ranked many users: seconds and peak memory of writing and of comparing results.

python -m evaluation.benchmarking.large_results /tmp/results --users 3000000

writes a results folder of two models with random ranks and string ids where there is none, then compares them.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pandas as pd

from aprec_like.metrics import NDCG, Recall
from aprec_like.out_of_core import slices
from aprec_like.types import Array
from evaluation.benchmarking.large_data import stage
from evaluation.cli import DONE, run_command
from evaluation.results.store import RunFolder

METRICS = (Recall(1), Recall(10), NDCG(10))
MODELS = ("first", "second")
NUM_ITEMS = 1_000_000
CHUNK_USERS = 1 << 20


def main() -> int:
    """Write the results if they do not exist, and compare the models."""
    parser = argparse.ArgumentParser(prog="python -m evaluation.benchmarking.large_results", description=__doc__)
    parser.add_argument("folder", type=Path, metavar="FOLDER", help="results folder")
    parser.add_argument("--users", type=int, default=3_000_000, metavar="N", help="test users of new results")
    arguments = parser.parse_args()
    if not arguments.folder.exists():
        with stage("write"):
            write_results(RunFolder(arguments.folder), arguments.users)
    from evaluation.analysis.comparison import compare_models
    from evaluation.results.load import load_runs

    with stage("load"):
        runs = load_runs([RunFolder(arguments.folder)])
    with stage("compare"):
        comparison = compare_models(runs)
    for row in comparison.rows:
        print(row.name, *(f"{name} {cell.value.mean:.6f}" for name, cell in row.cells.items()))
    return DONE


def write_results(run: RunFolder, num_users: int) -> None:
    """Write a results folder of two models with random ranks."""
    columns = [str(metric) for metric in METRICS]
    evaluation = {"class": "Evaluation", "metrics": columns, "exclude_seen": True, "depth": 0, "candidates": None}
    settings = {"models": {name: {"class": "Popularity"} for name in MODELS}, "columns": columns}
    run.write_recipe(b"", settings | {"evaluation": evaluation})
    for seed, name in enumerate(MODELS):
        folder = run.model(name, 1)
        folder.write_per_user(_tabulate(num_users, np.random.default_rng(seed)))
        folder.write_history(pd.DataFrame({"epoch": [], "validation": [], "seconds": []}))
        folder.write_metrics({"metrics": {}, "users": num_users})
        folder.finish(seconds_to_best=0.0)


def _tabulate(num_users: int, random: np.random.Generator) -> Iterator[pd.DataFrame]:
    """Yield the content of per_user.parquet, users and targets the same for all models."""
    for chunk in slices(num_users, CHUNK_USERS):
        users = np.arange(chunk.start, chunk.stop, dtype=np.uint64)
        ranks = np.ceil(NUM_ITEMS ** random.random(len(users)))
        yield pd.DataFrame(
            {
                "user": _ids("u", users),
                "target": _ids("i", users % np.uint64(NUM_ITEMS)),
                "rank": ranks,
                "target_score": random.random(len(users), np.float32),
                **{str(metric): metric.per_user(ranks) for metric in METRICS},
            }
        )


def _ids(prefix: str, numbers: Array) -> list[str]:
    return [f"{prefix}{number:016x}" for number in (numbers * np.uint64(0x9E3779B97F4A7C15)).tolist()]


if __name__ == "__main__":
    sys.exit(run_command(main))
