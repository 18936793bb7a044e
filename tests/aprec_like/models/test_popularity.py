import numpy as np

from aprec_like.models import Popularity
from tests.conftest import interactions_from


def test_items_are_scored_by_their_count_the_same_for_everyone():
    interactions = interactions_from([[0, 1, 1], [1, 2]], 4)
    scores = Popularity().fit(interactions).score(interactions.histories(np.array([0, 1])))
    assert scores.tolist() == [[1, 3, 1, 0], [1, 3, 1, 0]]
