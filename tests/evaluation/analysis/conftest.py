"""Results folders that several tests of the analysis share."""

import numpy as np
import pandas as pd
import pytest

from evaluation.results.store import RunFolder
from tests.evaluation.analysis.small_runs import LEVELS, MODELS, NUM_USERS, SETTINGS, write_values
from tests.evaluation.made_runs import small_dataset


@pytest.fixture
def run(tmp_path):
    """Three models: the best, one as good but for noise, and one five times worse."""
    random = np.random.default_rng(0)
    run = RunFolder(tmp_path / "some_run")
    run.write_recipe(b"", SETTINGS)
    base = random.random(300)
    write_values(run, "A_B & 50%", 1, base * 0.2)
    write_values(run, "Best", 1, base)
    noise = random.normal(scale=0.5, size=300)
    write_values(run, "Second", 1, base + noise - noise.mean() - 0.001)
    return run


@pytest.fixture
def crossed_run(tmp_path):
    """Four models of two architectures and two losses; the better ones are better only for long histories."""
    random = np.random.default_rng(0)
    run = RunFolder(tmp_path / "crossed")
    published = {"SA": {"NDCG@10": 0.5}, "S1": {"NDCG@10": 0.41}, "B1": {"NDCG@10": 0.9}}
    settings = {"evaluation": {"exclude_seen": True}, "models": MODELS, "columns": ["NDCG@10"], "published": published}
    run.write_recipe(b"", settings)
    users = np.arange(NUM_USERS)
    lengths = np.repeat([5, 10, 50, 100], NUM_USERS // 4)
    noise = random.normal(scale=0.02, size=NUM_USERS)
    for name, level in LEVELS.items():
        values = np.where(lengths > 20, level + (level - 0.4), 0.4) + noise + random.normal(scale=0.01, size=NUM_USERS)
        folder = run.model(name, 1)
        folder.write_per_user(pd.DataFrame({"user": users, "target": users % 7, "NDCG@10": values}))
        top = pd.DataFrame({"user": np.repeat(users, 10), "position": np.tile(np.arange(1, 11), NUM_USERS)})
        folder.write_top_items(top.assign(item=top["position"] - 1, score=0.0))
        folder.finish(seconds_to_best=1.0)
    run.write_cases(pd.DataFrame({"user": users, "history_length": lengths, "target_count": np.arange(NUM_USERS)}))
    run.write_items(pd.DataFrame({"item": np.arange(40), "count": np.arange(40, 0, -1)}))
    run.write_dataset(small_dataset())
    return run
