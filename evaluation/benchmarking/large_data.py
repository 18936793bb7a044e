"""Measures the way of a large log from Parquet files to batches and ranks: seconds and peak memory of every stage.

python -m evaluation.benchmarking.large_data /tmp/log --interactions 20000000

generates a log of string ids in no order, with 1 % duplicates (40 interactions per user, 200 per item), in a folder
where there is none, and prints one line per stage. Memory is the peak of the process in each stage, with and without
the pages of mapped files, which the system takes back when it needs memory; Linux alone tells it.

python -m evaluation.benchmarking.large_data /tmp/results --compare 3000000

writes results of two models with random ranks, and compares them.
"""

from __future__ import annotations

import argparse
import math
import re
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Self

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet
from typing_extensions import override

from aprec_like.metrics import NDCG, Recall
from aprec_like.out_of_core import slices
from aprec_like.splits import Split
from aprec_like.types import Array
from evaluation.cli import DONE, add_memory_option, import_tensorflow, run_command
from evaluation.results.store import RunFolder

NUM_FILES = 64
PER_USER, PER_ITEM = 40, 200
"""Mean numbers of interactions."""
DUPLICATE_SHARE = 0.01
FIRST_SECOND, LAST_SECOND = 1_600_000_000, 1_700_000_000
NUM_RANKED, NUM_STEPS = 10_000, 100
METRICS = (Recall(1), Recall(10), NDCG(10))
MODELS = ("first", "second")
NUM_ITEMS = 1_000_000
CHUNK_USERS = 1 << 20
PROCESS = Path("/proc/self")
SECONDS_BETWEEN_SAMPLES = 0.05


def main() -> int:
    """Generate the log if it does not exist, and measure every stage."""
    parser = argparse.ArgumentParser(prog="python -m evaluation.benchmarking.large_data", description=__doc__)
    parser.add_argument("folder", type=Path, metavar="FOLDER", help="folder of the Parquet files")
    parser.add_argument("--interactions", type=int, default=2_000_000, metavar="N", help="size of a new log")
    parser.add_argument("--train", action="store_true", help="also one epoch of 100 steps of gSASRec, and its ranking")
    text = "instead compare two models that ranked N users; FOLDER is their results folder"
    parser.add_argument("--compare", type=int, metavar="N", help=text)
    add_memory_option(parser)
    arguments = parser.parse_args()
    if arguments.compare:
        measure_compare(RunFolder(arguments.folder), arguments.compare)
        return DONE
    if not arguments.folder.exists():
        with stage("generate"):
            generate(arguments.folder, arguments.interactions)
    measure(arguments.folder, is_trained=arguments.train)
    return DONE


