"""Filters equal plain loops over lists."""

from collections import Counter
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from aprec_like.errors import InputError
from aprec_like.filters import KCore, MinimumCounts, MinimumRating, WithoutRepeats, apply_filters
from tests.conftest import interactions_from

SEQUENCES = st.lists(st.lists(st.integers(0, 6), min_size=1, max_size=8), min_size=1, max_size=8)


def pairs(interactions):
    """(user, item) in the source's ids."""
    users = interactions.user_ids[interactions.rows].tolist()
    return list(zip(users, interactions.item_ids[interactions.items].tolist(), strict=True))


def as_pairs(sequences):
    return [(user, item) for user, sequence in enumerate(sequences) for item in sequence]


def k_core(events, user, item, max_rounds=1000):
    for _ in range(max_rounds):
        users, items = Counter(u for u, _ in events), Counter(i for _, i in events)
        kept = [(u, i) for u, i in events if users[u] >= user and items[i] >= item]
        if kept == events:
            break
        events = kept
    return events


@given(SEQUENCES, st.integers(0, 4), st.integers(0, 4))
def test_a_k_core_is_the_result_of_repeated_removal(sequences, user, item):
    expected = k_core(as_pairs(sequences), user, item)
    if not expected:
        with pytest.raises(InputError, match="leaves no interaction"):
            KCore(user=user, item=item).apply(interactions_from(sequences))
        return
    kept = KCore(user=user, item=item).apply(interactions_from(sequences))
    assert pairs(kept) == expected
    assert kept.item_ids.tolist() == sorted({item for _, item in expected})
    assert kept.lengths.min() >= max(1, user) and kept.item_counts().min() >= max(1, item)


@given(SEQUENCES, st.integers(0, 4), st.integers(0, 4))
def test_minimum_counts_are_counted_once(sequences, user, item):
    expected = k_core(as_pairs(sequences), user, item, max_rounds=1)
    if expected:
        assert pairs(MinimumCounts(user=user, item=item).apply(interactions_from(sequences))) == expected


@given(SEQUENCES)
def test_only_the_first_or_the_last_of_repeated_interactions_is_kept(sequences):
    first = [pair for sequence in sequences for pair in dict.fromkeys(sequence)]
    assert WithoutRepeats().apply(interactions_from(sequences)).num_interactions == len(first)
    kept = WithoutRepeats("last").apply(interactions_from(sequences))
    assert pairs(kept) == [
        (user, item)
        for user, sequence in enumerate(sequences)
        for position, item in enumerate(sequence)
        if item not in sequence[position + 1 :]
    ]


def test_a_minimum_rating_needs_ratings():
    interactions = interactions_from([[0, 1], [1, 2]])
    with pytest.raises(InputError, match="needs ratings"):
        MinimumRating(3).apply(interactions)
    rated = replace(interactions, ratings=np.array([5, 3, 2, 4]))
    assert pairs(MinimumRating(3).apply(rated)) == [(0, 0), (0, 1), (1, 2)]


def test_columns_and_timestamps_of_kept_users_and_items_are_kept():
    interactions = replace(
        interactions_from([[0, 1], [2], [1, 0]]),
        timestamps=np.arange(5),
        user_columns={"name": np.array(["a", "b", "c"], object)},
        item_columns={"title": np.array(["x", "y", "z"], object)},
    )
    kept = MinimumCounts(item=2).apply(interactions)
    assert kept.user_columns["name"].tolist() == ["a", "c"]
    assert kept.item_columns["title"].tolist() == ["x", "y"]
    assert kept.timestamps.tolist() == [0, 1, 3, 4]


def test_items_without_interactions_stay_unless_items_have_a_minimum_count():
    declared = interactions_from([[0, 1], [1]], num_items=5)
    assert MinimumCounts(user=2).apply(declared).num_items == 5
    assert WithoutRepeats().apply(declared).num_items == 5
    assert MinimumCounts(item=1).apply(declared).num_items == 2


def test_filters_apply_in_order():
    interactions = interactions_from([[0, 0, 0], [0, 1, 2]])
    assert apply_filters(interactions, (WithoutRepeats(), MinimumCounts(user=3))).num_users == 1
    assert apply_filters(interactions, (MinimumCounts(user=3), WithoutRepeats())).num_users == 2
