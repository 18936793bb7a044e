import numpy as np
import pytest

from aprec_like.interactions import Histories, Interactions
from tests.conftest import interactions_from


def test_users_and_items_are_numbered_in_the_order_of_their_ids():
    interactions = Interactions.from_ids(np.array([7, 3, 7]), np.array([50, 40, 40]))
    assert interactions.user_ids.tolist() == [3, 7]
    assert interactions.item_ids.tolist() == [40, 50]
    assert interactions.offsets.tolist() == [0, 1, 3]
    assert interactions.items.tolist() == [0, 1, 0]


def test_timestamps_order_a_user_and_ties_keep_the_order_of_the_rows():
    users, items, times = np.array([1, 1, 1, 1]), np.array([4, 3, 2, 1]), np.array([5, 5, 1, 5])
    assert Interactions.from_ids(users, items, times).items.tolist() == [1, 3, 2, 0]


def test_a_declared_catalogue_keeps_items_that_never_occur():
    interactions = Interactions.from_ids(np.array([1]), np.array([5]), item_ids=np.arange(1, 10))
    assert interactions.num_items == 9
    assert interactions.items.tolist() == [4]
    assert interactions.item_counts().tolist() == [0, 0, 0, 0, 1, 0, 0, 0, 0]


def test_last_items_are_padded_on_the_left():
    histories = Histories(np.array([1, 2, 3, 4], np.int32), np.array([0, 3, 3, 4]))
    assert histories.last(2).tolist() == [[2, 3], [-1, -1], [-1, 4]]
    assert Histories(np.array([], np.int32), np.array([0, 0])).last(2).tolist() == [[-1, -1]]


def test_histories_have_the_order_of_the_given_users():
    interactions = interactions_from([[0, 1], [2], [3, 4, 5]])
    histories = interactions.histories(np.array([2, 0, 2]))
    assert histories.items.tolist() == [3, 4, 5, 0, 1, 3, 4, 5]
    assert histories.offsets.tolist() == [0, 3, 5, 8]
    assert histories.rows.tolist() == [0, 0, 0, 1, 1, 2, 2, 2]


def test_without_last_removes_one_item_of_the_given_users_only():
    interactions = interactions_from([[0, 1], [2], [3, 4, 5]])
    shorter = interactions.without_last(np.array([0, 2]))
    assert shorter.items.tolist() == [0, 2, 3, 4]
    assert shorter.offsets.tolist() == [0, 1, 2, 4]
    assert interactions.last_items(np.array([0, 2])).tolist() == [1, 5]


def test_distinct_items_are_sorted_within_each_user():
    items, offsets = interactions_from([[5, 1, 5], [2], [4, 0]]).distinct_items()
    assert items.tolist() == [1, 4, 2, 0, 3]  # ids 0, 1, 2, 4, 5 are numbered 0 to 4
    assert offsets.tolist() == [0, 2, 3, 5]


def test_tied_share_counts_consecutive_interactions_of_the_same_user_only():
    users, items = np.array([1, 1, 1, 2, 2]), np.arange(5)
    assert Interactions.from_ids(users, items, np.array([7, 7, 8, 8, 9])).tied_share() == pytest.approx(1 / 3)
    assert Interactions.from_ids(users, items).tied_share() is None


@pytest.mark.parametrize("other", [[[0, 1, 2], [3]], [[0, 2], [1, 3]], [[0, 1], [2]]])
def test_the_digest_differs_when_the_sequences_differ(other):
    base = interactions_from([[0, 1], [2, 3]], 4)
    assert base.digest() == interactions_from([[0, 1], [2, 3]], 4).digest()
    assert base.digest() != interactions_from(other, 4).digest()
    assert base.digest() != interactions_from([[0, 1], [2, 3]], 5).digest()
