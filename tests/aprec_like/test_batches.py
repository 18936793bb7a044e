import itertools

import numpy as np
import pytest
import tensorflow as tf
from scipy import stats

from aprec_like.batches import (
    STATIC,
    BatchSettings,
    MaskedExamples,
    PairExamples,
    ShiftedExamples,
    _best_num_pieces,
    make_batches,
    num_steps_per_epoch,
)
from aprec_like.errors import InputError
from tests.conftest import interactions_from


def take(interactions, count, length=3, batch_size=2, max_steps=256, seed=1, examples=None, start=(0, 0), **options):
    settings = BatchSettings(batch_size, max_steps, **({"num_pieces": STATIC} | options))
    batches = make_batches(interactions, examples or ShiftedExamples(length), settings, seed, start=start)
    return [tf.nest.map_structure(lambda tensor: tensor.numpy(), batch) for batch in itertools.islice(batches, count)]


def inputs_of(batch):
    return batch.pieces[0].inputs


def users_of(batch):
    return np.concatenate([piece.users for piece in batch.pieces])


def targets_by_position(batch):
    """(batch, length) targets of a batch in one piece."""
    whole = np.full(inputs_of(batch).size, -1)
    whole[batch.places] = batch.targets
    return whole.reshape(inputs_of(batch).shape)


def test_every_position_predicts_the_next_item():
    batch = take(interactions_from([[0, 1, 2, 3, 4], [5, 6]]), 1)[0]
    rows = {
        user: (items.tolist(), targets.tolist())
        for user, items, targets in zip(users_of(batch), inputs_of(batch), targets_by_position(batch), strict=True)
    }
    assert batch.users.tolist() == np.repeat(users_of(batch), 3).tolist()
    assert rows == {0: ([1, 2, 3], [2, 3, 4]), 1: ([-1, -1, 5], [-1, -1, 6])}


def test_reference_example_of_the_gsasrec_code():
    """REFERENCE: with length 2 the sequence 1..5 gives inputs 3, 4 and labels 4, 5."""
    batch = take(interactions_from([[0, 1, 2, 3, 4]]), 1, length=2)[0]
    assert (inputs_of(batch).tolist(), targets_by_position(batch).tolist()) == ([[2, 3]], [[3, 4]])


def test_users_with_one_training_item_give_no_example():
    users = np.concatenate(
        [users_of(batch) for batch in take(interactions_from([[0, 1], [2], [3, 4]]), 4, batch_size=1)]
    )
    assert set(users.tolist()) == {0, 2}


def test_no_user_to_learn_from_is_an_error():
    with pytest.raises(InputError, match="at least two training interactions"):
        take(interactions_from([[0], [1]]), 1)


def test_an_epoch_has_every_user_at_most_once_in_whole_batches():
    interactions = interactions_from([[0, 1]] * 7)
    assert num_steps_per_epoch(7, BatchSettings(2, 256)) == 3
    epochs = [
        np.concatenate([users_of(batch) for batch in take(interactions, 6)[start : start + 3]]) for start in (0, 3)
    ]
    assert all(len(set(epoch.tolist())) == 6 for epoch in epochs)
    assert epochs[0].tolist() != epochs[1].tolist()


@pytest.mark.parametrize(
    ("users", "batch_size", "steps"), [(6040, 128, 47), (6040, 64, 94), (281428, 128, 256), (5, 128, 1)]
)
def test_steps_per_epoch_are_those_of_the_paper(users, batch_size, steps):
    assert num_steps_per_epoch(users, BatchSettings(batch_size, 256)) == steps


def test_fewer_users_than_a_batch_make_one_batch_of_them_all():
    batch = take(interactions_from([[0, 1]] * 5), 1, batch_size=128)[0]
    assert sorted(users_of(batch).tolist()) == [0, 1, 2, 3, 4]


def test_a_batch_is_a_function_of_seed_epoch_and_step():
    interactions = interactions_from([[0, 1, 2]] * 20)
    whole, again = take(interactions, 25, batch_size=4), take(interactions, 25, batch_size=4)
    for first, second in zip(whole, again, strict=True):
        assert first.users.tolist() == second.users.tolist()
    from_third_epoch = take(interactions, 5, batch_size=4, start=(2, 0))
    assert [batch.users.tolist() for batch in from_third_epoch] == [batch.users.tolist() for batch in whole[10:15]]
    other_seed = take(interactions, 5, batch_size=4, seed=2)
    assert [batch.users.tolist() for batch in other_seed] != [batch.users.tolist() for batch in whole[:5]]


def test_batches_are_built_in_the_graph_without_python():
    batches = make_batches(interactions_from([[0, 1]] * 4, 3), ShiftedExamples(3), BatchSettings(2, 256), seed=1)
    graph = str(tf.raw_ops.DatasetToGraphV2(input_dataset=batches._variant_tensor).numpy())
    assert "FlatMapDataset" in graph
    assert "PyFunc" not in graph
    assert "GeneratorDataset" not in graph


def test_shapes_are_static_so_that_a_step_is_compiled_once():
    settings = BatchSettings(2, 256, num_pieces=STATIC)
    spec = make_batches(interactions_from([[0, 1]] * 4), ShiftedExamples(3), settings, seed=1).element_spec
    assert [tuple(tensor.shape) for tensor in tf.nest.flatten(spec)] == [(2,), (2, 3), (6,), (6,), (6,)]


