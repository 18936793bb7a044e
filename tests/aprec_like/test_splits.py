import numpy as np
import pytest

from aprec_like.errors import InputError
from aprec_like.interactions import Interactions
from aprec_like.splits import AsGiven, LeaveOneOut, TemporalSplit, leakage_of_leave_one_out
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


def test_a_target_that_nobody_has_before_is_not_learnable():
    split = LeaveOneOut(num_validation_users=1).split(interactions_from(SEQUENCES))
    assert split.test.is_learnable().tolist() == [True, True, True, False]


def test_validation_users_are_drawn_by_the_seed_alone():
    interactions = interactions_from([[0, 1, 2]] * 100)
    users = [LeaveOneOut(10, seed).split(interactions).validation.users for seed in (1, 1, 2)]
    assert users[0].tolist() == users[1].tolist()
    assert users[0].tolist() != users[2].tolist()
    assert len(set(users[0].tolist())) == 10


def test_the_draw_never_changes():
    """Published splits depend on it: PCG64's raw bits for this seed."""
    split = LeaveOneOut(5).split(interactions_from([[0, 1, 2]] * 100))
    assert split.validation.users.tolist() == [6, 28, 62, 65, 90]


def test_every_user_is_equally_likely_to_validate():
    interactions = interactions_from([[0, 1, 2]] * 20)
    drawn = np.concatenate([LeaveOneOut(5, seed).split(interactions).validation.users for seed in range(400)])
    counts = np.bincount(drawn, minlength=20)
    assert counts.min() > 60 and counts.max() < 140  # 100 expected, standard deviation 9


def test_too_few_users_are_refused():
    with pytest.raises(InputError, match="Received: 3 such users"):
        LeaveOneOut(num_validation_users=4).split(interactions_from(SEQUENCES))
    with pytest.raises(ValueError, match="at least 1"):
        LeaveOneOut(num_validation_users=0)


def test_the_digest_tells_splits_apart():
    interactions = interactions_from([[0, 1, 2]] * 100)
    digests = [LeaveOneOut(10, seed).split(interactions).digest() for seed in (1, 1, 2)]
    assert digests[0] == digests[1] != digests[2]


def test_all_users_that_can_may_be_validation_users():
    split = LeaveOneOut(num_validation_users=None).split(interactions_from(SEQUENCES))
    assert split.validation.users.tolist() == [0, 3, 4]
    with pytest.raises(InputError, match="Received: 0 such users"):
        LeaveOneOut(num_validation_users=None).split(interactions_from([[0, 1], [1]]))


def timed(events: list[tuple[int, int, int]]) -> Interactions:
    """From (user, item, time)."""
    return Interactions.from_ids(*np.array(events).T)


# Ten moments; user 0 lives through all of them, 1 ends early, 2 comes late, 3 has one event before the test moment.
EVENTS = [
    *[(0, time, time) for time in range(0, 20, 2)],
    *[(1, 20 + time, time) for time in (1, 3)],
    *[(2, 30 + time, time) for time in (17, 19)],
    *[(3, 40 + time, time) for time in (5, 18)],
]


def test_a_temporal_split_learns_nothing_from_the_future():
    interactions = timed(EVENTS)
    split = TemporalSplit(test_share=0.25, validation_share=0.25).split(interactions)
    test_moment = interactions.timestamps[~np.isin(interactions.timestamps, split.test.known.timestamps)].min()
    assert split.test.known.timestamps.max() < test_moment
    assert split.train.timestamps.max() < split.test.known.timestamps.max()
    # The share of interactions that lie at or after the moment is the one asked for, but for ties and rounding.
    assert interactions.num_interactions - split.test.known.num_interactions == 4
    assert split.test.users.tolist() == [0, 3]
    ids = interactions.item_ids[split.test.targets]
    assert ids.tolist() == [18, 58]
    assert interactions.user_ids[split.validation.users].tolist() == [0]


@pytest.mark.parametrize("seed", range(5))
def test_a_temporal_split_against_a_plain_loop(seed):
    random = np.random.default_rng(seed)
    columns = (random.integers(limit, size=300).tolist() for limit in (20, 50, 100))
    events = list(zip(*columns, strict=True))
    interactions = timed(events)
    split = TemporalSplit(0.2, 0.1).split(interactions)
    moment = min(set(interactions.timestamps.tolist()) - set(split.test.known.timestamps.tolist()))
    users, targets = [], []
    for row, user in enumerate(interactions.user_ids):
        own = sorted((event for event in events if event[0] == user), key=lambda event: event[2])
        before = [event for event in own if event[2] < moment]
        if before and len(before) < len(own):
            users.append(row)
            targets.append(own[len(before)][1])
    assert split.test.users.tolist() == users
    assert interactions.item_ids[split.test.targets].tolist() == targets
    share = np.mean(interactions.timestamps >= moment)
    assert 0.15 <= share <= 0.25
    # Training ends before the moment that a tenth of what is known lies at or after.
    known = sorted(event[2] for event in events if event[2] < moment)
    validation_moment = known[int(np.ceil(0.9 * len(known)))]
    assert split.train.num_interactions == sum(time < validation_moment for time in known)


def test_a_temporal_split_needs_timestamps_and_users_on_both_sides():
    with pytest.raises(InputError, match="needs timestamps"):
        TemporalSplit().split(interactions_from(SEQUENCES))
    with pytest.raises(InputError, match="no interaction before"):
        TemporalSplit().split(timed([(0, 1, 5), (0, 2, 5), (1, 1, 5)]))
    with pytest.raises(InputError, match="no validation user"):
        TemporalSplit().split(timed([(user, user, user) for user in range(20)]))
    with pytest.raises(ValueError, match="between 0 and 1"):
        TemporalSplit(test_share=1.5)


def test_leakage_counts_what_is_learned_after_what_is_predicted():
    # Targets at 3 and 10; training interactions at 1, 2, 4, 6 and 10: of five, three lie after 3 and none after 10.
    interactions = timed([(0, 1, 1), (0, 2, 2), (0, 3, 3), (1, 1, 4), (1, 2, 6), (1, 3, 10), (1, 4, 10)])
    leakage = leakage_of_leave_one_out(interactions)
    assert (leakage.train_interactions, leakage.after_a_target) == (5, 3)
    assert leakage.mean_share_after == pytest.approx(0.3)
    assert leakage_of_leave_one_out(interactions_from(SEQUENCES)) is None


def test_a_given_split_needs_to_be_given():
    with pytest.raises(InputError, match="PreSplitFolder"):
        AsGiven().split(interactions_from(SEQUENCES))
