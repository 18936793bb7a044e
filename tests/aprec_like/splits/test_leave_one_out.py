import numpy as np
import pytest

from aprec_like.errors import InputError
from aprec_like.splits import LeaveOneOut
from tests.conftest import interactions_from

SEQUENCES = [[0, 1, 2, 3], [4], [1, 2], [3, 2, 1], [0, 4, 5]]


def test_the_last_item_is_the_test_target_and_users_with_one_item_have_none():
    split = LeaveOneOut(num_validation_users=1).split(interactions_from(SEQUENCES))
    assert split.test.users.tolist() == [0, 2, 3, 4]
    assert split.test.targets.tolist() == [3, 2, 1, 5]
    assert split.test.histories().items.tolist() == [0, 1, 2, 1, 3, 2, 0, 4]


def test_a_validation_target_is_left_out_of_training_but_known_at_test_time():
    split = LeaveOneOut(num_validation_users=3).split(interactions_from(SEQUENCES))
    assert split.validation.users.tolist() == [0, 3, 4]
    assert split.validation.targets.tolist() == [2, 2, 4]
    assert split.train.items.tolist() == [0, 1, 4, 1, 3, 0]
    assert split.validation.histories().items.tolist() == [0, 1, 3, 0]
    assert split.test.known.items.tolist() == [0, 1, 2, 4, 1, 3, 2, 0, 4]


def test_a_target_without_training_interactions_is_not_learnable():
    split = LeaveOneOut(num_validation_users=1).split(interactions_from(SEQUENCES))
    assert split.test.is_learnable().tolist() == [True, True, True, False]


def test_validation_users_depend_on_the_seed_alone():
    interactions = interactions_from([[0, 1, 2]] * 100)
    users = [LeaveOneOut(num_validation_users=10, seed=seed).split(interactions).validation.users for seed in (1, 1, 2)]
    assert users[0].tolist() == users[1].tolist()
    assert users[0].tolist() != users[2].tolist()
    assert len(set(users[0].tolist())) == 10


def test_the_sample_of_validation_users_never_changes():
    """Published splits depend on it: the raw bits of PCG64 for the default seed."""
    split = LeaveOneOut(num_validation_users=5).split(interactions_from([[0, 1, 2]] * 100))
    assert split.validation.users.tolist() == [6, 28, 62, 65, 90]


def test_every_user_is_equally_likely_to_be_a_validation_user():
    interactions = interactions_from([[0, 1, 2]] * 20)
    sampled = np.concatenate(
        [LeaveOneOut(num_validation_users=5, seed=seed).split(interactions).validation.users for seed in range(400)]
    )
    counts = np.bincount(sampled, minlength=20)
    assert counts.min() > 60 and counts.max() < 140  # 100 expected, standard deviation 9


def test_too_few_users_are_refused():
    with pytest.raises(InputError, match="Received: 3 such users; num_validation_users=None takes all"):
        LeaveOneOut(num_validation_users=4).split(interactions_from(SEQUENCES))
    with pytest.raises(ValueError, match="at least 1"):
        LeaveOneOut(num_validation_users=0)


def test_different_splits_have_different_digests():
    interactions = interactions_from([[0, 1, 2]] * 100)
    digests = [LeaveOneOut(num_validation_users=10, seed=seed).split(interactions).digest() for seed in (1, 1, 2)]
    assert digests[0] == digests[1] != digests[2]


def test_all_eligible_users_may_be_validation_users():
    split = LeaveOneOut(num_validation_users=None).split(interactions_from(SEQUENCES))
    assert split.validation.users.tolist() == [0, 3, 4]
    with pytest.raises(InputError, match=r"Received: 0 such users$"):
        LeaveOneOut(num_validation_users=None).split(interactions_from([[0, 1], [1]]))
