"""Exported models recommend what the stored model does, without this package; what differs is not exported."""

import json
import logging
import subprocess
import sys
from types import SimpleNamespace

import keras
import numpy as np
import onnxruntime
import pandas as pd
import pytest
import tensorflow as tf
from safetensors.numpy import load_file

from aprec_like.calibration import SampledSoftmaxProbability, SigmoidProbability, SoftmaxProbability
from aprec_like.interactions import PADDING, Histories
from aprec_like.models import SASRec
from aprec_like.models.popularity import PopularityScorer
from aprec_like.ranking import NetworkScorer
from evaluation import export
from evaluation.inference import exported
from evaluation.inference.catalogue_scores import CommonScores, catalogue_scores
from evaluation.inference.recommender import Recommender, TopItems, pad_left, probabilities
from tests.evaluation.inference.made_models import NAMES, TITLES

HISTORY = [2, 5, 3, 2]

USE = """
import json, sys
import tensorflow as tf
answers = []
for folder in sys.argv[2:]:
    loaded = tf.saved_model.load(folder)
    found = loaded.signatures["serving_default"](items=tf.constant(json.loads(sys.argv[1])))
    answers.append({name: value.numpy().tolist() for name, value in found.items()})
assert not [name for name in sys.modules if name.startswith(("aprec_like", "evaluation"))]
decoded = json.dumps(answers, default=bytes.decode)
print(decoded)
"""


def call(made, monkeypatch, capsys, *options):
    folder, run, *_ = made
    monkeypatch.setattr(exported, "NUM_CHECKED_USERS", 20)
    monkeypatch.setattr("sys.argv", ["export", str(run.path), "--data", str(folder), *map(str, options)])
    code = export.run_command(export.main)
    captured = capsys.readouterr()
    return code, captured.out, captured.err


def best_unseen(scorer, history, k, *, exclude_seen=True):
    """The independent answer: all scores, sorted."""
    scores = np.asarray(scorer.score(Histories(np.array(history, np.int32), np.array([0, len(history)]))))[0]
    order = np.argsort(-scores, kind="stable")
    found = [item for item in order if not (exclude_seen and item in history)][:k]
    return found, scores[found]


@pytest.mark.parametrize(
    "names", [["gSASRec", "GRU4Rec", "Popularity", "Markov"], pytest.param(["BERT4Rec"], marks=pytest.mark.slow)]
)
def test_a_saved_model_answers_the_same_without_this_package(made, tmp_path, monkeypatch, capsys, names):
    scorers = made[3]
    for name in names:
        code, out, _ = call(made, monkeypatch, capsys, "--model", name, "--to", tmp_path / name, "-k", 4)
        assert code == 0 and "for 20 test users" in out
    histories = [
        ["", *NAMES[HISTORY]],
        ["never seen", NAMES[7], "", NAMES[8], NAMES[9]],
    ]  # padding, unknown, in between
    arguments = [json.dumps(histories), *(str(tmp_path / name) for name in names)]
    done = subprocess.run([sys.executable, "-I", "-c", USE, *arguments], capture_output=True, text=True, check=True)
    for name, answer in zip(names, json.loads(done.stdout), strict=True):
        for row, history in enumerate((HISTORY, [7, 8, 9])):
            items, scores = best_unseen(scorers[name], history, 4)
            assert answer["ids"][row] == list(NAMES[items])
            assert answer["titles"][row] == [TITLES[item] for item in items]
            np.testing.assert_allclose(answer["scores"][row], scores, rtol=1e-5)
        assert answer["num_known"] == [4, 3]
        assert ("probabilities" in answer) == (name in ("gSASRec", "GRU4Rec", "BERT4Rec"))


