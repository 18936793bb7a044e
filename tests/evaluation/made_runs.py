"""Small results folders with made-up values, complete enough for every figure and for the page."""

import numpy as np
import pandas as pd

from aprec_like.losses import BCE, GBCE, SampledSoftmax, Softmax
from aprec_like.models import BERT4Rec, Popularity, SASRec
from aprec_like.recipe import Trained
from aprec_like.settings import describe
from aprec_like.training import Training
from evaluation.results.store import RunFolder

NUM_USERS, NUM_ITEMS, DEPTH = 300, 50, 20
COLUMNS = ["Recall@1", "NDCG@10"]


def trained(loss, architecture=None):
    """Return the settings of a trained model as recipe.json has them."""
    return describe(Trained(architecture or SASRec(), loss, Training()))


MIXED = {
    "Popularity": describe(Popularity()),
    "SASRec": trained(BCE(1)),
    "SASRec-Softmax": trained(Softmax()),
    "gSASRec <t> & $k$": trained(GBCE(num_negatives=4, calibration=0.75)),
    "SSM": trained(SampledSoftmax(4)),
}
GRID = {f"k={k}, t={t:g}": trained(GBCE(num_negatives=k, calibration=t)) for k in (1, 4, 16) for t in (0.0, 0.5, 1.0)}
LOSSES = {
    f"{type(architecture).__name__} {type(loss).__name__} {loss.num_negatives}": trained(loss, architecture)
    for architecture in (SASRec(), BERT4Rec())
    for k in (1, 4, 16)
    for loss in (BCE(k), GBCE(k, calibration=1.0), SampledSoftmax(k))
}


def small_dataset(**changes):
    """Return the content of dataset.json, with changes."""
    split = {"train_interactions": 4_000, "validation_users": 64, "test_users": NUM_USERS, "digest": "1" * 64}
    sizes = {"users": NUM_USERS, "items": NUM_ITEMS, "interactions": 5_000}
    return {"dataset": {}, "filters": [], **sizes, "sha256": "0" * 64, "tied_share": 0.25, "split": split} | changes


def make_run(path, models=None, **settings):
    """Write a run whose later models are better; networks have a history of five epochs, the fourth being the best.

    Args:
        path: results folder.
        models: settings of models by name; `MIXED` by default.
        settings: other entries of recipe.json.
    """
    models = MIXED if models is None else models
    run = RunFolder(path)
    random = np.random.default_rng(0)
    users = np.arange(1, NUM_USERS + 1)
    evaluation = {"class": "Evaluation", "metrics": COLUMNS, "exclude_seen": True, "depth": DEPTH, "candidates": None}
    recipe = {
        "class": "Recipe",
        "dataset": {"class": "TextFile", "path": "made.txt", "num_items": None},
        "filters": [],
        "split": {"class": "LeaveOneOut", "num_validation_users": 64, "seed": 1},
        "evaluation": evaluation,
        "models": models,
        "columns": COLUMNS,
        "groups": {},
        "seeds": [1],
        "published": {},
        "literature": {},
    }
    run.write_recipe(b"", recipe | settings)
    run.write_environment({"aprec_like": "0", "python": "3.11", "packages": {"numpy": "2"}, "processor": "<fast>"})
    run.write_cases(pd.DataFrame({"user": users, "history_length": users % 30 + 2, "target_count": users % 40}))
    titles = [f"Title {item} <b>" for item in range(NUM_ITEMS)]
    run.write_items(pd.DataFrame({"item": np.arange(NUM_ITEMS), "count": np.arange(NUM_ITEMS) ** 2, "title": titles}))
    run.write_dataset(small_dataset(dataset=recipe["dataset"], notes=["a <note>"]))
    base = random.random(NUM_USERS)
    for index, (name, model) in enumerate(models.items()):
        write_model(run, name, model, base ** (3 / (1 + index)), random)
    return run


def write_model(run, name, settings, quality, random, seed=1):
    """Write a finished model; `quality`, (users,) between 0 and 1, decides the ranks, best first."""
    folder = run.model(name, seed)
    is_network = settings["class"] == "Trained"
    ranks = 1 + np.floor((1 - quality) * 25)
    scores = -np.sort(random.normal(scale=2, size=(NUM_USERS, NUM_ITEMS)) + 3)
    sigmoid_sums = (1 / (1 + np.exp(-scores))).sum(axis=1)
    folder.write_per_user(
        pd.DataFrame(
            {"user": np.arange(1, NUM_USERS + 1), "target": np.arange(NUM_USERS) % NUM_ITEMS, "rank": ranks,
             "target_score": scores[:, 0], "sigmoid_sum": sigmoid_sums,
             "logsumexp": np.log(np.exp(scores).sum(axis=1)), "seen_sigmoid_sum": sigmoid_sums / 2,
             "seen_softmax_sum": np.full(NUM_USERS, 0.25), "Recall@1": (ranks <= 1) * 1.0,
             "NDCG@10": np.where(ranks <= 10, 1 / np.log2(ranks + 1), 0)}
        )
    )  # fmt: skip
    items = (np.arange(NUM_USERS)[:, None] - ranks[:, None].astype(int) + 1 + np.arange(DEPTH)) % NUM_ITEMS
    folder.write_top_items(
        pd.DataFrame(
            {"user": np.repeat(np.arange(1, NUM_USERS + 1), DEPTH),
             "position": np.tile(np.arange(1, DEPTH + 1), NUM_USERS),
             "item": items.ravel(), "score": scores[:, :DEPTH].ravel()}
        )
    )  # fmt: skip
    epochs = np.arange(1, 6) if is_network else np.arange(0)
    values = 0.1 + 0.02 * epochs - 0.05 * (epochs == 5)
    history = {"epoch": epochs, "loss": 1 / (1 + epochs), "validation": values, "is_best": epochs < 5}
    folder.write_history(pd.DataFrame(history | {"seconds": 30.0 * epochs}))
    folder.write_metrics({"metrics": {}, "users": NUM_USERS})
    training = {"best_epoch": 4, "best_validation": 0.18, "epochs": 5, "stopped_by": "max_epochs"}
    folder.finish(
        seconds_to_best=120.0 * is_network, seconds_total=160.0, peak_memory_gib=1.5, devices=["CPU"],
        **(training if is_network else {}),
    )  # fmt: skip