def generate(folder: Path, num_interactions: int) -> None:
    """Write a log as Parquet files; popular items and active users occur more often."""
    folder.mkdir(parents=True)
    random = np.random.default_rng(1)
    users, items = (
        pa.array(_ids(prefix, np.arange(num_interactions // count, dtype=np.uint64)))
        for prefix, count in (("u", PER_USER), ("i", PER_ITEM))
    )
    for number in range(NUM_FILES):
        rows = num_interactions // NUM_FILES
        user = (random.random(rows) ** 1.5 * len(users)).astype(np.int32)
        item = (random.random(rows) ** 3 * len(items)).astype(np.int32)
        times = random.integers(FIRST_SECOND, LAST_SECOND, rows)
        copied, copies = random.integers(rows, size=(2, int(rows * DUPLICATE_SHARE)))
        for column in (user, item, times):
            column[copies] = column[copied]
        table = pa.table({"user": users.take(pa.array(user)), "item": items.take(pa.array(item)), "time": times})
        pa.parquet.write_table(table, folder / f"part-{number:02d}.parquet")


def _ids(prefix: str, numbers: Array) -> list[str]:
    """Return ids of 17 characters that are not in the order of their numbers."""
    return [f"{prefix}{number:016x}" for number in (numbers * np.uint64(0x9E3779B97F4A7C15)).tolist()]


def measure(folder: Path, *, is_trained: bool) -> None:
    """Print seconds and peak memory of loading, filtering, splitting, counting, the first batch and ranking."""
    import_tensorflow()
    from aprec_like.batches import BatchSettings, ShiftedExamples, make_batches
    from aprec_like.datasets import ParquetFolder
    from aprec_like.datasets.cache import filter_cached
    from aprec_like.filters import KCore
    from aprec_like.models import Popularity
    from aprec_like.ranking import rank
    from aprec_like.splits import LeaveOneOut, sample_cases

    with stage("load"):
        loaded = ParquetFolder(str(folder.absolute()), user="user", item="item", timestamp="time").load(folder)
    print(f"{loaded.num_users:,} users, {loaded.num_items:,} items, {loaded.num_interactions:,} interactions")
    with stage("5-core"):
        kept = filter_cached(loaded, [KCore(5, 5)])
    with stage("leave-one-out"):
        split = sample_cases(LeaveOneOut(num_validation_users=512).split(kept), NUM_RANKED, seed=1)
    with stage("first batch"):
        batches = make_batches(split.train, ShiftedExamples(50), BatchSettings(128, NUM_STEPS), seed=1)
        next(iter(batches))
    with stage("Popularity"):
        scorer = Popularity().fit(split.train)
        rank(scorer, split.test, exclude_seen=True, depth=100)
    if is_trained:
        _measure_training(split)


def _measure_training(split: Split) -> None:
    from aprec_like.losses import GBCE
    from aprec_like.models import SASRec
    from aprec_like.negatives import Negatives
    from aprec_like.optimizers import Adam
    from aprec_like.ranking import rank
    from aprec_like.training import Trained, Training, train

    training = Training(
        max_steps_per_epoch=NUM_STEPS, max_epochs=1, early_stopping=None, optimizer=Adam(lazy=True), batch_size=128
    )
    model = SASRec(max_length=50, embedding_dim=32, num_blocks=1, num_heads=1)
    trained = Trained(model, GBCE(256, 0.75), training, Negatives(shared_by="batch"), prior_start=True)
    with stage(f"gSASRec, {NUM_STEPS} steps"):
        outcome = train(trained, split, seed=1)
    with stage(f"ranks of {len(split.test):,} users"):
        rank(outcome.scorer, split.test, exclude_seen=True, depth=100)


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


def write_results(run: RunFolder, num_users: int) -> None:
    """Write a results folder of two models with random ranks."""
    columns = [str(metric) for metric in METRICS]
    evaluation = {"class": "Evaluation", "metrics": columns, "exclude_seen": True, "depth": 0, "candidates": None}
    settings = {"models": {name: {"class": "Popularity"} for name in MODELS}, "columns": columns}
    run.write_recipe(b"", settings | {"evaluation": evaluation})
    for seed, name in enumerate(MODELS):
        folder = run.model(name, 1)
        folder.write_per_user(_tabulate_users(num_users, np.random.default_rng(seed)))
        folder.write_history(pd.DataFrame({"epoch": [], "validation": [], "seconds": []}))
        folder.write_metrics({"metrics": {}, "users": num_users})
        folder.finish(seconds_to_best=0.0)


def _tabulate_users(num_users: int, random: np.random.Generator) -> Iterator[pd.DataFrame]:
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


@contextmanager
def stage(name: str) -> Iterator[None]:
    """Print the name, seconds, processor seconds and peak memory of a block."""
    with (PROCESS / "clear_refs").open("w") as file:
        file.write("5")  # sets the peak to the present
    started, processor = time.monotonic(), time.process_time()
    with _SampledMemory() as own:
        yield
    seconds, used = time.monotonic() - started, time.process_time() - processor
    memory = f"peak {_gib('VmHWM'):.2f} GiB, without mapped files {own.peak:.2f} GiB"
    print(f"{name:<24} {seconds:8.1f} s {used:8.1f} s of processors, {memory}", flush=True)


class _SampledMemory(threading.Thread):
    """Peak of the memory that the system cannot take back from the process, sampled within a block, in GiB."""

    def __init__(self) -> None:
        super().__init__(daemon=True)
        self.peak = _gib("RssAnon")
        self._is_over = threading.Event()

    def __enter__(self) -> Self:
        self.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._is_over.set()
        self.join()

    @override
    def run(self) -> None:
        while not self._is_over.wait(SECONDS_BETWEEN_SAMPLES):
            self.peak = max(self.peak, _gib("RssAnon"))


def _gib(name: str) -> float:
    """Return a size of this process, as Linux reports it."""
    found = re.search(rf"{name}:\s+(\d+) kB", (PROCESS / "status").read_text())
    return int(found[1]) / 2**20 if found else math.nan


if __name__ == "__main__":
    sys.exit(run_command(main))
