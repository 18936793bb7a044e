"""Training batches as a `tf.data.Dataset`: which inputs a network sees and which targets it predicts where."""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
import tensorflow as tf
from typing_extensions import override

from aprec_like.batches.layouts import (
    STATIC,
    AnyBatch,
    Batch,
    Layout,
    PackedRows,
    Sequences,
    bucketed_batch,
    cast_batch,
    cheapest_num_buckets,
    static_batch,
    unpacked_batch,
)
from aprec_like.batches.packing import num_packed_rows, packed_batch
from aprec_like.batches.time_gaps import TimeGaps
from aprec_like.devices import has_gpu
from aprec_like.errors import InputError
from aprec_like.interactions import PADDING, Interactions
from aprec_like.out_of_core import share_tensor
from aprec_like.types import Array, Tensor


class FlatSequences(NamedTuple):
    """The training data as tensors.

    items: (interactions,) the sequences of all users, one after the other.
    offsets: (users + 1,) the start of each user's sequence in `items`, then the end of the last one.
    gaps: (interactions,) codes of time gaps; `None` if the examples have none.
    """

    items: Tensor
    offsets: Tensor
    gaps: Tensor | None = None

    def last(self, users: Tensor, length: int) -> Tensor:
        """(batch, length) the last training items of users, padded on the left."""
        return self._last_values(self.items, users, length, padding=PADDING)

    def last_gaps(self, users: Tensor, length: int) -> tuple[Tensor, ...]:
        """(batch, length) the codes of the time gaps of the same items, 0 for padding; nothing without codes."""
        return () if self.gaps is None else (self._last_values(self.gaps, users, length, padding=0),)

    def _last_values(self, values: Tensor, users: Tensor, length: int, padding: int) -> Tensor:
        starts, ends = tf.gather(self.offsets, users), tf.gather(self.offsets, users + 1)
        positions = ends[:, None] + tf.range(-length, 0, dtype=self.offsets.dtype)
        is_item = positions >= starts[:, None]
        return tf.where(is_item, tf.gather(values, tf.where(is_item, positions, 0)), padding)

    def lengths(self, users: Tensor) -> Tensor:
        """(batch,) number of training items of users."""
        return tf.gather(self.offsets, users + 1) - tf.gather(self.offsets, users)


class Examples(ABC):
    """How a model turns training data into inputs and targets. Subclasses are frozen dataclasses."""

    length: int
    """Number of positions of an input, for models of sequences."""

    time_gaps: TimeGaps | None = None
    """Codes of time gaps that `FlatSequences.gaps` holds for `make_batch`; `None` if it needs no times."""

    @abstractmethod
    def cases(self, train: Interactions) -> Array:
        """(cases,) the training cases, as integers that `make_batch` understands; an epoch passes over them once."""

    @abstractmethod
    def make_batch(self, data: FlatSequences, cases: Tensor, seed: Tensor, layout: Layout) -> AnyBatch:
        """Make a batch from (batch,) cases; everything random in it is a function of the (2,) seed.

        With the layout STATIC no padding is cut, and every position has a target or PADDING.
        """

    def input_lengths(self, train: Interactions) -> Array | None:
        """(cases,) lengths of the inputs without padding; `None` if padding must not be cut."""
        return None

    def max_targets(self, batch_size: int) -> int:
        """Maximum number of targets of a batch."""
        return batch_size

    def best_layout(self, train: Interactions, batch_size: int) -> Layout:
        """The layout of batches that makes a training step fastest on this machine."""
        lengths = self.input_lengths(train)
        if not has_gpu():
            return 1 if lengths is None else cheapest_num_buckets(lengths, batch_size)
        num_rows = None if lengths is None else num_packed_rows(lengths, batch_size, self.length)
        return STATIC if num_rows is None else PackedRows(num_rows, self.max_targets(batch_size))


@dataclass(frozen=True)
class ShiftedExamples(Examples):
    """A case is a user; every position predicts the item that follows it.

    Args:
        length: number of positions; the last `length + 1` training items of a user are used.
        time_gaps: how the inputs' times are given to the network; `None` for a network without times.
    """

    length: int
    time_gaps: TimeGaps | None = None

    @override
    def cases(self, train: Interactions) -> Array:
        return np.flatnonzero(train.lengths >= 2)

    @override
    def input_lengths(self, train: Interactions) -> Array | None:
        return np.minimum(train.lengths[self.cases(train)] - 1, self.length)

    @override
    def max_targets(self, batch_size: int) -> int:
        return batch_size * self.length

    @override
    def make_batch(self, data: FlatSequences, cases: Tensor, seed: Tensor, layout: Layout) -> AnyBatch:
        return self._make_batch(data, cases, layout, min_length=1)

    def _make_batch(self, data: FlatSequences, cases: Tensor, layout: Layout, min_length: int) -> AnyBatch:
        window = data.last(cases, self.length + 1)
        inputs = window[:, :-1]
        targets = tf.where(inputs == PADDING, PADDING, window[:, 1:])
        gaps = tuple(codes[:, :-1] for codes in data.last_gaps(cases, self.length + 1))
        return lay_out(Sequences(cases, inputs, targets, gaps), layout, min_length)


