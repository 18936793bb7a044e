"""Recommendations use the stored weights, and code in the results folder is never run."""

import itertools
import json

import numpy as np
import pandas as pd
import pytest

from aprec_like.datasets import CSVFile
from aprec_like.errors import InputError
from aprec_like.recipe_classes import DATA_CLASSES
from aprec_like.settings import restore
from evaluation import recommend
from evaluation.inference import recommendations
from evaluation.results.load_split import load_split
from evaluation.results.scorer import load_scorer
from evaluation.results.store import RunFolder
from tests.evaluation.inference.made_models import NAMES


@pytest.mark.parametrize("name", ["gSASRec", "GRU4Rec", "BERT4Rec", "Popularity", "Markov"])
def test_a_loaded_model_scores_as_the_stored_one(made, name):
    folder, run, split, scorers = made
    histories = split.test.histories(np.arange(30))
    again = load_scorer(run, name, None, folder).score(histories)
    np.testing.assert_allclose(again, scorers[name].score(histories), rtol=1e-5)


def call(made, monkeypatch, capsys, *options):
    folder, run, *_ = made
    monkeypatch.setattr("sys.argv", ["recommend", str(run.path), "--data", str(folder), *options])
    code = recommend.run_command(recommend.main)
    captured = capsys.readouterr()
    return code, captured.out, captured.err


def test_the_best_items_are_those_of_a_stable_sort_of_all():
    """Ties go to the smaller number; excluded items never come, also where fewer than k are left."""
    random = np.random.default_rng(0)
    for num_items, k in itertools.product((1, 2, 7, 100), (1, 3, 10)):
        scores = random.integers(4, size=num_items).astype(float)
        excluded = random.integers(num_items, size=random.integers(num_items + 1))
        expected = [item for item in np.argsort(-scores, kind="stable") if item not in excluded][:k]
        assert recommendations.top_items(scores, excluded, k).tolist() == expected


def test_recommendations_are_the_best_unseen_items_with_their_probabilities(made, monkeypatch, capsys):
    _, _, split, scorers = made
    history = ["item-c", "Film 2 (1995)", "item-d"]
    code, out, _ = call(made, monkeypatch, capsys, "--model", "gSASRec", "--items", *history, "-k", "4", "--json")
    answer = json.loads(out)
    assert code == 0 and [item["item"] for item in answer["history"]] == ["item-c", "item-f", "item-d"]
    places = np.array([2, 5, 3], np.int32)
    histories = type(split.test.histories())(places, np.array([0, 3]))
    scores = np.asarray(scorers["gSASRec"].score(histories))[0]
    expected = [place for place in np.argsort(-scores) if place not in places][:4]
    assert [item["item"] for item in answer["recommendations"]] == list(NAMES[expected])
    sigmoids = 1 / (1 + np.exp(-scores[expected]))
    assert [item["probability"] for item in answer["recommendations"]] == pytest.approx(list(sigmoids), rel=1e-5)
    code, out, _ = call(made, monkeypatch, capsys, "--model", "gSASRec", "--items", *history, "-k", "4")
    assert [line.split()[2] for line in out.splitlines()[2:]] == list(NAMES[expected])


def test_a_model_with_an_unknown_loss_recommends_without_probabilities(made, monkeypatch, capsys):
    recipe = made[1].read_recipe()
    recipe["models"]["gSASRec"]["loss"] = {"class": "OwnLoss", "num_negatives": 4}
    monkeypatch.setattr(RunFolder, "read_recipe", lambda run: recipe)
    code, out, errors = call(made, monkeypatch, capsys, "--model", "gSASRec", "--items", "item-a", "--json")
    assert code == 0 and "probability" not in json.loads(out)["recommendations"][0]
    assert "no probabilities" in errors and "OwnLoss" in errors


def test_counting_models_recommend_at_most_all_unseen_items(made, monkeypatch, capsys):
    code, out, _ = call(made, monkeypatch, capsys, "--model", "Markov", "--items", "item-g", "-k", "99", "--json")
    found = json.loads(out)["recommendations"]
    assert code == 0 and found[0]["item"] == "item-h"  # the next on the circle
    assert len(found) == 19 and "probability" not in found[0]


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (("--model", "MF", "--items", "item-a"), "knows only its own users"),
        (("--model", "None", "--items", "item-a"), "no finished model 'None'; finished are"),
        (("--model", "Markov", "--items", "item-a", "--seed", "7"), "the seeds 1, not with 7"),
        (("--model", "Markov", "--items", "flim 3 (1996)"), "did you mean item-g Film 3 (1996)"),
        (("--model", "Markov", "--items", "film 3"), "several items are called 'film 3': item-g Film 3 (1996); item-h"),
        (("--model", "Markov", "--items", "item-a", "--data", "nowhere"), "not in nowhere; name their folder"),
    ],
)
def test_wrong_input_is_one_line_and_exit_code_2(made, monkeypatch, capsys, options, message):
    code, out, err = call(made, monkeypatch, capsys, *options)
    assert (code, out, err.count("\n")) == (2, "", 1)
    assert message in err


def test_titles_are_found_in_any_case_and_without_their_year():
    catalogue = pd.DataFrame({"item": [1, 2, 3], "title": ["Toy Story (1995)", "Heat (1995)", "Heat (1986)"]})
    assert recommendations.find_items(catalogue, ["toy story", "3", "HEAT (1995)"]).tolist() == [0, 2, 1]
    untitled = catalogue[["item"]]
    with pytest.raises(InputError, match="no item 'Heat'; examples of ids: 1, 2, 3"):
        recommendations.find_items(untitled, ["Heat"])


def test_weights_that_are_missing_or_of_another_network_are_refused(made, tmp_path):
    folder, run, *_ = made
    other = RunFolder(tmp_path / "other")
    settings = run.read_recipe()
    settings["models"]["gSASRec"]["model"]["embedding_dim"] = 16
    other.write_recipe(b"", settings)
    other.write_items(run.read_items())
    other.write_dataset(run.read_dataset())
    target = other.model("gSASRec", 1)
    target.finish(seconds_to_best=0.0)
    with pytest.raises(InputError, match="is missing"):
        load_scorer(other, "gSASRec", None, folder)
    target.weights_path.parent.mkdir(parents=True)
    for weights in (run.model("gSASRec", 1).weights_path.read_bytes(), b"nothing"):
        target.weights_path.write_bytes(weights)
        with pytest.raises(InputError, match="was changed after the run"):
            load_scorer(other, "gSASRec", None, folder)
        target.finish(seconds_to_best=0.0)
        with pytest.raises(InputError, match="are not the weights of SASRec"):
            load_scorer(other, "gSASRec", None, folder)


def test_settings_are_restored_and_unknown_classes_are_refused(made):
    folder, run, split, _ = made
    settings = run.read_recipe()
    assert restore(settings["dataset"], DATA_CLASSES) == CSVFile("circle.csv", user="user", item="item")
    assert load_split(run, folder).digest() == split.digest()
    for value in ({"class": "Popen", "args": "x"}, {"class": ["SASRec"]}, {"class": "LeaveOneOut", "no_field": 1}):
        with pytest.raises(InputError, match=r"recipe\.json has settings"):
            restore(value, DATA_CLASSES)
