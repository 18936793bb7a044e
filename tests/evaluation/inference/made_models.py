"""A results folder with models that need no training: random networks, and counts of a circle of items."""

import numpy as np
import pandas as pd

from aprec_like.datasets import CSVFile
from aprec_like.devices import prepare_devices
from aprec_like.losses import GBCE, Softmax
from aprec_like.models import BERT4Rec, GRU4Rec, MarkovChain, Popularity, SASRec
from aprec_like.ranking import NetworkScorer
from aprec_like.recipe import MFBPR, Recipe, Trained
from aprec_like.settings import describe
from aprec_like.splits import LeaveOneOut
from aprec_like.training import Training
from evaluation.results.store import RunFolder
from evaluation.running.data_description import describe_data, describe_items
from tests.conftest import circle_sequences

NAMES = np.array([f"item-{chr(97 + number)}" for number in range(20)])
TITLES = [f"Film {number // 2} ({1990 + number})" for number in range(20)]
MODELS = {
    "gSASRec": Trained(SASRec(max_length=8, embedding_dim=8), GBCE(4, 0.5), Training(), prior_start=True),
    "GRU4Rec": Trained(GRU4Rec(max_length=8, embedding_dim=8), Softmax(), Training()),
    "BERT4Rec": Trained(
        BERT4Rec(max_length=8, embedding_dim=8, feed_forward_dim=16, has_head=True), Softmax(), Training()
    ),
    "Popularity": Popularity(),
    "Markov": MarkovChain(),
    "MF": MFBPR(embedding_dim=4),
}


def make_models(folder):
    """Write a run with randomly initialised networks; returns folder, run, split and the scorers that were saved."""
    rows = [(user, NAMES[item]) for user, items in enumerate(circle_sequences(200)) for item in items]
    pd.DataFrame(rows, columns=["user", "item"]).to_csv(folder / "circle.csv", index=False)
    recipe = Recipe(CSVFile("circle.csv", user="user", item="item"), MODELS, split=LeaveOneOut(50))
    interactions = recipe.load(folder)
    split = recipe.split.split(interactions)
    run = RunFolder(folder / "circle")
    settings = describe(recipe) | {"columns": list(recipe.evaluation.columns)}
    run.write_recipe(b"raise SystemExit('the code of a results folder was run')", settings)
    run.write_items(describe_items(split).assign(title=TITLES))
    run.write_dataset(describe_data(recipe, interactions, split))
    prepare_devices()
    scorers = {name: model.fit(split.train) for name, model in MODELS.items() if not isinstance(model, Trained)}
    for name, model in MODELS.items():
        if isinstance(model, Trained):
            logit_bias = -1.5 if model.prior_start else None
            network = model.model.build(20, num_users=200, logit_bias=logit_bias)
            scorers[name] = NetworkScorer(network)
            run.model(name, 1).weights_path.parent.mkdir(parents=True)
            network.save_weights(run.model(name, 1).weights_path)
        run.model(name, 1).finish(seconds_to_best=0.0)
    return folder, run, split, scorers
