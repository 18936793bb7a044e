"""Models of a recipe learn from the interactions that `fit_on` names, all from the same unless it says otherwise."""

import math
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from aprec_like.datasets import TextFile
from aprec_like.losses import Softmax
from aprec_like.models import Popularity, SASRec
from aprec_like.optimizers import Adam
from aprec_like.recipe import MFBPR, Recipe, Trained
from aprec_like.splits import LeaveOneOut
from aprec_like.training import EarlyStopping, Training, train
from evaluation.results.store import RunFolder
from evaluation.running.fit_model import ModelRun, fit_model

TRAINING = Training(batch_size=64, max_epochs=3, early_stopping=EarlyStopping(patience=1), optimizer=Adam(0.01))
MODELS = {
    "Popularity": Popularity(),
    "MF-BPR": MFBPR(embedding_dim=4, epochs=1),
    "SASRec": Trained(SASRec(max_length=8, embedding_dim=8, num_blocks=1), Softmax(), TRAINING),
}
EVERYONE = LeaveOneOut(num_validation_users=None)


class Silence:
    """A display that keeps its lines."""

    def __init__(self):
        self.lines, self.max_epochs = [], 0

    print_line = property(lambda self: self.lines.append)

    def on_step(self, progress): ...

    def on_epoch(self, record): ...


@pytest.fixture
def fit(circle, circle_file):
    """Return a function that fits a model of a recipe with a given `fit_on`."""

    def fit(name, fit_on):
        recipe = Recipe(TextFile(circle_file.name), MODELS, split=EVERYONE, fit_on=fit_on)
        folder = RunFolder(circle_file.parent / fit_on).model(name, 1)
        run = ModelRun(recipe, name, 1, Path(), folder, math.inf)
        return fit_model(run, circle, EVERYONE.split(circle), Silence(), lambda: False)

    return fit


def weights(scorer):
    return [np.asarray(weight) for weight in scorer.network.weights]


@pytest.mark.parametrize(("fit_on", "num_left_out"), [("train", 2), ("train+validation", 1), ("mixed", 1)])
def test_popularity_counts_what_the_recipe_names(fit, circle, fit_on, num_left_out):
    counts = np.zeros(circle.num_items)
    for start, end in zip(circle.offsets[:-1], circle.offsets[1:], strict=True):
        np.add.at(counts, circle.items[start : end - num_left_out], 1)
    assert fit("Popularity", fit_on).scorer.counts.tolist() == counts.tolist()


@pytest.mark.parametrize(("fit_on", "part"), [("train", "train"), ("train+validation", "both"), ("mixed", "both")])
def test_a_network_without_validation_learns_what_the_recipe_names(fit, circle, fit_on, part):
    split = EVERYONE.split(circle)
    plain = replace(MODELS["MF-BPR"].training, learns_validation_targets=False)
    data = split if part == "train" else replace(split, train=split.test.known)
    expected = train(replace(MODELS["MF-BPR"], training=plain), data, seed=1)
    for ours, theirs in zip(weights(fit("MF-BPR", fit_on).scorer), weights(expected.scorer), strict=True):
        np.testing.assert_array_equal(ours, theirs)


def test_a_network_is_refitted_on_both_parts_for_the_epochs_that_validation_chose(fit, circle):
    split = EVERYONE.split(circle)
    chosen = train(MODELS["SASRec"], split, seed=1)
    refit = fit("SASRec", "train+validation")
    assert [(row.epoch, row.validation) for row in refit.history] == [(r.epoch, r.validation) for r in chosen.history]
    assert refit.status["best_epoch"] == chosen.best.epoch and refit.status["refit_seconds"] > 0
    fixed = replace(TRAINING, early_stopping=None, max_epochs=chosen.best.epoch)
    both = replace(split, train=split.test.known)
    expected = train(replace(MODELS["SASRec"], training=fixed), both, seed=1)
    for ours, theirs in zip(weights(refit.scorer), weights(expected.scorer), strict=True):
        np.testing.assert_array_equal(ours, theirs)


@pytest.mark.parametrize("fit_on", ["train", "mixed"])
def test_otherwise_a_network_learns_from_the_training_part_alone(fit, circle, fit_on):
    expected = train(MODELS["SASRec"], EVERYONE.split(circle), seed=1)
    for ours, theirs in zip(weights(fit("SASRec", fit_on).scorer), weights(expected.scorer), strict=True):
        np.testing.assert_array_equal(ours, theirs)
