"""Calibration of a run whose numbers can be computed in the head, and of a simulated one."""

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
from evaluation.calibration.predictions import (
    calibration_remarks,
    find_optimal_sigmoid,
    find_probability,
    read_calibrated_models,
    read_truths,
    top_gap,
)
from evaluation.calibration.summary import calibration_table, summarise
from evaluation.results.load import load_runs
from evaluation.results.store import RunFolder
from evaluation.running.data_description import describe_data, describe_items
from evaluation.running.result_tables import tabulate_top_items, tabulate_users
from tests.evaluation.made_runs import make_run

NUM_ITEMS = 101
LENGTHS = Lengths(median=10, spread=0.3, minimum=4, maximum=25)


def settings(loss, negatives=None):
    return describe(Trained(SASRec(), loss, Training(), negatives or Negatives()))


@pytest.mark.parametrize("loss", [BCE(1), BCE(7), GBCE(16, calibration=0.75), GBCE(4, calibration=1.0)])
@pytest.mark.parametrize("negatives", [Negatives(), Negatives(reject_positive=True), Negatives(reject_history=True)])
def test_the_optimum_read_from_json_is_that_of_the_loss_itself(loss, negatives):
    optimum = find_optimal_sigmoid(settings(loss, negatives), NUM_ITEMS)
    assert optimum == loss.optimal_sigmoid(NUM_ITEMS, negatives)
    assert optimum.power == loss.power(NUM_ITEMS)
    assert optimum.excludes_positive == (negatives != Negatives())


def test_which_models_have_probabilities_and_to_which_theorem_1_applies():
    scores, logsumexps = np.array([[0.0, np.log(3.0)]]), np.array([np.log(6.0)])
    sigmoid, softmax = (find_probability(settings(loss), NUM_ITEMS) for loss in (BCE(1), Softmax()))
    assert sigmoid(scores, logsumexps) == pytest.approx(np.array([[0.5, 0.75]]))
    assert softmax(scores, logsumexps) == pytest.approx(np.array([[1 / 6, 0.5]]))
    assert find_probability(describe(Popularity()), NUM_ITEMS) is None
    assert find_probability(settings(BPR(1)), NUM_ITEMS) is None
    for loss in (Softmax(), SampledSoftmax(4), BPR(1)):
        assert find_optimal_sigmoid(settings(loss), NUM_ITEMS) is None
    assert find_optimal_sigmoid(settings(BCE(1), Negatives(by_popularity=True)), NUM_ITEMS) is None


