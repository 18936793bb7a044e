"""Time gaps: only times of the past are seen, in training and in ranking, and they can be learned from."""

from dataclasses import replace

import numpy as np
import pytest
import tensorflow as tf

from aprec_like.batches import BatchSettings, TimeGaps, make_batches
from aprec_like.batches.layouts import STATIC, PackedRows
from aprec_like.devices import pretend_gpu
from aprec_like.errors import InputError
from aprec_like.interactions import Interactions
from aprec_like.losses import Softmax
from aprec_like.models import HSTU, GRU4Rec, SASRec
from aprec_like.optimizers import Adam
from aprec_like.ranking import NetworkScorer, rank
from aprec_like.splits import LeaveOneOut
from aprec_like.training import EarlyStopping, Trained, Training, train
from tests.conftest import interactions_from

NUM_ITEMS = 20
SIZES = {"max_length": 8, "embedding_dim": 16, "dropout_rate": 0.1, "time_gaps": TimeGaps()}
MODELS = {
    "SASRec": SASRec(num_blocks=1, **SIZES),
    "HSTU": SASRec(num_blocks=2, num_heads=2, block=HSTU(), **SIZES),
    "GRU4Rec": GRU4Rec(**SIZES),
}
by_name = pytest.mark.parametrize("model", MODELS.values(), ids=list(MODELS))
TRAINING = Training(batch_size=32, max_epochs=40, early_stopping=EarlyStopping(patience=40), optimizer=Adam(0.01))


def random_network(model, seed=0):
    network, random = model.build(NUM_ITEMS), np.random.default_rng(seed)
    network.set_weights([random.normal(scale=0.5, size=weight.shape) for weight in network.get_weights()])
    return network


def paced(num_users=300, length=9, seed=0) -> Interactions:
    """Users on a circle: an interaction a minute after the one before is followed by the next item, one a day after it
    by the item after that. The time of the following interaction says nothing."""
    random = np.random.default_rng(seed)
    is_late = random.random((num_users, length)) < 0.5
    steps = np.where(is_late, 2, 1)[:, :-1]
    starts = random.integers(NUM_ITEMS, size=(num_users, 1))
    items = (np.concatenate([starts, starts + np.cumsum(steps, axis=1)], axis=1)) % NUM_ITEMS
    gaps = np.where(is_late, 86_400, 60) + random.integers(30, size=is_late.shape)
    times = np.cumsum(gaps, axis=1)
    # The gap before interaction i decides the step after it; interaction 0 has none, so its step is a guess.
    data = interactions_from(items.tolist(), NUM_ITEMS)
    return replace(data, timestamps=times.reshape(-1))


def later(data: Interactions, is_changed) -> Interactions:
    """The same interactions with the changed ones, and all after them, an arbitrary time later."""
    shift = np.where(is_changed, 10**7 + np.arange(data.num_interactions) ** 2, 0)
    return replace(data, timestamps=data.timestamps + shift)


def test_gaps_double_and_start_anew_with_every_user():
    times = np.array([5, 5, 6, 8, 12, 10**12, 7, 7.5, 3.0])
    codes = TimeGaps(num_buckets=5).codes(times, np.array([0, 6, 6, 9, 9]))
    assert codes.tolist() == [0, 1, 2, 3, 4, 5, 0, 1, 1]  # the last gap is negative
    assert codes.dtype == np.int32 and TimeGaps(5).num_codes == 6
    data = replace(interactions_from([[0, 1, 2], [1, 2]]), timestamps=times[:5])
    assert TimeGaps().all_codes(data).tolist() == [0, 1, 2, 0, 4]