def test_a_request_may_choose_k_and_keep_seen_items(made, tmp_path, monkeypatch, capsys):
    call(made, monkeypatch, capsys, "--model", "gSASRec", "--to", tmp_path / "model")
    loaded = tf.saved_model.load(str(tmp_path / "model"))
    recommend = loaded.signatures["recommend"]
    items = tf.constant([NAMES[HISTORY].tolist()])
    for k, exclude_seen in ((3, False), (99, True)):
        found = recommend(items=items, k=tf.constant(k), exclude_seen=tf.constant(exclude_seen))
        expected, _ = best_unseen(made[3]["gSASRec"], HISTORY, min(k, 20), exclude_seen=exclude_seen)
        ids = [item.decode() for item in found["ids"].numpy()[0]]
        assert ids == list(NAMES[expected]) + [""] * (min(k, 20) - len(expected))
    with pytest.raises(tf.errors.InvalidArgumentError, match="k must be at least 1"):
        recommend(items=items, k=tf.constant(0), exclude_seen=tf.constant(True))
    empty = loaded.signatures["serving_default"](items=tf.zeros([1, 0], tf.string))
    assert np.isfinite(empty["scores"]).all() and empty["num_known"].numpy().tolist() == [0]
    cosines = loaded.signatures["similarities"](items=items, recommended=tf.constant([[NAMES[5], "never seen"]]))
    vectors = made[3]["gSASRec"].network.item_table.numpy()[[5, *HISTORY]]
    vectors /= np.linalg.norm(vectors, axis=1, keepdims=True)
    np.testing.assert_allclose(cosines["similarities"][0], [vectors[1:] @ vectors[0], np.zeros(4)], atol=1e-5)


@pytest.mark.parametrize(
    "name", ["gSASRec", "GRU4Rec", *(pytest.param(name, marks=pytest.mark.slow) for name in ("BERT4Rec", "Markov"))]
)
def test_an_onnx_model_recommends_the_same_by_item_numbers(made, tmp_path, monkeypatch, capsys, name):
    warnings, logger = [], logging.getLogger("tensorflow")
    monkeypatch.setattr(logger, "handlers", [SimpleNamespace(level=logging.WARNING, handle=warnings.append)])
    logger.setLevel(logging.WARNING)
    code, *_ = call(made, monkeypatch, capsys, "--model", name, "--to", tmp_path / "model", "--format", "onnx")
    assert code == 0 and [record.getMessage() for record in warnings] == []
    session = onnxruntime.InferenceSession(tmp_path / "model/model.onnx")
    histories = np.array([[PADDING, *HISTORY, PADDING]], np.int32)
    for k, exclude_seen in ((4, True), (20, False)):
        inputs = {"items": histories, "k": np.array(k, np.int32), "exclude_seen": np.array(exclude_seen)}
        items, scores = session.run(["top_items", "scores"], inputs)
        expected, expected_scores = best_unseen(made[3][name], HISTORY, k, exclude_seen=exclude_seen)
        assert items[0].tolist() == expected
        np.testing.assert_allclose(scores[0], expected_scores, rtol=1e-4)
    table = pd.read_csv(tmp_path / "model/items.csv")
    assert table["item"].tolist() == list(NAMES) and table["title"].tolist() == TITLES


def test_weights_are_exported_as_a_keras_model_and_as_plain_arrays(made, tmp_path, monkeypatch, capsys):
    network = made[3]["gSASRec"].network
    for name in ("keras", "safetensors"):
        code, *_ = call(made, monkeypatch, capsys, "--model", "gSASRec", "--to", tmp_path / name, "--format", name)
        assert code == 0
    arrays = load_file(tmp_path / "safetensors/weights.safetensors")
    assert {path: array.shape for path, array in arrays.items()} == {v.path: v.shape for v in network.variables}
    assert len(arrays) == len(network.variables)
    np.testing.assert_array_equal(arrays["item_embedding/embeddings"], network.item_embedding.embeddings)
    loaded = keras.saving.load_model(tmp_path / "keras/model.keras")
    histories = Histories(np.array(HISTORY, np.int32), np.array([0, 4]))
    np.testing.assert_array_equal(NetworkScorer(loaded).score(histories), NetworkScorer(network).score(histories))


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (("--model", "MF"), "knows only its own users"),
        (("--model", "None"), "no finished model 'None'"),
        (("--model", "Markov", "--format", "keras"), "Markov is no network"),
        (("--model", "Markov", "--to", "."), "exists already"),
        (("--model", "Markov", "--format", "onnx"), 'pip install "aprec_like[onnx]"'),
    ],
)
def test_what_cannot_be_exported_is_one_line_and_leaves_nothing(made, tmp_path, monkeypatch, capsys, options, message):
    monkeypatch.setitem(sys.modules, "tf2onnx", None)
    code, out, err = call(made, monkeypatch, capsys, "--to", tmp_path / "new", *options)
    assert (code, out, err.strip().count("\n")) == (2, "", 0)
    assert message in err
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("error", ["state", "probability"])
def test_an_export_that_answers_differently_is_refused(made, tmp_path, monkeypatch, capsys, error):
    network = type(SASRec(max_length=2, embedding_dim=2, num_blocks=1).build(3))
    right = network.next_item_states
    if error == "state":
        monkeypatch.setattr(network, "next_item_states", lambda self, items: right(self, items[:, -2:]))
    else:
        monkeypatch.setattr("evaluation.inference.recommender.probabilities", lambda kind, scores, sums: scores)
    code, _, err = call(made, monkeypatch, capsys, "--model", "gSASRec", "--to", tmp_path / "new")
    assert code == 2 and "the exported gSASRec" in err
    assert list(tmp_path.iterdir()) == []


