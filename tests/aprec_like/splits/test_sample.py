import numpy as np
import pytest

from aprec_like.recipe import Evaluation
from aprec_like.splits import LeaveOneOut, sample_cases


def test_a_sample_has_distinct_test_users_with_their_targets_and_the_same_training(circle):
    split = LeaveOneOut(50).split(circle)
    sample = sample_cases(split, 20, seed=7)
    assert len(sample.test) == len(sample.validation) == 20 and sample.sampled_from == 200
    assert (np.diff(sample.test.users) > 0).all()
    target_of = dict(zip(split.test.users, split.test.targets, strict=True))
    assert [target_of[user] for user in sample.test.users] == sample.test.targets.tolist()
    assert sample.train is split.train and sample.test.known is split.test.known
    assert sample.digest() == sample_cases(split, 20, seed=7).digest() != sample_cases(split, 20, seed=8).digest()


def test_every_user_is_equally_likely(circle):
    split = LeaveOneOut(50).split(circle)
    counts = np.zeros(200)
    for seed in range(400):
        counts[sample_cases(split, 20, seed).test.users] += 1
    assert abs(counts / 400 - 0.1).max() < 5 * np.sqrt(0.1 * 0.9 / 400)


def test_fewer_users_than_the_sample_are_all_ranked(circle):
    split = LeaveOneOut(50).split(circle)
    for users in (None, 200, 1_000):
        sample = sample_cases(split, users, seed=1)
        assert sample.digest() == split.digest() and sample.sampled_from is None


def test_settings_of_a_sample_that_cannot_be_meant_are_refused():
    for settings, message in (({"users": 1}, "at least 2 users"), ({"seed": -1}, "a seed from 0")):
        with pytest.raises(ValueError, match=message):
            Evaluation(**settings)