@by_name
@pytest.mark.parametrize(
    "layout", [1, 4, STATIC, PackedRows(20, 192)], ids=["one bucket", "buckets", "static", "packed"]
)
def test_in_training_a_state_sees_no_time_after_its_own_interaction(model, layout):
    """Whatever is predicted from a state has the same logits when the target, and all after it, come at other times."""
    random = np.random.default_rng(1)
    lengths = random.integers(2, 12, size=24)
    data = interactions_from([random.integers(NUM_ITEMS, size=length).tolist() for length in lengths], NUM_ITEMS)
    data = replace(data, timestamps=np.sort(random.integers(10**6, size=data.num_interactions)))
    network, first = random_network(model), data.offsets[:-1][data.rows]
    positions = np.arange(data.num_interactions) - first
    num_changed = 0
    with pretend_gpu():  # packed rows are for GPUs; the other layouts work as on a CPU
        for changed in (1, 4):
            states = []
            for version in (data, later(data, positions >= changed)):
                settings = BatchSettings(24, 1, layout=layout)
                batch = next(iter(make_batches(version, model.examples(), settings, seed=1)))
                if isinstance(layout, PackedRows):
                    assert batch.fits
                    batch = batch.packed
                states.append((network.target_states(batch).numpy(), batch))
            (before, batch), (after, _) = states
            # A target at position p of its sequence is predicted from the interaction at p - 1.
            is_target = batch.targets.numpy() >= 0
            target_positions = positions_of(batch, data, model)
            is_past = is_target & (target_positions <= changed)
            assert is_past.any() and (is_target & ~is_past).any()
            np.testing.assert_array_equal(before[is_past], after[is_past])
            num_changed += np.sum(np.abs(before - after)[is_target & ~is_past].max(axis=-1) > 1e-4)
    assert num_changed > 30  # later states do see the changed times


def positions_of(batch, data, model):
    """Position of every target in the sequence of its user: targets of a user are in order and end with the last."""
    users = batch.users.numpy()
    is_target, found = batch.targets.numpy() >= 0, np.full(len(users), -1)
    for user in np.unique(users):
        places = np.flatnonzero((users == user) & is_target)
        length = data.lengths[user]
        found[places] = np.arange(length - len(places), length)
    return found


@by_name
@pytest.mark.parametrize(("part", "num_later"), [("validation", 2), ("test", 1)])
def test_in_ranking_no_score_depends_on_the_time_of_the_target(model, part, num_later):
    """The data is split again with other times of the target, and of the test target after that of validation."""
    data, scorer = paced(num_users=60), NetworkScorer(random_network(model))
    places = data.lengths[data.rows] - data.positions  # 1 is the last

    def scores(is_changed):
        held_out = getattr(LeaveOneOut(num_validation_users=None).split(later(data, is_changed)), part)
        rankings = rank(scorer, held_out, exclude_seen=False, depth=NUM_ITEMS)
        return np.concatenate([rankings.target_scores[:, None], rankings.top_scores], axis=1)

    expected = scores(np.zeros(data.num_interactions, bool))
    np.testing.assert_array_equal(scores(places <= num_later), expected)
    assert np.abs(scores(places <= num_later + 1) - expected).max() > 1e-3  # the last known one is seen


@by_name
def test_what_follows_a_gap_is_learned_from_the_gap(model):
    split = LeaveOneOut(num_validation_users=None).split(paced())
    outcome = train(Trained(model, Softmax(), TRAINING), split, seed=1)
    assert np.mean(rank(outcome.scorer, split.test, exclude_seen=False).ranks == 1) > 0.9
    without = train(Trained(replace(model, time_gaps=None), Softmax(), TRAINING), split, seed=1)
    assert np.mean(rank(without.scorer, split.test, exclude_seen=False).ranks == 1) < 0.7  # by chance 0.5


@by_name
def test_data_or_histories_without_times_are_refused(model):
    data = interactions_from([[0, 1, 2], [1, 2, 3]], NUM_ITEMS)
    with pytest.raises(InputError, match="time_gaps needs data with timestamps"):
        make_batches(data, model.examples(), BatchSettings(2, 1), seed=1)
    network = random_network(model)
    with pytest.raises(InputError, match="recommends only for histories with times"):
        network.last_states(data.histories(np.array([0])))
    with pytest.raises(InputError, match="cannot be exported"):
        network.next_item_states(tf.constant([[0, 1]]))
    with pytest.raises(ValueError, match="needs the codes of the gaps"):
        network(tf.constant([[0, 1]]))


def test_times_are_gathered_only_for_networks_that_need_them():
    data = paced(num_users=4)
    assert data.histories(np.arange(2)).timestamps is None
    assert data.histories(np.arange(2), with_times=True).timestamps.shape == (18,)
    spec = make_batches(data, SASRec(max_length=8).examples(), BatchSettings(4, 1), seed=1).element_spec
    assert all(bucket.gaps == () for bucket in spec.buckets)


def test_impossible_settings_are_refused():
    with pytest.raises(ValueError, match="TimeGaps needs num_buckets"):
        TimeGaps(0)
    for model in (SASRec, GRU4Rec):
        with pytest.raises(TypeError, match="needs time_gaps to be a TimeGaps"):
            model(time_gaps=TimeGaps)
