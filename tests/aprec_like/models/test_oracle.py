from pathlib import Path

import numpy as np

from aprec_like.datasets import Lengths, Simulated
from aprec_like.metrics import NDCG
from aprec_like.models import Oracle, Popularity
from aprec_like.ranking import rank
from aprec_like.splits import LeaveOneOut

DATA = Simulated(num_users=2_000, num_items=200, lengths=Lengths(12, 0.4, 5, 40))


def test_the_oracle_scores_by_the_logarithm_of_the_truth():
    histories = DATA.load(Path()).histories(np.arange(10))
    scores = Oracle(DATA).fit(DATA.load(Path())).score(histories)
    truth = DATA.true_probabilities().probabilities(histories)
    np.testing.assert_allclose(np.exp(scores), truth, atol=1e-6)
    assert np.isfinite(scores).all()


def test_the_oracle_beats_popularity_and_its_ranking_is_worth_what_the_truth_says():
    """The expected Recall@1 of ranking by P is the mean of the largest P."""
    test = LeaveOneOut(100).split(DATA.load(Path())).test
    ranks = rank(Oracle(DATA).fit(test.known), test, exclude_seen=True).ranks
    popular = rank(Popularity().fit(test.known), test, exclude_seen=True).ranks
    assert NDCG(10).per_user(ranks).mean() > 2 * NDCG(10).per_user(popular).mean()
    expected = DATA.true_probabilities().probabilities(test.histories()).max(axis=1)
    deviation = np.sqrt(np.sum(expected * (1 - expected))) / len(test)
    assert abs(np.mean(ranks == 1) - expected.mean()) < 4 * deviation
