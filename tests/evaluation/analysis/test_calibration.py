"""The overconfidence lab on a run whose numbers can be computed in the head, and on a simulated one."""

import shutil
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from aprec_like.datasets import Lengths, Simulated
from aprec_like.errors import InputError
from aprec_like.losses import BCE, BPR, GBCE, SampledSoftmax, Softmax
from aprec_like.models import Oracle, Popularity, SASRec, Scorer
from aprec_like.negatives import Negatives
from aprec_like.ranking import rank
from aprec_like.recipe import Evaluation, Recipe, Trained
from aprec_like.settings import describe
from aprec_like.splits import LeaveOneOut
from aprec_like.training import Training
from evaluation.analysis.calibration import (
    calibration_table,
    law_of,
    probability_of,
    read_subjects,
    read_truths,
    top_gap,
)
from evaluation.results.load import load_runs
from evaluation.results.store import RunFolder
from evaluation.running.data_description import describe_data, describe_items
from evaluation.running.run_model import tabulate_top_items, tabulate_users

NUM_ITEMS = 101


def settings(loss, negatives=None):
    return describe(Trained(SASRec(), loss, Training(), negatives or Negatives()))


@pytest.mark.parametrize("loss", [BCE(1), BCE(7), GBCE(16, 0.75), GBCE(4, 1.0)])
@pytest.mark.parametrize("negatives", [Negatives(), Negatives(reject_positive=True), Negatives(reject_history=True)])
def test_the_law_read_from_json_is_that_of_the_loss_itself(loss, negatives):
    law = law_of(settings(loss, negatives), NUM_ITEMS)
    assert law.power == pytest.approx(loss.power(NUM_ITEMS), rel=1e-12)
    assert law.num_negatives == loss.num_negatives
    assert law.rejects_positive == (negatives != Negatives())


def test_who_has_probabilities_and_of_whom_theorem_1_speaks():
    scores, logsumexps = np.array([[0.0, np.log(3.0)]]), np.array([np.log(6.0)])
    assert probability_of(settings(BCE(1)), NUM_ITEMS)(scores, logsumexps) == pytest.approx(np.array([[0.5, 0.75]]))
    assert probability_of(settings(Softmax()), NUM_ITEMS)(scores, logsumexps) == pytest.approx(np.array([[1 / 6, 0.5]]))
    assert probability_of(describe(Popularity()), NUM_ITEMS) is None
    assert probability_of(settings(BPR(1)), NUM_ITEMS) is None
    for loss in (Softmax(), SampledSoftmax(4), BPR(1)):
        assert law_of(settings(loss), NUM_ITEMS) is None
    assert law_of(settings(BCE(1), Negatives(by_popularity=True)), NUM_ITEMS) is None


@pytest.fixture(scope="module")
def run(tmp_path_factory):
    """The Oracle of simulated data under its own name, and once more dressed up as a softmax that is too sure."""
    data = Simulated(num_users=400, num_items=60, num_types=4, lengths=Lengths(10, 0.3, 4, 25))
    recipe = Recipe(
        data,
        {"Sure": Trained(SASRec(), Softmax(), Training()), "Popularity": Popularity(), "Oracle": Oracle(data)},
        split=LeaveOneOut(50),
        evaluation=Evaluation(depth=30),
    )
    interactions = recipe.load(Path())
    split = recipe.split.split(interactions)
    run = RunFolder(tmp_path_factory.mktemp("lab") / "simulated")
    run.write_recipe(b"", describe(recipe) | {"columns": list(recipe.evaluation.columns)})
    run.write_items(describe_items(split))
    run.write_dataset(describe_data(recipe, interactions, split))
    oracle = Oracle(data).fit(split.test.known)

    class Sure(Scorer):
        def score(self, histories):
            return 2 * oracle.score(histories)

    for name, scorer in {"Oracle": oracle, "Sure": Sure()}.items():
        rankings = rank(scorer, split.test, exclude_seen=True, depth=30)
        folder = run.model(name, 1)
        folder.write_per_user(tabulate_users(rankings, split, recipe.evaluation))
        folder.write_top_items(tabulate_top_items(rankings, split, interactions))
        folder.finish(seconds_to_best=0.0)
    return run


def test_the_oracle_predicts_the_truth_and_a_model_that_is_too_sure_does_not(run):
    runs = load_runs([run])
    subjects = read_subjects(runs)
    assert [subject.name for subject in subjects] == ["Sure", "Oracle"]
    truths = read_truths(runs, subjects)
    gaps = {subject.name: top_gap(subject, truths) for subject in subjects}
    assert gaps["Oracle"] < 1e-6
    data = Simulated(num_users=400, num_items=60, num_types=4, lengths=Lengths(10, 0.3, 4, 25))
    truth = data.truth().probabilities(LeaveOneOut(50).split(data.load(Path())).test.histories())
    squared = truth**2 / (truth**2).sum(axis=1, keepdims=True)
    best = np.argsort(-truth, axis=1)[:, :10]
    expected = np.abs(np.take_along_axis(squared - truth, best, axis=1)).mean()
    assert gaps["Sure"] == pytest.approx(expected, rel=1e-4)
    table = calibration_table(subjects, truths)
    assert len(table.blocks[0]) == 2 and all(len(line) == len(table.header) for line in table.blocks[0])


def test_predictions_are_of_the_right_items_and_say_what_came_true(run):
    oracle = next(subject for subject in read_subjects(load_runs([run])) if subject.name == "Oracle")
    per_user, top = run.model("Oracle", 1).read_per_user(), run.model("Oracle", 1).read_top_items()
    hits = top.merge(per_user[["user", "target"]], on="user").query("item == target").groupby("user")["position"].min()
    expected = pd.Series(hits, index=per_user["user"]).to_numpy()
    found = np.where(oracle.predictions.is_target.any(axis=1), oracle.predictions.is_target.argmax(axis=1) + 1, np.nan)
    np.testing.assert_array_equal(found, expected)
    assert oracle.sums == pytest.approx(np.ones(400))


def test_a_simulator_that_has_changed_is_noticed(run, tmp_path):
    copy = RunFolder(tmp_path / "copy")
    shutil.copytree(run.path, copy.path)
    copy.write_dataset(run.read_dataset() | {"sha256": "other"})
    runs = load_runs([copy])
    with pytest.raises(InputError, match="other data"):
        read_truths(runs, read_subjects(runs))
