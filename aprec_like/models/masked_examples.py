"""Training examples of BERT4Rec: random items of a sequence are masked and predicted (a Cloze task)."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import tensorflow as tf
from typing_extensions import override

from aprec_like.batches import Examples, FlatSequences, lay_out, sorted_batch
from aprec_like.batches.layouts import STATIC, AnyBatch, Layout, Sequences, static_batch
from aprec_like.devices import has_gpu
from aprec_like.interactions import MASK, PADDING, Interactions
from aprec_like.types import Array, Tensor


@dataclass(frozen=True)
class MaskedExamples(Examples):
    """A case is a user; some items are masked and predicted from the items on both sides of them.

    Args:
        length: number of a user's last training items that are used.
        probability: share of items to mask, of all the training items of the user.
        max_masks: maximum number of masked items; at least one item is always masked.
        is_padding_kept: whether the model attends to padding, which then must not be cut.
    """

    length: int
    probability: float
    max_masks: int
    is_padding_kept: bool = False

    @override
    def cases(self, train: Interactions) -> Array:
        return np.flatnonzero(train.lengths >= 1)

    @override
    def input_lengths(self, train: Interactions) -> Array | None:
        return None if self.is_padding_kept else np.minimum(train.lengths[self.cases(train)], self.length)

    @override
    def max_targets(self, batch_size: int) -> int:
        return batch_size * self.max_masked

    @override
    def make_batch(self, data: FlatSequences, cases: Tensor, seed: Tensor, layout: Layout) -> AnyBatch:
        """Masked positions are sampled without replacement, all real positions with equal probability."""
        window = data.last(cases, self.length)
        is_item = window != PADDING
        order = tf.random.stateless_uniform(tf.shape(window), seed, dtype=tf.float32, alg="philox")
        positions = tf.argsort(tf.where(is_item, order, 2.0), axis=1, stable=True)[:, : self.max_masked]
        num_items = tf.reduce_sum(tf.cast(is_item, tf.int32), axis=1)
        counts = tf.minimum(self.num_masks(data.lengths(cases)), num_items)
        is_drawn = tf.range(self.max_masked)[None] < counts[:, None]
        is_masked = tf.reduce_any((positions[:, :, None] == tf.range(self.length)) & is_drawn[:, :, None], axis=1)
        inputs = tf.where(is_masked, MASK, window)
        if layout == STATIC and not has_gpu():
            targets = tf.where(is_drawn, tf.gather(window, positions, batch_dims=1), PADDING)
            return static_batch(Sequences(cases, inputs, targets), positions)
        sequences = Sequences(cases, inputs, tf.where(is_masked, window, PADDING))
        if layout == STATIC:
            return sorted_batch(sequences, self.max_targets(cases.shape[0]))
        return lay_out(sequences, layout, min_length=self.length if self.is_padding_kept else 1)

    @property
    def max_masked(self) -> int:
        """Maximum number of masked positions in a sequence."""
        return min(self.length, self.max_masks)

    def num_masks(self, lengths: Tensor) -> Tensor:
        """Number of items to mask in sequences of these lengths; halves are rounded to even."""
        rounded = tf.round(self.probability * tf.cast(lengths, tf.float64))
        return tf.minimum(self.max_masks, tf.maximum(1, tf.cast(rounded, tf.int32)))