def test_with_replacement_a_user_can_stand_twice_in_an_epoch():
    interactions = interactions_from([[0, 1]] * 50)
    users = np.concatenate([users_of(batch) for batch in take(interactions, 10, batch_size=5, with_replacement=True)])
    assert len(set(users.tolist())) < 50


MASKED = MaskedExamples(length=200, probability=0.2, max_masks=20)


@pytest.mark.parametrize(("length", "masks"), [(1, 1), (2, 1), (3, 1), (7, 1), (12, 2), (50, 10), (99, 20), (300, 20)])
def test_as_many_items_are_hidden_as_in_the_gsasrec_code(length, masks):
    batch = take(interactions_from([[i % 30 for i in range(length)]] * 2, 30), 1, examples=MASKED)[0]
    assert (inputs_of(batch) == -2).sum(axis=1).tolist() == [masks, masks]
    assert (targets_by_position(batch) != -1).sum(axis=1).tolist() == [masks, masks]


def test_a_hidden_item_is_the_target_of_its_position_and_all_others_stay():
    batch = take(interactions_from([[5, 6, 7, 8, 9, 10, 11, 12, 13, 14]], 20), 1, examples=MaskedExamples(12, 0.3, 5))[
        0
    ]
    items = inputs_of(batch)[0].copy()
    for position, target in zip(batch.places, batch.targets, strict=True):
        if target != -1:
            assert items[position] == -2
            items[position] = target
    assert items.tolist() == [-1, -1, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14]


def test_every_real_position_is_equally_likely_to_be_hidden():
    batches = take(
        interactions_from([list(range(10))] * 500, 10), 20, batch_size=500, examples=MaskedExamples(12, 0.3, 5)
    )
    hidden = sum((inputs_of(batch) == -2).sum(axis=0) for batch in batches)
    assert hidden[:2].tolist() == [0, 0]
    assert stats.chisquare(hidden[2:]).pvalue > 1e-3


def test_masks_are_a_function_of_the_seed_and_change_from_epoch_to_epoch():
    interactions = interactions_from([list(range(10))] * 4, 10)
    first, again, other = (take(interactions, 4, examples=MASKED, seed=seed) for seed in (1, 1, 2))
    assert all((inputs_of(a) == inputs_of(b)).all() for a, b in zip(first, again, strict=True))
    assert any((inputs_of(a) != inputs_of(b)).any() for a, b in zip(first, other, strict=True))
    assert any((inputs_of(a) != inputs_of(b)).any() for a, b in zip(first[:2], first[2:], strict=True))


def test_pairs_pass_over_every_item_of_a_user_once():
    interactions = interactions_from([[0, 1, 0, 0], [2], [3, 4, 3, 5]])
    batches = take(interactions, 3, examples=PairExamples())
    pairs = [(int(user), int(item)) for batch in batches for user, item in zip(batch.users, batch.targets, strict=True)]
    assert sorted(pairs) == [(0, 0), (0, 1), (1, 2), (2, 3), (2, 4), (2, 5)]


@pytest.mark.parametrize("examples", [ShiftedExamples(20), MaskedExamples(20, 0.2, 4)])
@pytest.mark.parametrize("num_pieces", [2, 3, 5, 40])
def test_pieces_hold_the_same_sequences_and_targets_with_less_padding(examples, num_pieces):
    random = np.random.default_rng(0)
    interactions = interactions_from([random.integers(50, size=length).tolist() for length in range(2, 34)], 50)
    options = {"examples": examples, "batch_size": 16}
    (whole,), (cut,) = take(interactions, 1, **options), take(interactions, 1, num_pieces=num_pieces, **options)
    rows = dict(zip(users_of(whole), inputs_of(whole).tolist(), strict=True))
    expected = {
        (user, place % 20, target)
        for user, place, target in zip(whole.users, whole.places, whole.targets, strict=True)
        if target != -1
    }
    found, start = set(), 0
    for piece in cut.pieces:
        width = piece.inputs.shape[1]
        assert width == 20 or width % 8 == 0
        for user, inputs in zip(piece.users, piece.inputs.tolist(), strict=True):
            assert [-1] * (20 - width) + inputs == rows.pop(user)
            for place, target, owner in zip(cut.places, cut.targets, cut.users, strict=True):
                if start <= place < start + width:
                    found.add((owner, place - start + 20 - width, target))
                    assert owner == user
            start += width
    assert not rows and found == expected
    if num_pieces >= 5:  # with two, the shorter half may be as long as the rounded length
        assert sum(piece.inputs.size for piece in cut.pieces) < inputs_of(whole).size


def test_padding_that_a_model_looks_at_is_not_cut():
    interactions = interactions_from([[0, 1], [1, 2], [2, 3, 4, 5]])
    examples = MaskedExamples(12, 0.2, 4, is_padding_kept=True)
    (batch,) = take(interactions, 1, examples=examples, batch_size=3, num_pieces=2)
    assert [piece.inputs.shape[1] for piece in batch.pieces] == [12, 12]


@pytest.mark.parametrize(
    ("lengths", "expected"),
    [
        (np.full(1000, 200), 1),  # nothing to cut
        (np.full(1000, 5), 1),  # short, but all alike
        (np.clip(np.random.default_rng(0).lognormal(4.5, 1, 6000), 18, 200), 4),  # like MovieLens-1M
        (np.clip(np.random.default_rng(0).lognormal(2.2, 0.7, 6000), 4, 200), 4),  # like Steam
    ],
)
def test_a_batch_is_cut_where_it_pays(lengths, expected):
    assert _best_num_pieces(lengths, 128) == expected
