import numpy as np
import pytest
import tensorflow as tf

from aprec_like.batches import BatchSettings, ShiftedExamples, make_batches, num_steps_per_epoch
from aprec_like.batches.layouts import STATIC, cheapest_num_buckets
from aprec_like.errors import InputError
from aprec_like.models.masked_examples import MaskedExamples
from tests.aprec_like.batches.taken_batches import all_users, first_inputs, take_batches, targets_by_position
from tests.conftest import interactions_from


def test_every_position_predicts_the_next_item():
    batch = take_batches(interactions_from([[0, 1, 2, 3, 4], [5, 6]]), 1)[0]
    rows = {
        user: (items.tolist(), targets.tolist())
        for user, items, targets in zip(all_users(batch), first_inputs(batch), targets_by_position(batch), strict=True)
    }
    assert batch.users.tolist() == np.repeat(all_users(batch), 3).tolist()
    assert rows == {0: ([1, 2, 3], [2, 3, 4]), 1: ([-1, -1, 5], [-1, -1, 6])}


def test_reference_example_of_the_gsasrec_code():
    """REFERENCE: with length 2 the sequence 1..5 gives inputs 3, 4 and labels 4, 5."""
    batch = take_batches(interactions_from([[0, 1, 2, 3, 4]]), 1, length=2)[0]
    assert (first_inputs(batch).tolist(), targets_by_position(batch).tolist()) == ([[2, 3]], [[3, 4]])


def test_users_with_one_training_item_give_no_example():
    users = np.concatenate(
        [all_users(batch) for batch in take_batches(interactions_from([[0, 1], [2], [3, 4]]), 4, batch_size=1)]
    )
    assert set(users.tolist()) == {0, 2}


def test_no_user_to_learn_from_is_an_error():
    with pytest.raises(InputError, match="at least two training interactions"):
        take_batches(interactions_from([[0], [1]]), 1)


def test_an_epoch_has_every_user_at_most_once_in_whole_batches():
    interactions = interactions_from([[0, 1]] * 7)
    assert num_steps_per_epoch(7, BatchSettings(2, 256)) == 3
    epochs = [
        np.concatenate([all_users(batch) for batch in take_batches(interactions, 6)[start : start + 3]])
        for start in (0, 3)
    ]
    assert all(len(set(epoch.tolist())) == 6 for epoch in epochs)
    assert epochs[0].tolist() != epochs[1].tolist()


@pytest.mark.parametrize(
    ("users", "batch_size", "steps"), [(6040, 128, 47), (6040, 64, 94), (281428, 128, 256), (5, 128, 1)]
)
def test_steps_per_epoch_are_those_of_the_paper(users, batch_size, steps):
    assert num_steps_per_epoch(users, BatchSettings(batch_size, 256)) == steps


def test_fewer_users_than_a_batch_make_one_batch_of_them_all():
    batch = take_batches(interactions_from([[0, 1]] * 5), 1, batch_size=128)[0]
    assert sorted(all_users(batch).tolist()) == [0, 1, 2, 3, 4]


def test_a_batch_is_a_function_of_seed_epoch_and_step():
    interactions = interactions_from([[0, 1, 2]] * 20)
    whole, again = take_batches(interactions, 25, batch_size=4), take_batches(interactions, 25, batch_size=4)
    for first, second in zip(whole, again, strict=True):
        assert first.users.tolist() == second.users.tolist()
    from_third_epoch = take_batches(interactions, 5, batch_size=4, start=(2, 0))
    assert [batch.users.tolist() for batch in from_third_epoch] == [batch.users.tolist() for batch in whole[10:15]]
    other_seed = take_batches(interactions, 5, batch_size=4, seed=2)
    assert [batch.users.tolist() for batch in other_seed] != [batch.users.tolist() for batch in whole[:5]]


def test_batches_are_built_in_the_graph_without_python():
    batches = make_batches(interactions_from([[0, 1]] * 4, 3), ShiftedExamples(3), BatchSettings(2, 256), seed=1)
    graph = str(tf.raw_ops.DatasetToGraphV2(input_dataset=batches._variant_tensor).numpy())
    assert "FlatMapDataset" in graph
    assert "PyFunc" not in graph
    assert "GeneratorDataset" not in graph


def test_shapes_are_static_so_that_a_step_is_compiled_once():
    settings = BatchSettings(2, 256, layout=STATIC)
    spec = make_batches(interactions_from([[0, 1]] * 4), ShiftedExamples(3), settings, seed=1).element_spec
    assert [tuple(tensor.shape) for tensor in tf.nest.flatten(spec)] == [(2,), (2, 3), (6,), (6,), (6,)]


def test_with_replacement_a_user_can_be_drawn_twice_in_an_epoch():
    interactions = interactions_from([[0, 1]] * 50)
    users = np.concatenate(
        [all_users(batch) for batch in take_batches(interactions, 10, batch_size=5, with_replacement=True)]
    )
    assert len(set(users.tolist())) < 50


@pytest.mark.parametrize("examples", [ShiftedExamples(20), MaskedExamples(length=20, probability=0.2, max_masks=4)])
@pytest.mark.parametrize("num_buckets", [2, 3, 5, 40])
def test_buckets_hold_the_same_sequences_and_targets_with_less_padding(examples, num_buckets):
    random = np.random.default_rng(0)
    interactions = interactions_from([random.integers(50, size=length).tolist() for length in range(2, 34)], 50)
    options = {"examples": examples, "batch_size": 16}
    (whole,) = take_batches(interactions, 1, **options)
    (cut,) = take_batches(interactions, 1, layout=num_buckets, **options)
    rows = dict(zip(all_users(whole), first_inputs(whole).tolist(), strict=True))
    expected = {
        (user, position % 20, target)
        for user, position, target in zip(whole.users, whole.flat_positions, whole.targets, strict=True)
        if target != -1
    }
    found, start = set(), 0
    for bucket in cut.buckets:
        width = bucket.inputs.shape[1]
        assert width == 20 or width % 8 == 0
        for user, inputs in zip(bucket.users, bucket.inputs.tolist(), strict=True):
            assert [-1] * (20 - width) + inputs == rows.pop(user)
            for position, target, target_user in zip(cut.flat_positions, cut.targets, cut.users, strict=True):
                if start <= position < start + width:
                    found.add((target_user, position - start + 20 - width, target))
                    assert target_user == user
            start += width
    assert not rows and found == expected
    if num_buckets >= 5:  # with two, the shorter half may be as long as the rounded length
        assert sum(bucket.inputs.size for bucket in cut.buckets) < first_inputs(whole).size


@pytest.mark.parametrize(
    ("lengths", "expected"),
    [
        (np.full(1000, 200), 1),  # no padding
        (np.full(1000, 5), 1),  # short, but of equal length
        (np.clip(np.random.default_rng(0).lognormal(4.5, 1, 6000), 18, 200), 4),  # like MovieLens-1M
        (np.clip(np.random.default_rng(0).lognormal(2.2, 0.7, 6000), 4, 200), 4),  # like Steam
    ],
)
def test_batches_have_several_buckets_where_that_is_cheaper(lengths, expected):
    assert cheapest_num_buckets(lengths, 128) == expected
