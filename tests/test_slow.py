"""Real data and minutes of training: `APREC_LIKE_DATA=<folder with MovieLens-1M> python -m pytest -m slow`."""

import json
import subprocess
import sys
import time
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import tensorflow as tf

from aprec_like.datasets import MovieLens1M, TextFile
from aprec_like.datasets.download import default_data_dir
from aprec_like.losses import Softmax
from aprec_like.metrics import NDCG
from aprec_like.models import SASRec
from aprec_like.ranking import NetworkScorer, rank
from aprec_like.recipe import load_recipe
from aprec_like.splits import HeldOut
from aprec_like.training import loop as training
from evaluation.benchmarking import naive
from evaluation.calibration.predictions import read_calibrated_models, read_truths, top_gap
from evaluation.calibration.reliability import Predictions, confidence_curve
from evaluation.calibration.truth import full_gaps
from evaluation.results.load import load_runs
from evaluation.results.store import RunFolder
from tests.conftest import interactions_from

ROOT = Path(__file__).parent.parent


def mean_ndcg(results: Path, model: str, seed: int = 1) -> float:
    metrics = json.loads((results / model / f"seed_{seed}" / "metrics.json").read_text())
    return metrics["metrics"]["NDCG@10"]["mean"]


def run(recipe: str, results: Path, *options: str) -> Path:
    command = [sys.executable, "-m", "evaluation.run", f"recipes/{recipe}.py", "--results", str(results), *options]
    subprocess.run(command, cwd=ROOT, check=True)
    return results / recipe


@pytest.mark.slow
def test_short_training_learns_movielens_and_prior_start_helps(tmp_path):
    if not MovieLens1M().is_on_disk(default_data_dir()):
        pytest.skip("MovieLens-1M is not in the data folder")
    results = run("ml1m_short", tmp_path)
    assert mean_ndcg(results, "SASRec-Softmax") > 0.12
    assert mean_ndcg(results, "gSASRec") > 0.08
    assert mean_ndcg(results, "gSASRec-from-zero") < 0.05
    assert mean_ndcg(results, "Popularity") == pytest.approx(0.0178, abs=1e-3)


@pytest.mark.slow
def test_no_model_beats_the_oracle_over_five_seeds(tmp_path):
    names = ("--only", "Popularity", "SASRec", "gSASRec", "Oracle")
    results = run("quickstart", tmp_path, *names, "--seeds", "1", "2", "3", "4", "5")
    for model in ("SASRec", "gSASRec"):
        mean = sum(mean_ndcg(results, model, seed) for seed in range(1, 6)) / 5
        assert mean_ndcg(results, "Popularity") < mean < mean_ndcg(results, "Oracle")


@pytest.mark.slow
def test_calibrated_gsasrec_predicts_the_truth_of_simulated_users_and_sasrec_does_not(tmp_path):
    """At 80 % of the Oracle's NDCG@10 and more, ten times nearer to the truth, and as Theorem 1 says at every K."""
    names = ("--only", "SASRec", "gSASRec, t=1", "Oracle")
    results = run("simulated_overconfidence", tmp_path, *names, "--seeds", "1")
    assert mean_ndcg(results, "gSASRec, t=1") > 0.8 * mean_ndcg(results, "Oracle")
    runs = load_runs([RunFolder(results)])
    models = {model.name: model for model in read_calibrated_models(runs)}
    truths = read_truths(runs, list(models.values()))
    gsasrec = models["gSASRec, t=1"]
    assert 10 * top_gap(gsasrec, truths) < top_gap(models["SASRec"], truths)
    expected = Predictions(gsasrec.optimal_sigmoid(truths[gsasrec.name]), gsasrec.predictions.is_target)
    assert confidence_curve(gsasrec.predictions)[0] == pytest.approx(confidence_curve(expected)[0], rel=0.2)
    gaps = full_gaps(runs)
    assert gaps["gSASRec, t=1"].top == pytest.approx(top_gap(gsasrec, truths), rel=1e-3)
    assert gaps["Oracle"].divergence < 1e-6 < 10 * gaps["gSASRec, t=1"].catalogue < gaps["SASRec"].catalogue


