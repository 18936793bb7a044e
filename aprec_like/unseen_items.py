"""Selection of the r-th item that a user has not seen, without a list of the unseen items.

Let s_0 < s_1 < ... be the items that a user has seen. Below s_j there are s_j - j unseen items, so s_j precedes the
r-th unseen item (r counted from 0) if and only if s_j - j <= r. The r-th unseen item is therefore r plus the number of
j with s_j - j <= r. The thresholds s_j - j never decrease with j, so with user * num_items added to them, one binary
search in the thresholds of all users finds that number.
"""

from __future__ import annotations

import numpy as np

from aprec_like.out_of_core import ArrayWriter, slices
from aprec_like.types import Array


def unseen_thresholds(seen: Array, offsets: Array, num_items: int) -> Array:
    """Return the (seen,) sorted search keys user * num_items + s_j - j.

    Args:
        seen: (seen,) distinct items of every user, ascending within a user, one user after the other.
        offsets: (users + 1,) user u has the items `seen[offsets[u]:offsets[u + 1]]`.
        num_items: size of the catalogue.
    """
    writer = ArrayWriter(np.int64)
    for chunk in slices(len(seen)):
        positions = np.arange(chunk.start, chunk.stop)
        users = np.searchsorted(offsets, positions, side="right") - 1
        writer.append(users * num_items + (seen[chunk] - (positions - offsets[users])))
    return writer.finish()


def select_unseen(thresholds: Array, offsets: Array, num_items: int, users: Array, indices: Array) -> Array:
    """Return the (n, k) unseen items of (n,) users at (n, k) indices from 0.

    Indices beyond the last unseen item of a user give numbers of at least `num_items`.
    """
    num_not_after = np.searchsorted(thresholds, users[:, None] * num_items + indices, side="right")
    return indices + num_not_after - offsets[users][:, None]
