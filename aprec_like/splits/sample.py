"""Fixed random sample of the held-out cases of a split, for data with more users than can be ranked."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from aprec_like.splits.base import HeldOut, Split
from aprec_like.types import Array


def sample_cases(split: Split, num_users: int | None, seed: int) -> Split:
    """Return the split with at most `num_users` validation cases and test cases, chosen at random.

    Args:
        split: the whole split; its training interactions do not change.
        num_users: size of the sample; `None` keeps all cases.
        seed: of the choice, which depends on nothing else.
    """
    if num_users is None:
        return split
    return replace(
        split,
        sampled_from=len(split.test) if len(split.test) > num_users else None,
        validation=_sample(split.validation, num_users, seed),
        test=_sample(split.test, num_users, seed),
    )


def _sample(held_out: HeldOut, num_users: int, seed: int) -> HeldOut:
    if len(held_out) <= num_users:
        return held_out
    chosen = np.sort(random_order(len(held_out), seed)[:num_users])
    return replace(held_out, users=held_out.users[chosen], targets=held_out.targets[chosen])


def random_order(length: int, seed: int) -> Array:
    """Return a random permutation, the same in all versions of NumPy: the methods of Generator may change."""
    return np.argsort(np.random.PCG64(seed).random_raw(length), kind="stable")