@pytest.mark.slow
def test_the_fast_step_learns_as_the_naive_one_does_over_five_seeds(monkeypatch):
    """gSASRec of the quickstart for eight epochs: the means differ by no more than seeds make them differ."""
    recipe = load_recipe(ROOT / "recipes" / "quickstart.py")
    split = recipe.split.split(recipe.load(Path()))
    trained = recipe.models["gSASRec"]
    settings = replace(trained.training, max_epochs=8)
    num_items, length = split.train.num_items, trained.model.max_length

    def naive_make_step(network, objective, optimizer, seed, batch_spec, jit_compile=False):
        step = naive.make_naive_step(network, trained.loss, num_items, optimizer)
        return lambda batch, number: step(*naive.pad_batch(batch, length), number)

    values = {}
    for name, make in (("fast", training.make_step), ("naive", naive_make_step)):
        monkeypatch.setattr(training, "make_step", make)
        values[name] = []
        for seed in range(1, 6):
            outcome = training.train(replace(trained, training=settings), split, seed=seed)
            ranks = rank(outcome.scorer, split.test, exclude_seen=True).ranks
            values[name].append(NDCG(10).per_user(ranks).mean())
    print(values)
    means = {name: np.mean(found) for name, found in values.items()}
    error = np.sqrt(sum(np.var(found, ddof=1) / 5 for found in values.values()))
    assert means["fast"] > 0.2
    assert abs(means["fast"] - means["naive"]) < 3 * error, values


@pytest.mark.slow
@pytest.mark.parametrize(
    ("name", "seconds", "counts"),
    [("ml-1m.txt", 1.0, (6_040, 3_416, 999_611)), ("globo-full-catalogue.txt", 3.0, (221_379, 41_367, 2_747_674))],
)
def test_text_files_are_read_in_a_second_or_three_and_from_the_cache_in_a_third(name, seconds, counts):
    dataset, folder = TextFile(name), default_data_dir()
    if not dataset.is_on_disk(folder):
        pytest.skip(f"{name} is not in the data folder")
    times = []
    for _ in range(2):
        started = time.monotonic()
        loaded = dataset.load(folder)
        times.append(time.monotonic() - started)
    assert (loaded.num_users, loaded.num_items, loaded.num_interactions) == counts
    assert times[0] < seconds and times[1] < 0.3, times


@pytest.mark.slow
def test_a_softmax_over_twenty_thousand_items_is_the_plain_one():
    random = np.random.default_rng(0)
    states = tf.Variable(random.normal(scale=0.3, size=(500, 128)).astype(np.float32))
    table = tf.Variable(random.normal(scale=0.3, size=(20_000, 128)).astype(np.float32))
    targets = tf.constant(random.integers(20_000, size=500))
    found = []
    for loss in (
        lambda: Softmax()(states, table, targets),
        lambda: tf.nn.sparse_softmax_cross_entropy_with_logits(targets, tf.matmul(states, table, transpose_b=True)),
    ):
        with tf.GradientTape() as tape:
            losses = loss()
            value = tf.reduce_sum(losses)
        found.append([losses, *map(tf.convert_to_tensor, tape.gradient(value, [states, table]))])
    for ours, plain in zip(*found, strict=True):
        np.testing.assert_allclose(ours, plain, rtol=1e-5, atol=1e-5)


@pytest.mark.slow
def test_ranks_among_a_million_items_are_those_of_numpy():
    """Products of small whole numbers are exact, so the order in which they are added up does not matter."""
    random = np.random.default_rng(0)
    num_items = 1_271_638
    known = interactions_from([random.integers(num_items, size=10).tolist() for _ in range(200)], num_items)
    network = SASRec(max_length=8, embedding_dim=16, num_blocks=1).build(num_items)
    table = random.integers(-20, 21, size=(num_items + 2, 16)).astype(np.float32)
    network.output_embedding.embeddings.assign(table)
    states = random.integers(-20, 21, size=(200, 16)).astype(np.float32)

    class GivenStates(NetworkScorer):
        def states(self, histories):
            return tf.constant(states[histories.users])

    targets = known.items[known.offsets[:-1]]
    rankings = rank(GivenStates(network), HeldOut(known, np.arange(200), targets), exclude_seen=False, depth=10)
    for user, target in enumerate(targets):
        scores = table[:num_items] @ states[user]
        better, equal = np.sum(scores > scores[target]), np.sum(scores == scores[target])
        assert rankings.ranks[user] == better + (equal + 1) / 2
        np.testing.assert_array_equal(rankings.top_scores[user], np.sort(scores)[::-1][:10])
