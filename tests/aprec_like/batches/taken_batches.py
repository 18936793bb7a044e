"""The first batches of small data, for tests of examples and batches."""

import itertools

import numpy as np
import tensorflow as tf

from aprec_like.batches import BatchSettings, ShiftedExamples, make_batches
from aprec_like.batches.layouts import STATIC


def take_batches(
    interactions, count, length=3, batch_size=2, max_steps=256, seed=1, examples=None, start=(0, 0), **options
):
    """The first `count` batches as NumPy arrays, of static shape by default."""
    settings = BatchSettings(batch_size, max_steps, **({"layout": STATIC} | options))
    batches = make_batches(interactions, examples or ShiftedExamples(length), settings, seed, start=start)
    return [tf.nest.map_structure(lambda tensor: tensor.numpy(), batch) for batch in itertools.islice(batches, count)]


def first_inputs(batch):
    """(batch, length) inputs of a batch in one bucket."""
    return batch.buckets[0].inputs


def all_users(batch):
    """(batch,) the user of every sequence."""
    return np.concatenate([bucket.users for bucket in batch.buckets])


def targets_by_position(batch):
    """(batch, length) targets of a batch in one bucket."""
    whole = np.full(first_inputs(batch).size, -1)
    whole[batch.flat_positions] = batch.targets
    return whole.reshape(first_inputs(batch).shape)
