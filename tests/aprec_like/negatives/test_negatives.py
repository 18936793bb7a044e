import numpy as np
import pytest
import tensorflow as tf
from scipy import stats

from aprec_like.errors import InputError
from aprec_like.negatives import Negatives
from tests.conftest import interactions_from

NUM_ITEMS = 10


def draw(negatives, positives, histories=None, count=4000, seed=(1, 2)):
    """Samples of shape (users, positives, count), one user per row of positives."""
    train = interactions_from(histories or [[0, 1]] * len(positives), NUM_ITEMS)
    sampler = negatives.sampler(train, count)
    rows, columns = np.shape(positives)
    users = tf.repeat(tf.range(rows, dtype=tf.int64), columns)
    drawn = sampler(users, tf.reshape(tf.constant(positives), [-1]), tf.constant(seed, tf.int64))
    return drawn.numpy().reshape(rows, columns, count)


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
    drawn = draw(Negatives(reject_history=True), [[history[0], history[-1]]], [history[::-1]])
    assert drawn.shape == (1, 2, 4000)
    assert_uniform(drawn, np.setdiff1d(np.arange(NUM_ITEMS), history))


def test_each_user_rejects_its_own_history():
    drawn = draw(Negatives(reject_history=True), [[0], [1]], [[1, 0], [8]])
    assert_uniform(drawn[0], np.arange(2, 10))
    assert_uniform(drawn[1], np.setdiff1d(np.arange(10), [8]))


def test_the_same_seed_draws_the_same_items_and_another_seed_others():
    first, again, other = (draw(Negatives(), [[3]], seed=seed) for seed in ((1, 2), (1, 2), (1, 3)))
    assert (first == again).all()
    assert (first != other).any()


def test_positions_are_drawn_independently():
    drawn = draw(Negatives(), [[3, 3]])
    assert abs(np.corrcoef(drawn[0, 0], drawn[0, 1])[0, 1]) < 0.06


HISTORIES = [[0, 0, 0, 0, 1, 1, 2], [3, 3, 4]]
COUNTS = np.array([4, 2, 1, 2, 1, 0, 0, 0, 0, 0])


def assert_proportional(drawn, weights):
    counts = np.bincount(drawn.ravel(), minlength=NUM_ITEMS)
    assert counts[weights == 0].sum() == 0
    expected = weights[weights > 0] / weights.sum() * counts.sum()
    assert stats.chisquare(counts[weights > 0], expected).pvalue > 1e-3


def test_popularity_draws_items_at_the_rate_of_their_occurrences():
    assert_proportional(draw(Negatives(by_popularity=True), [[0], [0]], HISTORIES), COUNTS)


def test_popularity_without_the_positive():
    drawn = draw(Negatives(by_popularity=True, reject_positive=True), [[0], [3]], HISTORIES)
    assert_proportional(drawn[0], COUNTS * (np.arange(10) != 0))
    assert_proportional(drawn[1], COUNTS * (np.arange(10) != 3))


def test_popularity_without_the_history():
    drawn = draw(Negatives(by_popularity=True, reject_history=True), [[0], [3]], HISTORIES)
    assert_proportional(drawn[0], COUNTS * np.isin(np.arange(10), [3, 4]))
    assert_proportional(drawn[1], COUNTS * np.isin(np.arange(10), [0, 1, 2]))


@pytest.mark.parametrize(
    "settings",
    [
        {"shared_by": "user"},
        {"shared_by": "batch", "reject_history": True},
        {"shared_by": "sequence", "reject_positive": True},
    ],
)
def test_impossible_sampling_settings_are_refused(settings):
    with pytest.raises(ValueError, match="Negatives"):
        Negatives(**settings)


@pytest.mark.parametrize(("by_popularity", "num_items"), [(False, 1), (True, 3)])
def test_a_single_item_has_no_negatives(by_popularity, num_items):
    with pytest.raises(InputError, match="at least 2 items"):
        Negatives(by_popularity=by_popularity).sampler(interactions_from([[0], [0]], num_items), 1)


@pytest.mark.parametrize("by_popularity", [True, False])
def test_a_user_with_all_items_cannot_reject_the_history(by_popularity):
    with pytest.raises(InputError, match="a user with all"):
        Negatives(reject_history=True, by_popularity=by_popularity).sampler(interactions_from([[0, 1, 2]], 3), 1)


DISTINCT = Negatives(shared_by="sequence", reject_history=True, without_replacement=True)


def test_without_replacement_every_set_of_unseen_items_is_equally_likely():
    """Three of the five unseen items: ten sets. The history is never drawn."""
    history, unseen = [0, 2, 5, 8, 9], [1, 3, 4, 6, 7]
    sampler = DISTINCT.sampler(interactions_from([history], NUM_ITEMS), 3)
    users = tf.zeros([5000], tf.int64)
    drawn = np.sort(sampler(users, tf.zeros([5000], tf.int32), tf.constant([1, 2], tf.int64)), axis=1)
    sets, counts = np.unique(drawn, axis=0, return_counts=True)
    assert len(sets) == 10 and np.isin(sets, unseen).all() and (np.diff(sets, axis=1) > 0).all()
    assert stats.chisquare(counts).pvalue > 1e-3


def test_all_items_without_replacement_are_a_permutation():
    sampler = Negatives("batch", without_replacement=True).sampler(interactions_from([[0, 1]], NUM_ITEMS), NUM_ITEMS)
    drawn = sampler(tf.zeros([2], tf.int64), tf.zeros([2], tf.int32), tf.constant([1, 2], tf.int64)).numpy()
    assert (np.sort(drawn, axis=1) == np.arange(NUM_ITEMS)).all() and (drawn[0] != drawn[1]).any()


def test_distinct_negatives_need_enough_items():
    with pytest.raises(InputError, match=r"5 distinct negatives need as many items\. Received: 4"):
        DISTINCT.sampler(interactions_from([[0, 1], [0, 2, 3, 4, 5, 6]], NUM_ITEMS), 5)


@pytest.mark.parametrize("settings", [{"shared_by": "position"}, {"shared_by": "batch", "by_popularity": True}])
def test_negatives_without_replacement_are_shared_and_uniform(settings):
    with pytest.raises(ValueError, match="without replacement need"):
        Negatives(without_replacement=True, **settings)
