"""Items that a loss over the catalogue leaves out, a set for every user of a batch."""

from __future__ import annotations

from typing import Any, NamedTuple

from aprec_like.lazy_tensorflow import tf
from aprec_like.types import Tensor


class LeftOut(NamedTuple):
    """Pairs of a row and an item, where a row stands for all positions that leave out the same items.

    position_rows: (n,) the row of each position.
    pair_rows: (m,) the row of each pair.
    pair_items: (m,) the item of each pair; negative where there is none, in pairs of static shape.
    num_rows: number of rows.
    """

    position_rows: Tensor
    pair_rows: Tensor
    pair_items: Tensor
    num_rows: int

    def mask(self, first: Any, size: Any) -> Tensor:
        """(n, size) True where a position leaves out one of the items first, first + 1, ..., first + size - 1.

        Pairs are counted, and only integers are scattered: their sum is the same in any order.
        """
        dtype, num_cells = self.pair_items.dtype, self.num_rows * size
        columns, width = self.pair_items - tf.cast(first, dtype), tf.cast(size, dtype)
        is_inside = (self.pair_items >= 0) & (columns >= 0) & (columns < width)
        # One cell more than the array takes the pairs of other items.
        cells = tf.where(is_inside, tf.cast(self.pair_rows, dtype) * width + columns, tf.cast(num_cells, dtype))
        counts = tf.math.unsorted_segment_sum(tf.ones_like(cells, tf.int32), cells, num_cells + 1)
        is_pair = tf.cast(counts, tf.bool)[:-1]
        return tf.gather(tf.reshape(is_pair, [self.num_rows, size]), self.position_rows)
