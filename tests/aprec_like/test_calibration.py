"""Theorem 1 of the gSASRec paper, by gradient descent on the sampled loss with free logits and a known P."""

import keras
import numpy as np
import pytest
import tensorflow as tf

from aprec_like.calibration import optimal_sigmoid, prior_logit
from aprec_like.losses import BCE, GBCE
from aprec_like.negatives import Negatives
from tests.conftest import interactions_from

COUNTS = np.array([2000, 800, 400, 200] + [8] * 75)
PROBABILITIES = COUNTS / COUNTS.sum()
NUM_ITEMS = len(COUNTS)


def learned_sigmoids(loss, negatives, steps=300):
    """The sigmoids that Adam finds; positives stand in the batch in proportion to P, negatives are drawn."""
    copies = max(1, 8 // loss.num_negatives)
    positives = tf.constant(np.repeat(np.arange(NUM_ITEMS), copies * COUNTS), tf.int32)
    sampler = negatives.sampler(interactions_from([[0, 1]], NUM_ITEMS), loss.num_negatives)
    logits = tf.Variable(tf.fill([NUM_ITEMS], prior_logit(loss, NUM_ITEMS, negatives)))
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
    expected = optimal_sigmoid(PROBABILITIES, loss, NUM_ITEMS, negatives)
    # Items of the same P are equal in law; their mean takes the noise of the negatives out.
    np.testing.assert_allclose(found[:4], expected[:4], rtol=0.02)
    assert found[4:].mean() == pytest.approx(expected[4], rel=0.02)


def test_full_calibration_gives_the_probability_itself():
    assert optimal_sigmoid(PROBABILITIES, GBCE(16, 1.0), NUM_ITEMS, Negatives(reject_positive=True)) == pytest.approx(
        PROBABILITIES
    )


def test_the_corollary_of_sasrec():
    """With one negative and BCE the optimum is (P|I| - P) / (P|I| - 2P + 1)."""
    p, size = PROBABILITIES, NUM_ITEMS
    expected = (p * size - p) / (p * size - 2 * p + 1)
    assert optimal_sigmoid(p, BCE(1), size, Negatives(reject_positive=True)) == pytest.approx(expected)


def test_the_authors_sampler_shrinks_large_probabilities():
    """REFERENCE: with t = 1 about P / (1 + P): 0.13 becomes 0.115, 0.5 becomes 0.333."""
    loss = GBCE(256, 1.0)
    assert optimal_sigmoid(0.13, loss, 100_000) == pytest.approx(0.115, abs=5e-4)
    assert optimal_sigmoid(0.5, loss, 100_000) == pytest.approx(0.3333, abs=5e-4)


@pytest.mark.parametrize(
    ("p", "k", "t", "value"),
    [(0.077, 64, 0.5, 0.694), (0.077, 128, 0.5, 0.536), (0.077, 256, 1.0, 0.077), (0.046, 1, 0.0, 0.994)],
)
def test_the_values_that_the_paper_quotes(p, k, t, value):
    assert optimal_sigmoid(p, GBCE(k, t), 3_416, Negatives(reject_positive=True)) == pytest.approx(value, abs=1e-3)


def test_the_prior_is_the_logit_of_an_average_item():
    logit = prior_logit(GBCE(256, 0.75), 3_416, Negatives(reject_positive=True))
    assert 1 / (1 + np.exp(-logit)) == pytest.approx(
        optimal_sigmoid(1 / 3_416, GBCE(256, 0.75), 3_416, Negatives(reject_positive=True))
    )
    assert prior_logit(BCE(1), 1_000, Negatives(reject_positive=True)) == pytest.approx(0.0)