@dataclass(frozen=True)
class PaddedExamples(ShiftedExamples):
    """As `ShiftedExamples`, but all inputs have `length` positions, padding included: right for any causal network.

    A network that gives the same states whatever the padding, and knows of sequences that share a row (`packing`),
    trains faster with `ShiftedExamples`.
    """

    @override
    def input_lengths(self, train: Interactions) -> None:
        return None

    @override
    def make_batch(self, data: FlatSequences, cases: Tensor, seed: Tensor, layout: Layout) -> AnyBatch:
        return self._make_batch(data, cases, layout, min_length=self.length)


def lay_out(sequences: Sequences, layout: Layout, min_length: int = 1) -> AnyBatch:
    """Make a batch from sequences that are padded on the left."""
    batch, length = sequences.inputs.shape
    if layout == STATIC and not has_gpu():
        return static_batch(sequences, tf.broadcast_to(tf.range(length), [batch, length]))
    if layout == STATIC:
        return sorted_batch(sequences, batch * length)
    sequences, lengths = sort_by_length(sequences)
    if isinstance(layout, PackedRows):
        return packed_batch(sequences, lengths, layout)
    return bucketed_batch(sequences, lengths, layout, min_length)


def sorted_batch(sequences: Sequences, num_targets: int) -> Batch:
    """Make a batch of static shape in which sequences and targets have the order that they have in buckets."""
    return unpacked_batch(sort_by_length(sequences)[0], num_targets)


def sort_by_length(sequences: Sequences) -> tuple[Sequences, Tensor]:
    """Return the sequences in the order of their lengths, and the lengths."""
    lengths = tf.reduce_sum(tf.cast(sequences.inputs != PADDING, tf.int32), axis=1)
    order = tf.argsort(lengths, stable=True)
    ordered: Sequences = tf.nest.map_structure(lambda values: tf.gather(values, order), sequences)
    return ordered, tf.gather(lengths, order)


@dataclass(frozen=True)
class BatchSettings:
    """How training cases become batches.

    Args:
        batch_size: cases per batch.
        max_steps: maximum number of batches in an epoch, which is otherwise one pass over the cases.
        with_replacement: sample cases with replacement instead of passing over them.
        layout: of batches; `None` chooses by cost, STATIC gives all batches the same shape.
    """

    batch_size: int
    max_steps: int
    with_replacement: bool = False
    layout: Layout | None = None


def num_steps_per_epoch(num_cases: int, settings: BatchSettings) -> int:
    """Number of full batches of distinct cases, at most `max_steps`; 1 if there are fewer cases than `batch_size`."""
    return min(settings.max_steps, max(1, num_cases // settings.batch_size))


def make_batches(
    train: Interactions, examples: Examples, settings: BatchSettings, seed: int, *, start: tuple[int, int] = (0, 0)
) -> tf.data.Dataset:
    """Make an infinite dataset of batches, epoch after epoch, each epoch in a new random order of the cases.

    Batch i of epoch e is a pure function of (seed, e, i), so a run can resume from any step of any epoch. Batches are
    gathered from flat arrays in the graph, without Python code per user or per batch. Cases left over after the last
    full batch of an epoch are skipped.

    Args:
        train: the training interactions.
        examples: how they become inputs and targets.
        settings: size, order and shape of batches.
        seed: seed of everything random.
        start: first epoch and first step in it, both from 0.
    """
    cases = examples.cases(train)
    if len(cases) == 0:
        raise InputError("training needs a user with at least two training interactions. Received: none")
    num_steps = num_steps_per_epoch(len(cases), settings)
    batch_size = min(settings.batch_size, len(cases))
    layout = examples.best_layout(train, batch_size) if settings.layout is None else settings.layout
    all_cases = tf.constant(cases)
    gaps = None if examples.time_gaps is None else share_tensor(examples.time_gaps.all_codes(train))
    data = FlatSequences(share_tensor(train.items), share_tensor(train.offsets), gaps)

    def epoch_cases(epoch: Tensor) -> tf.data.Dataset:
        epoch_seed = [tf.constant(seed, tf.int64), epoch]
        if settings.with_replacement:
            shape = [num_steps * batch_size]
            drawn = tf.random.stateless_uniform(shape, epoch_seed, maxval=len(cases), dtype=tf.int64, alg="philox")
            chosen = tf.gather(all_cases, drawn)
        else:
            chosen = tf.random.experimental.stateless_shuffle(all_cases, seed=epoch_seed, alg="philox")
        batches = tf.reshape(chosen[: num_steps * batch_size], [num_steps, batch_size])
        step_numbers = epoch * num_steps + tf.range(num_steps, dtype=tf.int64)
        seeds = tf.stack([tf.fill([num_steps], tf.constant(seed, tf.int64)), step_numbers], axis=1)
        return tf.data.Dataset.from_tensors((batches, seeds)).unbatch()

    def make_batch(cases: Tensor, seed: Tensor) -> AnyBatch:
        batch = examples.make_batch(data, cases, seed, layout)
        # On a GPU TensorFlow keeps int32 arrays in host memory, int64 ones on the device.
        return cast_batch(batch, tf.int64) if has_gpu() else batch

    first_epoch, first_step = start
    epochs = tf.data.Dataset.range(first_epoch, tf.int64.max)
    cases_and_seeds = epochs.flat_map(epoch_cases).skip(first_step)
    batches = cases_and_seeds.map(make_batch, num_parallel_calls=2, deterministic=True).prefetch(4)
    # Rewriting the graph, which has nothing to gain here, would copy the training data into memory.
    options = tf.data.Options()
    options.experimental_optimization.apply_default_optimizations = False
    options.autotune.enabled = False
    return batches.with_options(options)
