"""Measures the way of a large log from Parquet files to batches and ranks: seconds and peak memory of every stage.

python -m evaluation.benchmarking.large_data /tmp/log --interactions 20000000

generates a log of string ids in no order, with 1 % duplicates (40 interactions per user, 200 per item), in a folder
where there is none, and prints one line per stage. Memory is the peak of the process in each stage, with and without
the pages of mapped files, which the system takes back when it needs memory; Linux alone tells it.

python -m evaluation.benchmarking.large_data /tmp/results --compare 3000000

writes results of two models with random ranks, and compares them.

python -m evaluation.benchmarking.large_data /tmp/results --report 2000000

writes their top items as well, and the report.
"""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet

from aprec_like.splits import Split
from evaluation.benchmarking.large_results import make_ids, measure_compare, measure_report
from evaluation.cli import DONE, add_memory_option, import_tensorflow, run_command
from evaluation.results.store import RunFolder
from evaluation.tracking.stages import stage

NUM_FILES = 64
PER_USER, PER_ITEM = 40, 200
"""Mean numbers of interactions."""
DUPLICATE_SHARE = 0.01
FIRST_SECOND, LAST_SECOND = 1_600_000_000, 1_700_000_000
NUM_RANKED, NUM_STEPS = 10_000, 100


def main() -> int:
    """Generate the log if it does not exist, and measure every stage."""
    parser = argparse.ArgumentParser(prog="python -m evaluation.benchmarking.large_data", description=__doc__)
    parser.add_argument("folder", type=Path, metavar="FOLDER", help="folder of the Parquet files")
    parser.add_argument("--interactions", type=int, default=2_000_000, metavar="N", help="size of a new log")
    parser.add_argument("--train", action="store_true", help="also one epoch of 100 steps of gSASRec, and its ranking")
    text = "instead compare two models that ranked N users; FOLDER is their results folder"
    parser.add_argument("--compare", type=int, metavar="N", help=text)
    parser.add_argument("--report", type=int, metavar="N", help="the same with top items, and the report of them")
    add_memory_option(parser)
    arguments = parser.parse_args()
    if arguments.compare:
        measure_compare(RunFolder(arguments.folder), arguments.compare)
        return DONE
    if arguments.report:
        measure_report(RunFolder(arguments.folder), arguments.report)
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
        pa.array(make_ids(prefix, np.arange(num_interactions // count, dtype=np.uint64)))
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


if __name__ == "__main__":
    sys.exit(run_command(main))
