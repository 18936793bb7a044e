"""Small results folders for the tests of comparisons."""

import numpy as np
import pandas as pd

from evaluation.analysis.comparison import Comparison, Rules, compare_models
from evaluation.results.load import load_runs
from evaluation.results.store import RunFolder
from evaluation.table import Entry
from tests.evaluation.made_runs import small_dataset

SETTINGS = {
    "dataset": {},
    "split": {},
    "evaluation": {"metrics": ["NDCG@10", "Recall@10"], "exclude_seen": True},
    "models": {"A_B & 50%": {}, "Best": {}, "Second": {}, "Never": {}, "Oracle": {"class": "Oracle"}},
    "columns": ["NDCG@10", "Recall@10"],
    "published": {"Best": {"NDCG@10": 0.3}},
    "literature": {"Quoted": {"NDCG@10": 0.99}},
}


def _trained(architecture, loss, **settings):
    return {"class": "Trained", "model": {"class": architecture}, "loss": {"class": loss, **settings}}


NUM_USERS = 400
MODELS = {
    "S1": _trained("SASRec", "BCE", num_negatives=1),
    "SA": _trained("SASRec", "Softmax"),
    "B1": _trained("BERT4Rec", "BCE", num_negatives=1),
    "BA": _trained("BERT4Rec", "Softmax"),
}
"""Every architecture with every loss."""
LEVELS = {"S1": 0.4, "SA": 0.5, "B1": 0.4, "BA": 0.6}
"""Mean of each model's values, between short histories (0.4) and long ones."""


def write_values(run, name, seed, ndcg, users=None):
    """Write a finished model whose metrics all have these per-user values."""
    users = np.arange(len(ndcg)) if users is None else users
    folder = run.model(name, seed)
    folder.write_per_user(pd.DataFrame({"user": users, "target": users, "NDCG@10": ndcg, "Recall@10": ndcg}))
    folder.finish(seconds_to_best=90.0)


def compare(*runs: RunFolder, metrics=(), **rules) -> Comparison:
    """Return the comparison of runs; keywords are those of `Rules`."""
    return compare_models(load_runs(runs, metrics), Rules(**rules))


def other_run(run, name, **changes):
    """Return a second run, with a worse model of the same name and another one; `changes` are of its dataset.json."""
    other = RunFolder(run.path.parent / name)
    other.write_recipe(b"", SETTINGS | {"models": {"Best": {}, "Other": {}}, "published": {}, "literature": {}})
    dataset = small_dataset()
    run.write_dataset(dataset)
    other.write_dataset(dataset | changes)
    values = run.model("Best", 1).read_per_user()
    write_values(other, "Best", 1, values["NDCG@10"].to_numpy() * 0.9)
    write_values(other, "Other", 1, values["NDCG@10"].to_numpy() * 0.8)
    return other


def texts(row):
    """Return the texts of a table row, marks included."""
    return [entry.text + entry.mark if isinstance(entry, Entry) else entry for entry in row]
