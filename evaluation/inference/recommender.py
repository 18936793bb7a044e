"""The exported recommender: from histories to the best items, in TensorFlow operations only.

`TopItems` works on item numbers (ONNX has no tables of strings); `Recommender` on the data's own ids (SavedModel).
"""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
import pandas as pd
import tensorflow as tf

from aprec_like.calibration import Probability, SampledSoftmaxProbability, SigmoidProbability
from aprec_like.errors import InputError
from aprec_like.interactions import PADDING
from aprec_like.types import Tensor
from evaluation.inference.catalogue_scores import CatalogueScores

CHUNK_ITEMS = 1 << 16
"""Items scored at once: memory does not grow with the catalogue beyond the model's own tables."""


class TopItems(tf.Module):
    """The best items after histories of item numbers.

    Args:
        model: scores of the catalogue.
        probability: how scores become probabilities; `None` if they don't.
        chunk_items: items scored at once; `None` for all.
    """

    def __init__(
        self, model: CatalogueScores, probability: Probability | None, chunk_items: int | None = CHUNK_ITEMS
    ) -> None:
        super().__init__()
        self.model, self.probability = model, probability
        self.chunk_items = min(chunk_items or model.num_items, model.num_items)

    def __call__(self, items: Tensor, k: Tensor, exclude_seen: Tensor) -> dict[str, Tensor]:
        """Return the best items with scores and, if defined, probabilities, best first.

        Args:
            items: (users, length) int32 item numbers, oldest first; PADDING anywhere is ignored.
            k: number of items; at most the catalogue.
            exclude_seen: whether the items of a history are excluded.

        Returns:
            `top_items` (users, k) int32, PADDING where a user has fewer than k; `scores` (users, k), minus infinity
            there; `probabilities` (users, k).
        """
        items = pad_left(items)
        k = tf.minimum(k, self.model.num_items)
        scores, top_items, logsumexps = self._scan(items, k, exclude_seen)
        found = {"top_items": tf.where(tf.math.is_inf(scores), PADDING, top_items), "scores": scores}
        if self.probability is not None:
            found["probabilities"] = probabilities(self.probability, scores, logsumexps)
        return found

    def _scan(self, items: Tensor, k: Tensor, exclude_seen: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        """Scan the catalogue in chunks; ties go to the smaller item number, as in `recommend`."""
        states = self.model.states(items)
        cells = tf.where((items != PADDING) & exclude_seen)
        rows, seen = cells[:, 0], tf.gather_nd(items, cells)

        def scan(start: Tensor, scores: Tensor, best: Tensor, logsumexps: Tensor) -> tuple[Tensor, ...]:
            stop = tf.minimum(start + self.chunk_items, self.model.num_items)
            chunk = self.model.scores(states, start, stop)
            logsumexps = tf.reduce_logsumexp(tf.stack([logsumexps, tf.reduce_logsumexp(chunk, axis=1)]), axis=0)
            is_inside = (seen >= start) & (seen < stop)
            columns = tf.cast(tf.boolean_mask(seen, is_inside) - start, tf.int64)
            excluded = tf.stack([tf.boolean_mask(rows, is_inside), columns], axis=1)
            chunk = tf.tensor_scatter_nd_update(chunk, excluded, tf.fill(tf.shape(columns), -np.inf))
            top = tf.math.top_k(chunk, tf.minimum(k, stop - start))
            scores, best = tf.concat([scores, top.values], 1), tf.concat([best, top.indices + start], 1)
            top = tf.math.top_k(scores, tf.minimum(k, tf.shape(scores)[1]))
            return stop, top.values, tf.gather(best, top.indices, batch_dims=1), logsumexps

        num_users = tf.shape(items)[0]
        none = tf.zeros([num_users, 0]), tf.zeros([num_users, 0], tf.int32)
        first = (tf.constant(0), *none, tf.fill([num_users], -np.inf))
        if self.chunk_items == self.model.num_items:
            return scan(*first)[1:]
        shapes = tuple(tf.TensorShape(shape) for shape in ([], [None, None], [None, None], [None]))
        is_left = lambda start, *rest: start < self.model.num_items  # noqa: E731
        return tf.while_loop(is_left, scan, first, shapes)[1:]


def pad_left(items: Tensor) -> Tensor:
    """Move the items of each history to the right end, in their order, and padding to the left; at least one column."""
    items = tf.pad(items, [[0, 0], [1, 0]], constant_values=PADDING)
    order = tf.argsort(tf.cast(items != PADDING, tf.int32), axis=1, stable=True)
    return tf.gather(items, order, batch_dims=1)


def probabilities(probability: Probability, scores: Tensor, logsumexps: Tensor) -> Tensor:
    """Return the (users, k) probabilities of `aprec_like.calibration` as TensorFlow operations."""
    if isinstance(probability, SigmoidProbability):
        return tf.sigmoid(scores)
    softmax = tf.exp(scores - logsumexps[:, None])
    return probability.from_softmax(softmax) if isinstance(probability, SampledSoftmaxProbability) else softmax


class Recommender(tf.Module):
    """The best items after histories of the data's own ids, with the functions that a SavedModel offers.

    Args:
        top_items: the model on item numbers.
        catalogue: one row per item: `item`, its id, and `title`, if there are titles.
        k: number of items of the default signature.
        exclude_seen: whether the default signature excludes the items of the history.
    """

    def __init__(self, top_items: TopItems, catalogue: pd.DataFrame, *, k: int, exclude_seen: bool) -> None:
        super().__init__()
        ids = catalogue["item"].to_numpy()
        self.padding = padding_id(catalogue)
        self.ids = tf.Variable(ids.astype(np.int64) if is_numbered(catalogue) else ids.astype(str), trainable=False)
        self.titles = None
        if "title" in catalogue:
            self.titles = tf.Variable(catalogue["title"].to_numpy().astype(str), trainable=False)
        numbers = tf.range(len(ids), dtype=tf.int32)
        initializer = tf.lookup.KeyValueTensorInitializer(tf.convert_to_tensor(self.ids), numbers)
        self.numbers = tf.lookup.StaticHashTable(initializer, default_value=PADDING)
        self.top_items, self.k, self.exclude_seen = top_items, k, exclude_seen

    def signatures(self) -> Mapping[str, Tensor]:
        """Return the signatures: `serving_default` takes histories only, `recommend` also k and whether to exclude."""
        histories = tf.TensorSpec([None, None], self.ids.dtype, "items")

        @tf.function(input_signature=[histories])
        def serving_default(items: Tensor) -> dict[str, Tensor]:
            return self._recommend(items, tf.constant(self.k), tf.constant(self.exclude_seen))

        @tf.function(
            input_signature=[histories, tf.TensorSpec([], tf.int32, "k"), tf.TensorSpec([], tf.bool, "exclude_seen")]
        )
        def recommend(items: Tensor, k: Tensor, exclude_seen: Tensor) -> dict[str, Tensor]:
            return self._recommend(items, k, exclude_seen)

        @tf.function(input_signature=[histories, tf.TensorSpec([None, None], self.ids.dtype, "recommended")])
        def similarities(items: Tensor, recommended: Tensor) -> dict[str, Tensor]:
            return {"similarities": self._similarities(items, recommended)}

        found = {"serving_default": serving_default, "recommend": recommend}
        has_vectors = self.top_items.model.item_vectors(tf.constant([0])) is not None
        return found | ({"similarities": similarities} if has_vectors else {})

    def _recommend(self, items: Tensor, k: Tensor, exclude_seen: Tensor) -> dict[str, Tensor]:
        """Return ids, titles, scores and probabilities, and how many items of each history the model knows."""
        with tf.control_dependencies([tf.debugging.assert_positive(k, "k must be at least 1")]):
            numbers = self.numbers.lookup(items)
        found = self.top_items(numbers, k, exclude_seen)
        top_items = found.pop("top_items")
        is_item, rows = top_items != PADDING, tf.maximum(top_items, 0)
        answer = {"ids": tf.where(is_item, tf.gather(self.ids, rows), self.padding)}
        if self.titles is not None:
            answer["titles"] = tf.where(is_item, tf.gather(self.titles, rows), "")
        num_known = tf.reduce_sum(tf.cast(numbers != PADDING, tf.int32), axis=1)
        return answer | found | {"num_known": num_known}

    def _similarities(self, items: Tensor, recommended: Tensor) -> Tensor:
        """Return (users, recommended, length) cosines of item vectors; 0 where an id is unknown."""
        numbers = [self.numbers.lookup(ids) for ids in (items, recommended)]
        vectors = [tf.math.l2_normalize(self.top_items.model.item_vectors(tf.maximum(n, 0)), axis=-1) for n in numbers]
        is_known = (numbers[1] != PADDING)[:, :, None] & (numbers[0] != PADDING)[:, None, :]
        return tf.where(is_known, tf.matmul(vectors[1], vectors[0], transpose_b=True), 0.0)


def is_numbered(catalogue: pd.DataFrame) -> bool:
    """Return whether the ids of a catalogue are integers; all others are exported as strings."""
    return bool(np.issubdtype(catalogue["item"].to_numpy().dtype, np.integer))


def padding_id(catalogue: pd.DataFrame) -> int | str:
    """Return the id that stands for no item: -1, or one less than the smallest; for strings the empty one."""
    ids = catalogue["item"].to_numpy()
    if is_numbered(catalogue):
        return min(-1, int(ids.min()) - 1)
    if (ids.astype(str) == "").any():
        raise InputError("an item has the empty id, which stands for padding in an exported model")
    return ""
