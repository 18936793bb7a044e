"""Packing of several sequences into each row of a batch: one static shape with little padding, for GPUs.

A GPU is fast at a few large operations of a shape that never changes. Sequences are placed next to each other in rows
of the full length, longest first, each in the first row with room for it (first-fit decreasing); attention stays within
a sequence. Batches that need more rows than usual are rare; they take the unpacked layout instead.
"""

from __future__ import annotations

import numpy as np
import tensorflow as tf

from aprec_like.batches.layouts import (
    Batch,
    PackedBatch,
    PackedBucket,
    PackedRows,
    Packing,
    Sequences,
    targets_first,
    unpacked_batch,
)
from aprec_like.interactions import PADDING
from aprec_like.types import Array, Tensor

NUM_SIMULATED_BATCHES = 200
MAX_SHARE_OF_ROWS = 0.9
"""Packing must save a tenth of the rows, or sequences stay in rows of their own."""


def num_packed_rows(lengths: Array, batch_size: int, max_length: int) -> int | None:
    """Return the number of rows with the least expected cost: batches that need more take a row per sequence.

    `None` if packing saves too little.
    """
    generator = np.random.default_rng(0)
    needed = [
        first_fit_decreasing(generator.choice(lengths, batch_size, replace=batch_size > len(lengths)), max_length)
        for _ in range(NUM_SIMULATED_BATCHES)
    ]
    rows, counts = np.unique(needed, return_counts=True)
    fits = np.cumsum(counts) / len(needed)
    num_rows = int(rows[np.argmin(fits * rows + (1 - fits) * batch_size)])
    return num_rows if num_rows <= MAX_SHARE_OF_ROWS * batch_size else None


def first_fit_decreasing(lengths: Array, max_length: int) -> int:
    """Return the number of rows of `max_length` that sequences of these lengths are packed into."""
    room = np.full(len(lengths), max_length)
    for length in np.sort(lengths)[::-1]:
        room[np.argmax(room >= length)] -= length
    return int(np.count_nonzero(room < max_length))


def place_sequences(lengths: Tensor, num_rows: int, max_length: int) -> tuple[Tensor, Tensor, Tensor]:
    """Place sequences of ascending lengths: (batch,) rows, (batch,) first columns, and whether all of them fit.

    The row of a sequence that does not fit is PADDING.
    """
    num_sequences = lengths.shape[0]

    def place(number: Tensor, room: Tensor, rows: Tensor, starts: Tensor, fits: Tensor) -> tuple[Tensor, ...]:
        sequence = num_sequences - 1 - number
        length = lengths[sequence]
        has_room = room >= length
        row = tf.where(tf.reduce_any(has_room), tf.argmax(has_room, output_type=tf.int32), PADDING)
        here = tf.range(num_sequences) == sequence
        rows, starts = tf.where(here, row, rows), tf.where(here, max_length - room[tf.maximum(row, 0)], starts)
        room -= tf.where(tf.range(num_rows) == row, length, 0)
        return number + 1, room, rows, starts, fits & (row != PADDING)

    zeros = tf.zeros([num_sequences], tf.int32)
    state = (tf.constant(0), tf.fill([num_rows], max_length), zeros, zeros, tf.constant(True))
    _, _, rows, starts, fits = tf.while_loop(lambda number, *_: number < num_sequences, place, state)
    return rows, starts, fits


def pack(values: Tensor, cells: Tensor, shape: tuple[int, int], fill: int) -> Tensor:
    """Write values into distinct flat cells of an array of this shape; negative cells are left out."""
    size = shape[0] * shape[1]
    flat, places = tf.reshape(values, [-1]), tf.reshape(cells, [-1])
    # One cell more than the array takes what is left out.
    filled = tf.scatter_nd(tf.where(places < 0, size, places)[:, None], flat - fill, [size + 1])
    return tf.reshape(filled[:size], shape) + fill


def sequence_cells(lengths: Tensor, rows: Tensor, starts: Tensor, max_length: int) -> Tensor:
    """(batch, max_length) flat cell of every position of left-padded sequences, PADDING where there is none."""
    columns = tf.range(max_length)[None] - (max_length - lengths)[:, None]
    cells = (rows * max_length + starts)[:, None] + columns
    return tf.where((columns >= 0) & (rows != PADDING)[:, None], cells, PADDING)


def packed_batch(sequences: Sequences, lengths: Tensor, layout: PackedRows) -> PackedBatch:
    """Make a batch from sequences of ascending lengths; targets come first, in the order of the sequences."""
    users, inputs, targets, gaps = sequences
    length, shape = inputs.shape[1], (layout.num_rows, inputs.shape[1])
    rows, starts, fits = place_sequences(lengths, layout.num_rows, length)
    cells = sequence_cells(lengths, rows, starts, length)
    positions = tf.broadcast_to(tf.range(length), inputs.shape)
    numbers = tf.broadcast_to(tf.range(inputs.shape[0])[:, None], inputs.shape)
    packing = Packing(pack(positions, cells, shape, 0), pack(numbers, cells, shape, PADDING))
    packed_gaps = tuple(pack(values, cells, shape, 0) for values in gaps)
    bucket = PackedBucket(users, pack(inputs, cells, shape, PADDING), packing, packed_gaps)
    unpacked = unpacked_batch(sequences, layout.num_targets)
    num_targets = min(layout.num_targets, layout.num_rows * length)
    # Cells of the targets in the same order; after the last target follow the other cells, so that all are distinct.
    is_target = pack(tf.ones_like(inputs), tf.where(targets != PADDING, cells, PADDING), shape, 0) > 0
    others = targets_first(~is_target)
    numbers = tf.range(num_targets) - tf.reduce_sum(tf.cast(is_target, tf.int32))
    target_cells = tf.gather(tf.reshape(cells, [-1]), unpacked.flat_positions[:num_targets])
    flat_positions = tf.where(numbers < 0, tf.cast(target_cells, tf.int64), tf.gather(others, tf.maximum(numbers, 0)))
    packed = Batch((bucket,), unpacked.users[:num_targets], unpacked.targets[:num_targets], flat_positions)
    return PackedBatch(packed, unpacked, tf.cast(fits, tf.int32))