@pytest.fixture(scope="module")
def run(tmp_path_factory):
    """The Oracle of simulated data, and an overconfident softmax whose scores are twice those of the Oracle."""
    data = Simulated(num_users=400, num_items=60, num_types=4, lengths=LENGTHS)
    recipe = Recipe(
        data,
        {"Overconfident": Trained(SASRec(), Softmax(), Training()), "Popularity": Popularity(), "Oracle": Oracle(data)},
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

    class Overconfident(Scorer):
        def score(self, histories):
            return 2 * oracle.score(histories)

    for name, scorer in {"Oracle": oracle, "Overconfident": Overconfident()}.items():
        rankings = rank(scorer, split.test, exclude_seen=True, depth=30)
        folder = run.model(name, 1)
        folder.write_per_user(tabulate_users(rankings, split, recipe.evaluation))
        folder.write_top_items(tabulate_top_items(rankings, split))
        folder.finish(seconds_to_best=0.0)
    return run


def test_the_oracle_predicts_the_true_probabilities_and_an_overconfident_model_does_not(run):
    runs = load_runs([run])
    models = read_calibrated_models(runs)
    assert [model.name for model in models] == ["Overconfident", "Oracle"]
    truths = read_truths(runs, models)
    gaps = {model.name: top_gap(model, truths) for model in models}
    assert gaps["Oracle"] < 1e-6
    data = Simulated(num_users=400, num_items=60, num_types=4, lengths=LENGTHS)
    truth = data.true_probabilities().probabilities(LeaveOneOut(50).split(data.load(Path())).test.histories())
    squared = truth**2 / (truth**2).sum(axis=1, keepdims=True)
    best = np.argsort(-truth, axis=1)[:, :10]
    expected = np.abs(np.take_along_axis(squared - truth, best, axis=1)).mean()
    assert gaps["Overconfident"] == pytest.approx(expected, rel=1e-4)
    table = calibration_table([summarise(model, truths, 0, "first") for model in models])
    assert len(table.blocks[0]) == 2 and all(len(line) == len(table.header) for line in table.blocks[0])
    assert [line[-1] for line in table.blocks[0]] == [f"{gap:.4f}" for gap in gaps.values()]


def test_predictions_are_of_the_right_items_and_say_what_came_true(run):
    oracle = next(model for model in read_calibrated_models(load_runs([run])) if model.name == "Oracle")
    per_user, top = run.model("Oracle", 1).read_per_user(), run.model("Oracle", 1).read_top_items()
    hits = top.merge(per_user[["user", "target"]], on="user").query("item == target").groupby("user")["position"].min()
    expected = pd.Series(hits, index=per_user["user"]).to_numpy()
    found = np.where(oracle.predictions.is_target.any(axis=1), oracle.predictions.is_target.argmax(axis=1) + 1, np.nan)
    np.testing.assert_array_equal(found, expected)
    assert oracle.sums == pytest.approx(np.ones(400))


def test_the_share_of_the_mass_on_seen_items_follows_the_definition_of_the_probabilities(tmp_path):
    """Half of the sigmoids and a quarter of the softmax are on seen items; of sampled softmax the share is unknown."""
    models = read_calibrated_models(load_runs([make_run(tmp_path / "made")]))
    table = calibration_table([summarise(model, None, 0, "first") for model in models])
    shares = {line[0]: line[table.header.index("On seen items")] for line in table.blocks[0]}
    expected = {"SASRec": "50.0%", "SASRec-Softmax": "25.0%", "gSASRec <t> & $k$": "50.0%", "SSM": ""}
    assert shares == expected
    assert "which the rankings leave out" in table.caption


def test_rankings_that_keep_seen_items_and_older_results_have_no_share_on_excluded_items(run, tmp_path):
    copy = RunFolder(tmp_path / "copy")
    shutil.copytree(run.path, copy.path)
    recipe = copy.read_recipe()
    copy.write_recipe(b"", recipe | {"evaluation": recipe["evaluation"] | {"exclude_seen": False}})
    for seen_shares in (model.seen_shares for model in read_calibrated_models(load_runs([copy]))):
        assert seen_shares is None
    copy.write_recipe(b"", recipe)
    for name in ("Oracle", "Overconfident"):
        folder = copy.model(name, 1)
        folder.write_per_user(folder.read_per_user().drop(columns=["seen_sigmoid_sum", "seen_softmax_sum"]))
        folder.finish(seconds_to_best=0.0)
    models = read_calibrated_models(load_runs([copy]))
    assert len(models) == 2 and all(model.seen_shares is None for model in models)
    assert "On seen items" not in calibration_table([summarise(each, None, 0, "first") for each in models]).header


def test_a_simulator_that_has_changed_is_noticed(run, tmp_path):
    copy = RunFolder(tmp_path / "copy")
    shutil.copytree(run.path, copy.path)
    copy.write_dataset(run.read_dataset() | {"sha256": "other"})
    runs = load_runs([copy])
    with pytest.raises(InputError, match="different data"):
        read_truths(runs, read_calibrated_models(runs))


def test_a_loss_that_this_version_does_not_know_gets_a_remark_and_no_probabilities(run, tmp_path):
    copy = RunFolder(tmp_path / "copy")
    shutil.copytree(run.path, copy.path)
    recipe = copy.read_recipe()
    recipe["models"]["Overconfident"]["loss"] = {"class": "FocalLoss", "num_negatives": 4}
    copy.write_recipe(b"", recipe)
    runs = load_runs([copy])
    models = read_calibrated_models(runs)
    remarks = calibration_remarks(runs, [model.name for model in models])
    assert [model.name for model in models] == ["Oracle"]
    assert len(remarks) == 1
    assert remarks[0].startswith("Overconfident has a loss that this version does not know: no probabilities; ")
    summaries = [summarise(model, None, 0, "first") for model in models]
    assert calibration_table(summaries, remarks).caption.endswith(remarks[0])
    known = load_runs([run])
    assert calibration_remarks(known, ["Overconfident", "Oracle"]) == []

    # A class of the recipe's own that the user named, and one that only has the name of the package's.
    assert len(read_calibrated_models(runs, own={"FocalLoss": BCE})) == 2
    recipe["models"]["Overconfident"]["loss"]["class"] = "BCE"
    recipe["code"] = {"models": {"Overconfident": {"BCE": "0" * 64}}, "shared": {}}
    copy.write_recipe(b"", recipe)
    assert len(read_calibrated_models(load_runs([copy]))) == 1
