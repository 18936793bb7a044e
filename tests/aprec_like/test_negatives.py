import numpy as np
import pytest
import tensorflow as tf
from scipy import stats

from aprec_like.negatives import Negatives

NUM_ITEMS = 10


def draw(negatives, positives, rejected=None, count=4000, seed=(1, 2)):
    rejected = None if rejected is None else tf.constant(rejected)
    return negatives.draw(count, NUM_ITEMS, tf.constant(positives), rejected, tf.constant(seed, tf.int64)).numpy()


def assert_uniform(drawn, allowed):
    counts = np.bincount(drawn.ravel(), minlength=NUM_ITEMS)
    assert counts[np.setdiff1d(np.arange(NUM_ITEMS), allowed)].sum() == 0
    assert stats.chisquare(counts[allowed]).pvalue > 1e-3


def test_the_default_draws_any_item_and_the_positive_too():
    drawn = draw(Negatives(), [[3, 5]])
    assert drawn.shape == (1, 2, 4000)
    assert_uniform(drawn[0, 0], np.arange(NUM_ITEMS))


@pytest.mark.parametrize("positive", [0, 4, 9])
def test_reject_positive_draws_each_other_item_at_the_same_rate(positive):
    drawn = draw(Negatives(reject_positive=True), [[positive]])
    assert_uniform(drawn, np.setdiff1d(np.arange(NUM_ITEMS), [positive]))


@pytest.mark.parametrize("history", [[0], [9], [0, 1, 2], [2, 5, 8], [0, 1, 2, 3, 5, 6, 7, 8]])
def test_reject_history_draws_each_other_item_at_the_same_rate(history):
    padded = [history + [NUM_ITEMS] * (9 - len(history))]
    drawn = draw(Negatives(reject_history=True), [[history[0], history[-1]]], padded)
    assert drawn.shape == (1, 2, 4000)
    assert_uniform(drawn, np.setdiff1d(np.arange(NUM_ITEMS), history))


def test_each_user_rejects_its_own_history():
    drawn = draw(Negatives(reject_history=True), [[0], [1]], [[0, 1], [8, NUM_ITEMS]])
    assert_uniform(drawn[0], np.arange(2, 10))
    assert_uniform(drawn[1], np.setdiff1d(np.arange(10), [8]))


def test_the_same_seed_draws_the_same_items_and_another_seed_others():
    first, again, other = (draw(Negatives(), [[3]], seed=seed) for seed in ((1, 2), (1, 2), (1, 3)))
    assert (first == again).all()
    assert (first != other).any()


def test_positions_are_drawn_independently():
    drawn = draw(Negatives(), [[3, 3]])
    assert abs(np.corrcoef(drawn[0, 0], drawn[0, 1])[0, 1]) < 0.06
