"""What passes over parts of a dataset has the same result for any size of the parts."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from aprec_like import interactions as interactions_module
from aprec_like.errors import InputError
from aprec_like.filters import KCore, MinimumCounts, MinimumRating, WithoutRepeats, is_repeat
from aprec_like.interactions import Interactions
from aprec_like.models import MarkovChain
from aprec_like.out_of_core import arrays
from aprec_like.splits import LeaveOneOut, TemporalSplit, leave_one_out_leakage
from aprec_like.unseen_items import unseen_thresholds

LENGTH = 40


@st.composite
def datasets(draw) -> Interactions:
    """Interactions of up to 8 users with 5 items, with times that tie, and ratings."""
    columns = [draw(st.lists(st.integers(0, top), min_size=LENGTH, max_size=LENGTH)) for top in (7, 4, 9, 4)]
    return Interactions.from_ids(*(np.array(column) for column in columns))


def content(interactions: Interactions) -> list:
    columns = (interactions.items, interactions.offsets, interactions.timestamps, interactions.ratings)
    return [column.tolist() for column in (*columns, interactions.user_ids, interactions.item_ids)]


def tried(function):
    try:
        return function()
    except InputError as error:
        return str(error)


def split_content(split) -> list:
    parts = [split.train, split.test.known]
    return [split.digest(), *map(content, parts)]


def everything(data: Interactions) -> dict:
    """All results that are computed by parts."""
    filters = (KCore(3, 3), MinimumCounts(4, 2), MinimumRating(2), WithoutRepeats(), WithoutRepeats("last"))
    rules = (LeaveOneOut(2), TemporalSplit(0.3, 0.3))
    lengths = np.minimum(data.lengths, np.arange(data.num_users) % 4)
    seen, offsets = data.distinct_items()
    return {
        "filters": [tried(lambda each=each: content(each.apply(data))) for each in filters],
        "splits": [tried(lambda rule=rule: split_content(rule.split(data))) for rule in rules],
        "first": content(data.first(lengths)),
        "where": content(data.where(np.arange(LENGTH) % 3 == 0)),
        "users": content(data.select_users(np.arange(0, data.num_users, 2))),
        "distinct": [seen.tolist(), offsets.tolist(), unseen_thresholds(seen, offsets, 5).tolist()],
        "counts": data.item_counts().tolist(),
        "repeats": is_repeat(data).tolist(),
        "ties": data.tied_share(),
        "leakage": leave_one_out_leakage(data),
        "digest": data.digest(),
        "markov": MarkovChain().fit(data).transitions.toarray().tolist(),
    }


@pytest.mark.parametrize("size", [1, 7])
@given(data=datasets())
def test_results_do_not_depend_on_the_size_of_parts(size, data):
    expected = everything(data)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(interactions_module, "PART_SIZE", size)
        patch.setattr(arrays, "MAX_IN_MEMORY", 16)
        patch.setattr(arrays.slices, "__defaults__", (size,))
        assert everything(data) == expected


@given(data=datasets())
def test_parts_are_the_dataset_in_order(data):
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(interactions_module, "PART_SIZE", 10)
        parts = list(data.parts())
    assert np.concatenate([part.content.items for part in parts]).tolist() == data.items.tolist()
    assert np.concatenate([part.content.user_ids for part in parts]).tolist() == data.user_ids.tolist()
    assert all(part.content.num_interactions <= 10 or part.content.num_users == 1 for part in parts)


@given(data=datasets())
def test_leakage_is_that_of_a_plain_loop(data):
    sequences = np.split(data.timestamps, data.offsets[1:-1])
    targets = [times[-1] for times in sequences if len(times) >= 2]
    train = [time for times in sequences for time in (times[:-1] if len(times) >= 2 else times)]
    found = leave_one_out_leakage(data)
    shares = [sum(time > target for time in train) for target in targets]
    assert found is not None and found.train_interactions == len(train)
    assert found.after_a_target == max(shares)
    assert found.mean_share_after == pytest.approx(np.mean(shares) / len(train))
