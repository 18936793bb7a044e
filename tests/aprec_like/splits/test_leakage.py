import pytest

from aprec_like.splits import leave_one_out_leakage
from tests.conftest import interactions_from, timed_interactions


def test_leakage_counts_training_interactions_later_than_targets():
    # Targets at 3 and 10, training interactions at 1, 2, 4, 6 and 10: three are later than 3, none is later than 10.
    interactions = timed_interactions([(0, 1, 1), (0, 2, 2), (0, 3, 3), (1, 1, 4), (1, 2, 6), (1, 3, 10), (1, 4, 10)])
    leakage = leave_one_out_leakage(interactions)
    assert (leakage.train_interactions, leakage.after_a_target) == (5, 3)
    assert leakage.mean_share_after == pytest.approx(0.3)
    assert leave_one_out_leakage(interactions_from([[0, 1, 2]])) is None
