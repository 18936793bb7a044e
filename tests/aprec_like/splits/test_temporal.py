import numpy as np
import pytest

from aprec_like.errors import InputError
from aprec_like.splits import TemporalSplit
from tests.conftest import interactions_from, timed_interactions

# Times 0 to 19; user 0 is active throughout, user 1 ends early, user 2 starts late, user 3 has one event before the
# test time.
EVENTS = [
    *[(0, time, time) for time in range(0, 20, 2)],
    *[(1, 20 + time, time) for time in (1, 3)],
    *[(2, 30 + time, time) for time in (17, 19)],
    *[(3, 40 + time, time) for time in (5, 18)],
]


def test_a_temporal_split_learns_nothing_from_the_future():
    interactions = timed_interactions(EVENTS)
    split = TemporalSplit(test_share=0.25, validation_share=0.25).split(interactions)
    test_time = interactions.timestamps[~np.isin(interactions.timestamps, split.test.known.timestamps)].min()
    assert split.test.known.timestamps.max() < test_time
    assert split.train.timestamps.max() < split.test.known.timestamps.max()
    # The share of interactions at or after the test time is `test_share`, up to ties and rounding.
    assert interactions.num_interactions - split.test.known.num_interactions == 4
    assert split.test.users.tolist() == [0, 3]
    ids = interactions.item_ids[split.test.targets]
    assert ids.tolist() == [18, 58]
    assert interactions.user_ids[split.validation.users].tolist() == [0]


@pytest.mark.parametrize("seed", range(5))
def test_a_temporal_split_equals_a_plain_loop(seed):
    random = np.random.default_rng(seed)
    columns = (random.integers(limit, size=300).tolist() for limit in (20, 50, 100))
    events = list(zip(*columns, strict=True))
    interactions = timed_interactions(events)
    split = TemporalSplit(test_share=0.2, validation_share=0.1).split(interactions)
    test_time = min(set(interactions.timestamps.tolist()) - set(split.test.known.timestamps.tolist()))
    users, targets = [], []
    for row, user in enumerate(interactions.user_ids):
        sequence = sorted((event for event in events if event[0] == user), key=lambda event: event[2])
        before = [event for event in sequence if event[2] < test_time]
        if before and len(before) < len(sequence):
            users.append(row)
            targets.append(sequence[len(before)][1])
    assert split.test.users.tolist() == users
    assert interactions.item_ids[split.test.targets].tolist() == targets
    share = np.mean(interactions.timestamps >= test_time)
    assert 0.15 <= share <= 0.25
    # A tenth of the known interactions lies at or after the validation time, where training ends.
    known = sorted(event[2] for event in events if event[2] < test_time)
    validation_time = known[int(np.ceil(0.9 * len(known)))]
    assert split.train.num_interactions == sum(time < validation_time for time in known)


def test_a_temporal_split_needs_timestamps_and_users_on_both_sides():
    with pytest.raises(InputError, match="needs timestamps"):
        TemporalSplit().split(interactions_from([[0, 1, 2]]))
    with pytest.raises(InputError, match="no interaction before"):
        TemporalSplit().split(timed_interactions([(0, 1, 5), (0, 2, 5), (1, 1, 5)]))
    with pytest.raises(InputError, match="no validation user"):
        TemporalSplit().split(timed_interactions([(user, user, user) for user in range(20)]))
    with pytest.raises(ValueError, match="between 0 and 1"):
        TemporalSplit(test_share=1.5)
