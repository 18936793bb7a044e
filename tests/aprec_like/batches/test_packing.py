import numpy as np
import pytest
import tensorflow as tf
from hypothesis import given, settings
from hypothesis import strategies as st

from aprec_like.batches import lay_out
from aprec_like.batches.layouts import Sequences
from aprec_like.batches.packing import (
    PackedRows,
    first_fit_decreasing,
    num_packed_rows,
    place_sequences,
    sequence_cells,
)
from aprec_like.interactions import PADDING


def test_the_longest_goes_first_into_the_first_row_with_room():
    # 7 + 3 fill the first row, 5 + 3 + 2 the second.
    assert first_fit_decreasing(np.array([2, 3, 7, 3, 5]), 10) == 2
    rows, starts, fits = place_sequences(tf.constant([2, 3, 3, 5, 7]), num_rows=2, max_length=10)
    assert rows.numpy().tolist() == [1, 1, 0, 1, 0]
    assert starts.numpy().tolist() == [8, 5, 7, 0, 0]
    assert bool(fits)


@settings(max_examples=30, deadline=None)
@given(st.lists(st.integers(1, 8), min_size=1, max_size=12))
def test_sequences_never_overlap_and_fit_exactly_where_there_are_rows_enough(lengths):
    lengths = np.sort(lengths)
    needed = first_fit_decreasing(lengths, 8)
    rows, starts, fits = place_sequences(tf.constant(lengths, tf.int32), needed, 8)
    cells = sequence_cells(tf.constant(lengths, tf.int32), rows, starts, 8).numpy()
    used = cells[cells != PADDING]
    assert bool(fits) and len(used) == lengths.sum() == len(set(used.tolist()))
    assert used.max() < needed * 8
    if needed > 1:
        assert not bool(place_sequences(tf.constant(lengths, tf.int32), needed - 1, 8)[2])


def test_packing_must_save_a_tenth_of_the_rows():
    assert num_packed_rows(np.full(100, 10), batch_size=16, max_length=10) is None
    assert num_packed_rows(np.full(100, 5), batch_size=16, max_length=10) == 8


SEQUENCES = ([1, 2, 3, 4, 5, 6], [7], [8, 9], [10, 11, 12])
"""Item i is followed by item i + 100."""


def made_batch(num_rows):
    inputs = np.full((4, 6), PADDING, np.int32)
    for row, items in enumerate(SEQUENCES):
        inputs[row, 6 - len(items) :] = items
    targets = np.where(inputs == PADDING, PADDING, inputs + 100)
    users = tf.constant([50, 51, 52, 53], tf.int64)
    return lay_out(Sequences(users, tf.constant(inputs), tf.constant(targets)), PackedRows(num_rows, 24))


def test_a_packed_batch_has_the_targets_of_every_sequence_in_the_order_of_their_lengths():
    batch = made_batch(num_rows=2)
    assert bool(batch.fits)
    for layout in (batch.packed, batch.unpacked):
        flat = layout.buckets[0].inputs.numpy().reshape(-1)
        is_target = layout.targets.numpy() != PADDING
        assert layout.targets.numpy()[is_target].tolist() == [
            107,
            108,
            109,
            110,
            111,
            112,
            101,
            102,
            103,
            104,
            105,
            106,
        ]
        assert (flat[layout.flat_positions.numpy()] + 100)[is_target].tolist() == layout.targets.numpy()[
            is_target
        ].tolist()
        assert layout.users.numpy()[is_target].tolist() == [51, 52, 52, 53, 53, 53] + [50] * 6
        assert len(set(layout.flat_positions.numpy().tolist())) == len(layout.flat_positions)
        assert not is_target[12:].any()


def test_cells_know_their_sequence_and_their_position_from_the_right_end():
    bucket = made_batch(num_rows=2).packed.buckets[0]
    inputs, positions, segments = (part.numpy() for part in (bucket.inputs, *bucket.packing))
    assert inputs.tolist() == [[1, 2, 3, 4, 5, 6], [10, 11, 12, 8, 9, 7]]
    assert positions.tolist() == [[0, 1, 2, 3, 4, 5], [3, 4, 5, 4, 5, 5]]
    assert segments.tolist() == [[3] * 6, [2, 2, 2, 1, 1, 0]]


def test_a_batch_that_needs_more_rows_says_so():
    assert not bool(made_batch(num_rows=1).fits)


@pytest.mark.parametrize("num_rows", [2, 3])
def test_free_cells_hold_padding(num_rows):
    bucket = made_batch(num_rows).packed.buckets[0]
    assert np.sum(bucket.inputs.numpy() == PADDING) == np.sum(bucket.packing.segments.numpy() == PADDING)
    assert np.sum(bucket.inputs.numpy() != PADDING) == 12
