import pytest
from scipy import stats

from aprec_like.models.masked_examples import MaskedExamples
from tests.aprec_like.batches.taken_batches import first_inputs, take_batches, targets_by_position
from tests.conftest import interactions_from

MASKED = MaskedExamples(length=200, probability=0.2, max_masks=20)


@pytest.mark.parametrize(("length", "masks"), [(1, 1), (2, 1), (3, 1), (7, 1), (12, 2), (50, 10), (99, 20), (300, 20)])
def test_as_many_items_are_masked_as_in_the_gsasrec_code(length, masks):
    batch = take_batches(interactions_from([[i % 30 for i in range(length)]] * 2, 30), 1, examples=MASKED)[0]
    assert (first_inputs(batch) == -2).sum(axis=1).tolist() == [masks, masks]
    assert (targets_by_position(batch) != -1).sum(axis=1).tolist() == [masks, masks]


def test_a_masked_item_is_the_target_of_its_position_and_all_others_stay():
    batch = take_batches(
        interactions_from([[5, 6, 7, 8, 9, 10, 11, 12, 13, 14]], 20),
        1,
        examples=MaskedExamples(length=12, probability=0.3, max_masks=5),
    )[0]
    items = first_inputs(batch)[0].copy()
    for position, target in zip(batch.flat_positions, batch.targets, strict=True):
        if target != -1:
            assert items[position] == -2
            items[position] = target
    assert items.tolist() == [-1, -1, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14]


def test_every_real_position_is_equally_likely_to_be_masked():
    batches = take_batches(
        interactions_from([list(range(10))] * 500, 10),
        20,
        batch_size=500,
        examples=MaskedExamples(length=12, probability=0.3, max_masks=5),
    )
    masked = sum((first_inputs(batch) == -2).sum(axis=0) for batch in batches)
    assert masked[:2].tolist() == [0, 0]
    assert stats.chisquare(masked[2:]).pvalue > 1e-3


def test_masks_are_a_function_of_the_seed_and_change_from_epoch_to_epoch():
    interactions = interactions_from([list(range(10))] * 4, 10)
    first, again, other = (take_batches(interactions, 4, examples=MASKED, seed=seed) for seed in (1, 1, 2))
    assert all((first_inputs(a) == first_inputs(b)).all() for a, b in zip(first, again, strict=True))
    assert any((first_inputs(a) != first_inputs(b)).any() for a, b in zip(first, other, strict=True))
    assert any((first_inputs(a) != first_inputs(b)).any() for a, b in zip(first[:2], first[2:], strict=True))


def test_padding_that_the_model_attends_to_is_not_cut():
    interactions = interactions_from([[0, 1], [1, 2], [2, 3, 4, 5]])
    examples = MaskedExamples(length=12, probability=0.2, max_masks=4, is_padding_kept=True)
    (batch,) = take_batches(interactions, 1, examples=examples, batch_size=3, layout=2)
    assert [bucket.inputs.shape[1] for bucket in batch.buckets] == [12, 12]
