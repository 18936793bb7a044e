import itertools

import numpy as np
import pytest
import tensorflow as tf

from aprec_like.batches import ShiftedExamples, make_batches, steps_per_epoch
from aprec_like.errors import InputError
from tests.conftest import interactions_from


def take(interactions, count, length=3, batch_size=2, max_steps=256, seed=1, **options):
    batches = make_batches(interactions, ShiftedExamples(length), batch_size, max_steps, seed, **options)
    return [tf.nest.map_structure(lambda tensor: tensor.numpy(), batch) for batch in itertools.islice(batches, count)]


def test_every_position_predicts_the_next_item():
    batch = take(interactions_from([[0, 1, 2, 3, 4], [5, 6]]), 1)[0]
    rows = {user: (items.tolist(), targets.tolist()) for user, items, targets in zip(*batch[:3], strict=True)}
    assert rows == {0: ([1, 2, 3], [2, 3, 4]), 1: ([-1, -1, 5], [-1, -1, 6])}


def test_reference_example_of_the_gsasrec_code():
    """REFERENCE: with length 2 the sequence 1..5 gives inputs 3, 4 and labels 4, 5."""
    batch = take(interactions_from([[0, 1, 2, 3, 4]]), 1, length=2)[0]
    assert (batch.items.tolist(), batch.targets.tolist()) == ([[2, 3]], [[3, 4]])


def test_users_with_one_training_item_give_no_example():
    users = np.concatenate([batch.users for batch in take(interactions_from([[0, 1], [2], [3, 4]]), 4, batch_size=1)])
    assert set(users.tolist()) == {0, 2}


def test_no_user_to_learn_from_is_an_error():
    with pytest.raises(InputError, match="at least two training interactions"):
        take(interactions_from([[0], [1]]), 1)


def test_an_epoch_has_every_user_at_most_once_in_whole_batches():
    interactions = interactions_from([[0, 1]] * 7)
    assert steps_per_epoch(7, 2, 256) == 3
    epochs = [np.concatenate([batch.users for batch in take(interactions, 6)[start : start + 3]]) for start in (0, 3)]
    assert all(len(set(epoch.tolist())) == 6 for epoch in epochs)
    assert epochs[0].tolist() != epochs[1].tolist()


@pytest.mark.parametrize(
    ("users", "batch_size", "steps"), [(6040, 128, 47), (6040, 64, 94), (281428, 128, 256), (5, 128, 1)]
)
def test_steps_per_epoch_are_those_of_the_paper(users, batch_size, steps):
    assert steps_per_epoch(users, batch_size, 256) == steps


def test_fewer_users_than_a_batch_make_one_batch_of_them_all():
    batch = take(interactions_from([[0, 1]] * 5), 1, batch_size=128)[0]
    assert sorted(batch.users.tolist()) == [0, 1, 2, 3, 4]


def test_a_batch_is_a_function_of_seed_epoch_and_step():
    interactions = interactions_from([[0, 1, 2]] * 20)
    whole, again = take(interactions, 25, batch_size=4), take(interactions, 25, batch_size=4)
    for first, second in zip(whole, again, strict=True):
        assert first.users.tolist() == second.users.tolist()
    from_third_epoch = take(interactions, 5, batch_size=4, first_epoch=2)
    assert [batch.users.tolist() for batch in from_third_epoch] == [batch.users.tolist() for batch in whole[10:15]]
    other_seed = take(interactions, 5, batch_size=4, seed=2)
    assert [batch.users.tolist() for batch in other_seed] != [batch.users.tolist() for batch in whole[:5]]


def test_rejected_items_are_the_sorted_distinct_training_items_of_the_user():
    batch = take(interactions_from([[3, 1, 3, 0], [2, 4]], 6), 1, with_rejected=True)[0]
    rows = dict(zip(batch.users.tolist(), batch.rejected.tolist(), strict=True))
    assert rows == {0: [0, 1, 3], 1: [2, 4, 6]}


def test_a_user_with_all_items_cannot_reject_the_history():
    with pytest.raises(InputError, match="a user with all"):
        take(interactions_from([[0, 1, 2]], 3), 1, with_rejected=True)


def test_batches_are_built_in_the_graph_without_python():
    batches = make_batches(interactions_from([[0, 1]] * 4, 3), ShiftedExamples(3), 2, 256, 1, with_rejected=True)
    graph = str(tf.raw_ops.DatasetToGraphV2(input_dataset=batches._variant_tensor).numpy())
    assert "FlatMapDataset" in graph
    assert "PyFunc" not in graph
    assert "GeneratorDataset" not in graph


def test_shapes_are_static_so_that_a_step_is_compiled_once():
    spec = make_batches(interactions_from([[0, 1]] * 4), ShiftedExamples(3), 2, 256, 1).element_spec
    assert [tuple(tensor.shape) for tensor in spec] == [(2,), (2, 3), (2, 3), (2, 0)]