def test_a_swap_of_equal_items_is_no_difference_and_a_swap_of_others_is(made):
    scorer = PopularityScorer(np.array([5, 5, 3, 1]))
    catalogue = pd.DataFrame({"item": list("abcd")})
    history = Histories(np.array([3], np.int32), np.array([0, 1]))
    source = exported.ExportSource(
        made[1], "model", 1, scorer, catalogue, probability=None, exclude_seen=True, k=3, histories=history
    )
    progress = exported.Progress(disable=True)
    for items, is_same in (([0, 1, 2], True), ([1, 0, 2], True), ([0, 2, 1], False), ([0, 0, 2], False)):
        scores = np.array([5.0, 5.0, 3.0])
        answer = exported.Answer(np.array([items]), scores[None])
        if is_same:
            assert exported.check_export(source, lambda users, answer=answer: answer, progress) == 1
        else:
            with pytest.raises(ValueError, match="the exported model recommends"):
                exported.check_export(source, lambda users, answer=answer: answer, progress)


def test_chunks_of_the_catalogue_give_the_best_items_of_the_whole():
    """Scores with many ties, so that the order of equal items shows."""
    random = np.random.default_rng(0)
    scorer = PopularityScorer(random.integers(8, size=50))
    histories = random.integers(-1, 50, size=(6, 9)).astype(np.int32)
    for chunk_items in (None, 7, 50, 64):
        model = TopItems(catalogue_scores(scorer, 50), SoftmaxProbability(), chunk_items)
        found = tf.function(model)(tf.constant(histories), tf.constant(20), tf.constant(True))
        for row, history in enumerate(histories):
            expected, scores = best_unseen(scorer, history[history != PADDING], 20)
            assert found["top_items"][row].numpy().tolist() == expected
            softmax = np.exp(scores) / np.exp(scorer.common_scores).sum()
            np.testing.assert_allclose(found["probabilities"][row], softmax, rtol=1e-4)


def test_numbers_are_ids_too_and_none_of_them_is_padding():
    catalogue = pd.DataFrame({"item": [-1, 4, 2**40]})
    top_items = TopItems(CommonScores(PopularityScorer(np.array([1, 3, 2])), 3), None)
    recommender = Recommender(top_items, catalogue, k=3, exclude_seen=True)
    found = recommender.signatures()["serving_default"](tf.constant([[4, -2], [-1, 2**40]], tf.int64))
    assert recommender.padding == -2
    assert found["ids"].numpy().tolist() == [[2**40, -1, -2], [4, -2, -2]]
    assert "titles" not in found and "similarities" not in recommender.signatures()


def test_histories_move_to_the_right_end():
    items = np.array([[PADDING, 3, PADDING, 1], [PADDING] * 4, [4, 3, 2, 1]], np.int32)
    expected = [[PADDING] * 3 + [3, 1], [PADDING] * 5, [PADDING, 4, 3, 2, 1]]
    assert pad_left(tf.constant(items)).numpy().tolist() == expected


@pytest.mark.parametrize(
    "kind", [SigmoidProbability(), SoftmaxProbability(), SampledSoftmaxProbability(5, 30, excludes_positive=True)]
)
def test_probabilities_are_those_of_the_library(kind):
    scores, logsumexps = np.array([[1.5, -2.0], [0.5, 0.25]], np.float32), np.array([4.0, 5.0], np.float32)
    np.testing.assert_allclose(probabilities(kind, scores, logsumexps), kind(scores, logsumexps), rtol=1e-5)
