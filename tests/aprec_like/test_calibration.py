"""Theorem 1 of the gSASRec paper, by gradient descent on the sampled loss with free logits and a known P; and the
reliability of predictions, by hand and on sampled targets."""

import keras
import numpy as np
import pytest
import tensorflow as tf
from scipy import stats

from aprec_like.calibration import (
    SampledSoftmaxProbability,
    SoftmaxProbability,
    truth_gap,
)
from aprec_like.interactions import PADDING
from aprec_like.losses import BCE, GBCE
from aprec_like.metrics import Precision
from aprec_like.negatives import Negatives
from evaluation.calibration.reliability import Predictions, confidence_curve, reliability
from tests.conftest import interactions_from

COUNTS = np.array([2000, 800, 400, 200] + [8] * 75)
PROBABILITIES = COUNTS / COUNTS.sum()
NUM_ITEMS = len(COUNTS)


def learned_sigmoids(loss, negatives, steps=300):
    """The sigmoids that Adam finds; the batch has positives in proportion to P, negatives are sampled."""
    copies = max(1, 8 // loss.num_negatives)
    positives = tf.constant(np.repeat(np.arange(NUM_ITEMS), copies * COUNTS), tf.int32)
    sampler = negatives.sampler(interactions_from([[0, 1]], NUM_ITEMS), loss.num_negatives)
    logits = tf.Variable(tf.fill([NUM_ITEMS], loss.prior_logit(NUM_ITEMS, negatives)))
    schedule = keras.optimizers.schedules.CosineDecay(0.15, steps)
    optimizer = keras.optimizers.Adam(schedule, beta_2=0.99)
    optimizer.build([logits])

    @tf.function
    def step(number):
        drawn = sampler(tf.zeros_like(positives), positives, tf.stack([7, number]))
        with tf.GradientTape() as tape:
            losses = loss(tf.gather(logits, positives), tf.gather(logits, drawn), NUM_ITEMS)
            value = tf.reduce_sum(losses)
        optimizer.apply([tf.convert_to_tensor(tape.gradient(value, logits))], [logits])

    for number in range(steps):
        step(tf.constant(number))
    return tf.sigmoid(logits).numpy()


@pytest.mark.parametrize("reject_positive", [True, False])
@pytest.mark.parametrize(("k", "t"), [(1, 0.0), (1, 1.0), (16, 0.5), (64, 0.75), (64, 1.0)])
def test_gradient_descent_reaches_the_closed_form(k, t, reject_positive):
    loss, negatives = GBCE(k, t), Negatives(reject_positive=reject_positive)
    found = learned_sigmoids(loss, negatives)
    expected = loss.optimal_sigmoid(NUM_ITEMS, negatives)(PROBABILITIES)
    # Items of the same P have the same distribution; their mean averages out the noise of the negatives.
    np.testing.assert_allclose(found[:4], expected[:4], rtol=0.02)
    assert found[4:].mean() == pytest.approx(expected[4], rel=0.02)


def test_full_calibration_gives_the_probability_itself():
    optimum = GBCE(16, 1.0).optimal_sigmoid(NUM_ITEMS, Negatives(reject_positive=True))
    assert optimum(PROBABILITIES) == pytest.approx(PROBABILITIES)


def test_the_corollary_of_sasrec():
    """With one negative and BCE the optimum is (P|I| - P) / (P|I| - 2P + 1)."""
    p, size = PROBABILITIES, NUM_ITEMS
    expected = (p * size - p) / (p * size - 2 * p + 1)
    assert BCE(1).optimal_sigmoid(size, Negatives(reject_positive=True))(p) == pytest.approx(expected)


def test_the_authors_sampler_shrinks_large_probabilities():
    """With t = 1 about P / (1 + P): 0.13 becomes 0.115, 0.5 becomes 0.333."""
    optimum = GBCE(256, 1.0).optimal_sigmoid(100_000, Negatives())
    assert optimum(0.13) == pytest.approx(0.115, abs=5e-4)
    assert optimum(0.5) == pytest.approx(0.3333, abs=5e-4)


@pytest.mark.parametrize(
    ("p", "k", "t", "value"),
    [(0.077, 64, 0.5, 0.694), (0.077, 128, 0.5, 0.536), (0.077, 256, 1.0, 0.077), (0.046, 1, 0.0, 0.994)],
)
def test_the_values_that_the_paper_quotes(p, k, t, value):
    optimum = GBCE(k, t).optimal_sigmoid(3_416, Negatives(reject_positive=True))
    assert optimum(p) == pytest.approx(value, abs=1e-3)


def test_the_prior_is_the_logit_of_an_average_item():
    loss, negatives = GBCE(256, 0.75), Negatives(reject_positive=True)
    logit = loss.prior_logit(3_416, negatives)
    assert 1 / (1 + np.exp(-logit)) == pytest.approx(loss.optimal_sigmoid(3_416, negatives)(1 / 3_416))
    assert BCE(1).prior_logit(1_000, negatives) == pytest.approx(0.0)


def test_sampling_by_popularity_has_no_closed_form():
    assert BCE(1).optimal_sigmoid(100, Negatives(by_popularity=True)) is None
    with pytest.raises(ValueError, match="uniform negatives"):
        BCE(1).prior_logit(100, Negatives(by_popularity=True))


def test_sampled_softmax_means_what_its_formula_says_of_average_negatives():
    """Four items with e^s = 1, 1, 2, 4 (mean 2), three negatives: 4 / (4 + 3 * 2) = 0.4."""
    scores, logsumexps = np.log([[1.0, 1.0, 2.0, 4.0]]), np.log([8.0])
    found = SampledSoftmaxProbability(3, 4)(scores, logsumexps)
    assert found == pytest.approx(np.array([[1 / 7, 1 / 7, 2 / 8, 4 / 10]]))
    rejecting = SampledSoftmaxProbability(3, 4, excludes_positive=True)(scores, logsumexps)
    assert rejecting[0, 3] == pytest.approx(4 / (4 + 3 * (1 + 1 + 2) / 3))
    exact = SampledSoftmaxProbability(2, 4, excludes_positive=True, is_corrected=True)(scores, logsumexps)
    assert exact == pytest.approx(SoftmaxProbability()(scores, logsumexps))


def test_the_sum_of_sampled_softmax_is_bounded_from_its_best_items():
    random = np.random.default_rng(0)
    scores = np.sort(random.normal(scale=2, size=(50, 300)))[:, ::-1]
    logsumexps = np.log(np.exp(scores).sum(axis=1))
    probability = SampledSoftmaxProbability(16, 300)
    sums = probability(scores, logsumexps).sum(axis=1)
    bounds = probability.catalogue_sums(scores[:, :100], logsumexps, sums)
    assert (sums <= bounds).all() and bounds == pytest.approx(sums, rel=0.1)
    assert probability.catalogue_sums(scores, logsumexps, sums) == pytest.approx(sums)


def made_predictions(num_users=2_000, depth=30, power=1.0):
    """Targets sampled from the true probabilities; the predictions are a power of them."""
    random = np.random.default_rng(1)
    truth = -np.sort(-random.dirichlet(np.full(depth, 0.3), size=num_users), axis=1)
    targets = (random.random(num_users)[:, None] > np.cumsum(truth, axis=1)).sum(axis=1)
    return Predictions(truth**power, np.arange(depth) == targets[:, None]), targets + 1


def test_the_confidence_curve_has_the_precision_of_the_metric():
    predictions, ranks = made_predictions()
    predicted, precision = confidence_curve(predictions)
    for k in (1, 7, 30):
        assert precision[k - 1] == pytest.approx(Precision(k).per_user(ranks).mean())
        assert predicted[k - 1] == pytest.approx(predictions.probabilities[:, :k].mean())
    short = Predictions(np.array([[0.5, np.nan], [0.3, 0.1]]), np.array([[True, False], [False, True]]))
    assert confidence_curve(short)[0] == pytest.approx([0.4, 0.3])
    assert confidence_curve(short)[1] == pytest.approx([0.5, 0.5])


def test_calibrated_predictions_are_reliable_and_overconfident_ones_are_not():
    honest, overconfident = (reliability(made_predictions(power=power)[0]) for power in (1.0, 0.3))
    assert honest.counts.sum() == 60_000
    inside = (honest.low <= honest.predicted) & (honest.predicted <= honest.high)
    assert inside.mean() >= 0.8
    assert honest.expected_error < 0.003 < 0.1 < overconfident.expected_error
    top = honest.observed[-1]
    interval = stats.binomtest(round(top * honest.counts[-1]), honest.counts[-1]).proportion_ci(method="wilson")
    assert (honest.low[-1], honest.high[-1]) == pytest.approx((interval.low, interval.high), rel=1e-12)


def test_the_gap_to_the_truth_by_hand():
    truth = np.array([[0.5, 0.5, 0.0]])
    predicted = np.array([[1.0, 0.5, 0.5]])
    is_seen = np.array([[False, True, False]])
    gap = truth_gap(predicted, truth, np.array([[0, 1]]), is_seen)
    assert gap.top == pytest.approx(0.25)
    assert gap.catalogue == pytest.approx(1 / 3)
    assert gap.divergence == pytest.approx(0.5 * np.log(0.5 / 0.5) + 0.5 * np.log(0.5 / 0.25))
    assert gap.excluded == pytest.approx(0.25)
    assert truth_gap(truth, truth, np.array([[0, 1]]), is_seen).divergence == pytest.approx(0.0)
    assert truth_gap(predicted, truth, np.array([[0, PADDING]]), is_seen).top == pytest.approx(0.5)


def test_theorem_1_is_the_optimum_of_a_sampler_that_never_draws_the_positive():
    """gSASRec on MovieLens-1M at Precision@1 = 0.0694: the sampler that draws from all items has a lower optimum."""
    loss = GBCE(256, 0.75)
    used, theorem = (loss.optimal_sigmoid(3_416, Negatives(reject_positive=rejects)) for rejects in (False, True))
    assert used.theorem_1 == theorem == theorem.theorem_1
    assert (float(used(0.0694)), float(theorem(0.0694))) == pytest.approx((0.2209, 0.2335), abs=1e-4)
