"""A run with rankings, for import and export."""

import numpy as np
import pandas as pd
import pytest

from aprec_like.metrics import MRR, NDCG, Recall
from evaluation.results.load import load_runs
from evaluation.results.store import RunFolder
from evaluation.results.trec import export_results

METRICS = (Recall(1), Recall(10), NDCG(10), MRR())
NUM_USERS, DEPTH, NUM_ITEMS = 300, 50, 200
SIZES = {"users": NUM_USERS, "items": NUM_ITEMS, "interactions": 3 * NUM_USERS, "sha256": "0"}


@pytest.fixture
def ranked_run(tmp_path):
    """Two models with rankings of 300 users, whose histories are two items each; targets are within the depth."""
    random = np.random.default_rng(0)
    run = RunFolder(tmp_path / "ours")
    names = [str(metric) for metric in METRICS]
    models = {"Good one": 10, "Bad": 40}
    settings = {
        "dataset": {},
        "evaluation": {"exclude_seen": True},
        "models": {name: {} for name in models},
        "columns": names,
    }
    run.write_recipe(b"", settings)
    users = np.array([f"u{number}" for number in range(NUM_USERS)], object)
    targets = random.integers(NUM_ITEMS, size=NUM_USERS)
    seen = (targets[:, None] + [1, 2]) % NUM_ITEMS
    run.write_items(pd.DataFrame({"item": np.arange(NUM_ITEMS), "count": 1}))
    run.write_histories(pd.DataFrame({"case": np.repeat(np.arange(NUM_USERS), 2), "item": seen.ravel()}))
    run.write_dataset(SIZES)
    for name, worst in models.items():
        ranks = random.integers(1, worst, size=NUM_USERS)
        others = np.delete(np.arange(NUM_ITEMS), [0, 1, 2])
        lists = np.stack([random.permutation((target + others) % NUM_ITEMS)[:DEPTH] for target in targets])
        lists[np.arange(NUM_USERS), ranks - 1] = targets
        scores = -np.sort(-random.random((NUM_USERS, DEPTH)).astype(np.float32), axis=1)
        folder = run.model(name, 1)
        per_user = {"user": users, "target": targets, "rank": ranks.astype(float)}
        per_user |= {str(metric): metric.per_user(ranks) for metric in METRICS}
        folder.write_per_user(pd.DataFrame(per_user))
        folder.write_top_items(
            pd.DataFrame(
                {
                    "user": np.repeat(users, DEPTH),
                    "position": np.tile(np.arange(1, DEPTH + 1, dtype=np.int32), NUM_USERS),
                    "item": lists.ravel(),
                    "score": scores.ravel(),
                }
            )
        )
        folder.finish(seconds_to_best=1.0)
    return run


@pytest.fixture
def exported(ranked_run, tmp_path):
    folder = tmp_path / "trec"
    export_results(load_runs([ranked_run]), folder)
    return folder
