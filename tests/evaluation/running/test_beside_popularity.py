"""A network's ranking beside Popularity's."""

import numpy as np
import pytest

from aprec_like.models import Popularity
from aprec_like.ranking import rank
from aprec_like.splits import LeaveOneOut
from aprec_like.training.state import EpochRecord
from evaluation.running.beside_popularity import compare_with_popularity, loss_change


def records(*losses):
    return [EpochRecord(number, loss, 0.1, False, 1.0) for number, loss in enumerate(losses, start=1)]


@pytest.mark.parametrize(("losses", "expected"), [((2.0,), 0.0), ((2.0, 1.0), -0.5), (range(20, 10, -1), 11 / 13 - 1)])
def test_the_loss_changes_over_the_last_fifth_of_the_epochs(losses, expected):
    assert loss_change(records(*losses)) == pytest.approx(expected)


def test_popularity_is_the_same_as_popularity(circle):
    split = LeaveOneOut(50).split(circle)
    rankings = rank(Popularity().fit(split.train), split.test, exclude_seen=True, depth=20)
    beside = compare_with_popularity(rankings, split.train, split.test, exclude_seen=True)
    assert beside["overlap"] == 1 and beside["model"] == beside["popularity"]


def test_the_overlap_is_that_of_sets_of_items(circle):
    """The oracle: sets of the first ten items of Popularity and of a scorer of the reversed order."""
    split = LeaveOneOut(50).split(circle)
    counts = split.train.item_counts()
    reverse = type(Popularity().fit(split.train))(counts.max() - counts)
    rankings = rank(reverse, split.test, exclude_seen=True, depth=10)
    popular = rank(Popularity().fit(split.train), split.test, exclude_seen=True, depth=10)
    pairs = zip(rankings.top_items.tolist(), popular.top_items.tolist(), strict=True)
    expected = np.mean([len(set(ours) & set(theirs)) / 10 for ours, theirs in pairs])
    beside = compare_with_popularity(rankings, split.train, split.test, exclude_seen=True)
    assert 0 < expected < 1 and beside["overlap"] == pytest.approx(expected)
    gains = np.where(popular.ranks <= 10, 1 / np.log2(popular.ranks + 1), 0)
    assert beside["popularity"] == pytest.approx(gains.mean())
