import numpy as np
import pytest
from scipy import stats

from aprec_like.candidates import UniformCandidates
from aprec_like.errors import InputError
from aprec_like.ranking import rank
from aprec_like.splits import HeldOut, LeaveOneOut
from tests.aprec_like.ranking.test_rank_catalogue import FixedScorer
from tests.conftest import interactions_from

SEQUENCES = [[0, 3, 5, 1], [9, 8, 2, 4], [7, 6, 0]]


def test_candidates_are_uniform_over_what_the_user_has_not_had_in_training():
    split = LeaveOneOut(3).split(interactions_from(SEQUENCES, 10))
    drawn = UniformCandidates(5_000).draw(split.train, split.test)
    assert drawn.shape == (3, 5_000)
    for user, row in enumerate(drawn):
        counts = np.bincount(row, minlength=10)
        known = SEQUENCES[user][:-2]  # neither the test target nor, as all users validate, the one before
        assert counts[known].sum() == 0
        assert stats.chisquare(np.delete(counts, known)).pvalue > 1e-3


def test_the_seed_draws_the_same_candidates_for_every_model():
    split = LeaveOneOut(3).split(interactions_from(SEQUENCES, 10))
    first, again, other = (UniformCandidates(20, seed).draw(split.train, split.test) for seed in (1, 1, 2))
    assert (first == again).all()
    assert (first != other).any()


def test_the_target_is_ranked_among_its_candidates_alone():
    cases = HeldOut(interactions_from([[0, 1, 2, 3, 4]], 5), np.array([0]), np.array([2], np.int32))
    scores = FixedScorer([[5.0, 4.0, 3.0, 3.0, 1.0]])
    ranked = rank(scores, cases, exclude_seen=False, candidates=np.array([[0, 3, 4, 4]]))
    assert ranked.ranks.tolist() == [3.5]
    assert ranked.candidate_ranks.tolist() == [2.5]
    with_itself = rank(scores, cases, exclude_seen=False, candidates=np.array([[0, 2, 2, 4]]))
    assert with_itself.candidate_ranks.tolist() == [2]
    assert rank(scores, cases, exclude_seen=False).candidate_ranks is None


def test_a_user_with_all_items_has_no_candidates():
    interactions = interactions_from([[0, 1, 2, 0, 1]], 3)
    split = LeaveOneOut(1).split(interactions)
    with pytest.raises(InputError, match="a user with all items"):
        UniformCandidates(5).draw(split.train, split.test)
