"""Time gaps between the interactions of a user, as small integers that a network can embed."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from aprec_like.errors import InputError
from aprec_like.interactions import Interactions
from aprec_like.out_of_core import ArrayWriter
from aprec_like.types import Array


@dataclass(frozen=True)
class TimeGaps:
    """The time between an interaction and the one before it, in buckets that double.

    Code 0 is the first interaction of a user, 1 a gap below a second, 2 below two, 3 below four, and so on; the last
    code takes all longer gaps. The code of an interaction depends on its own time and the one before. What a network
    predicts next has no time yet: that of a target is never seen.

    Args:
        num_buckets: number of buckets; the default of 32 tells gaps of up to 34 years apart.

    Example:
        >>> TimeGaps(num_buckets=4).codes(np.array([50, 50, 51, 54, 900]), offsets=np.array([0, 4, 5]))
        array([0, 1, 2, 3, 0], dtype=int32)
    """

    num_buckets: int = 32

    def __post_init__(self) -> None:
        if self.num_buckets < 1:
            raise ValueError(f"TimeGaps needs num_buckets of at least 1. Received: num_buckets={self.num_buckets}")

    @property
    def num_codes(self) -> int:
        """Number of different codes."""
        return self.num_buckets + 1

    def codes(self, timestamps: Array, offsets: Array) -> Array:
        """Return the (interactions,) int32 codes of sequences that start at `offsets[:-1]`, and end at the last one."""
        gaps = np.maximum(np.diff(timestamps, prepend=timestamps[:1]), 0).astype(np.float64)
        # A gap in [2^(e - 1), 2^e) has the exponent e, one below a second 0 or less.
        codes = np.clip(np.frexp(gaps)[1], 0, self.num_buckets - 1).astype(np.int32) + 1
        codes[offsets[:-1][offsets[:-1] < len(codes)]] = 0
        return codes

    def all_codes(self, interactions: Interactions) -> Array:
        """Return the (interactions,) codes of a dataset; raises `InputError` if it has no timestamps."""
        check_timestamps(interactions)
        writer = ArrayWriter(np.int32)
        for part in interactions.parts():
            writer.append(self.codes(np.asarray(part.content.timestamps), part.content.offsets))
        return writer.finish()


def check_timestamps(interactions: Interactions) -> None:
    """Raise `InputError` if interactions have no timestamps."""
    if interactions.timestamps is None:
        raise InputError("time_gaps needs data with timestamps. Received: interactions without any")
