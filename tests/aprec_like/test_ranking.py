from dataclasses import dataclass

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from aprec_like import ranking
from aprec_like.models import Scorer
from aprec_like.ranking import NotFiniteError, rank
from aprec_like.splits import HeldOut
from tests.conftest import interactions_from


@dataclass
class FixedScorer(Scorer):
    """Scores by user, as given."""

    scores: np.ndarray

    def score(self, histories):
        return np.asarray(self.scores, np.float32)[histories.users]


def held_out(histories, targets, num_items):
    known = interactions_from(histories, num_items)
    return HeldOut(known, np.arange(len(histories)), np.array(targets, np.int32))


def ranks_of(scores, histories, targets, exclude_seen=False, everything_learnable=True):
    num_items = len(scores[0])
    histories = [*histories, list(range(num_items))] if everything_learnable else histories
    cases = held_out(histories, [*targets, 0] if everything_learnable else targets, num_items)
    scores = [*scores, [0.0] * num_items] if everything_learnable else scores
    return rank(FixedScorer(scores), cases, exclude_seen=exclude_seen).ranks[: len(targets)].tolist()


def test_the_rank_is_one_plus_the_number_of_better_items():
    assert ranks_of([[0.1, 0.9, 0.5, 0.7]], [[0]], [2]) == [3]


def test_ties_stand_half_way():
    assert ranks_of([[1.0, 1.0, 1.0, 5.0]], [[3]], [0]) == [3]  # shares the ranks 2, 3 and 4
    assert ranks_of([[1.0, 1.0, 0.0]], [[2]], [0]) == [1.5]


def test_excluded_items_do_not_stand_before_the_target():
    assert ranks_of([[0.1, 0.9, 0.5, 0.7]], [[1, 3]], [2], exclude_seen=True) == [1]
    assert ranks_of([[0.1, 0.9, 0.5, 0.7]], [[1, 3]], [2], exclude_seen=False) == [3]


def test_an_excluded_target_is_a_miss():
    assert ranks_of([[0.1, 0.9]], [[1]], [1], exclude_seen=True) == [np.inf]
    assert ranks_of([[0.1, 0.9]], [[1]], [1], exclude_seen=False) == [1]


def test_a_target_that_nobody_has_in_training_is_a_miss():
    assert ranks_of([[0.1, 0.9]], [[0]], [1], everything_learnable=False) == [np.inf]


@pytest.mark.parametrize("bad", [np.nan, np.inf, -np.inf])
def test_a_score_that_is_not_finite_fails(bad):
    with pytest.raises(NotFiniteError, match="not finite"):
        ranks_of([[0.1, bad, 0.3]], [[0]], [2])


def test_top_items_are_best_first_and_end_where_everything_is_seen():
    cases = held_out([[0, 1], [2, 3, 0]], [2, 1], 4)
    result = rank(FixedScorer([[9, 8, 1, 2], [1, 2, 3, 4]]), cases, exclude_seen=True, depth=3)
    assert result.top_items.tolist() == [[3, 2, -1], [1, -1, -1]]
    assert result.top_scores[0, :2].tolist() == [2, 1]


def test_sums_over_the_catalogue_include_seen_items():
    scores = np.array([[0.0, 1.0, -2.0]])
    result = rank(FixedScorer(scores), held_out([[0, 1]], [2], 3), exclude_seen=True, depth=1)
    assert result.sigmoid_sums[0] == pytest.approx((1 / (1 + np.exp(-scores))).sum(), rel=1e-6)
    assert result.logsumexps[0] == pytest.approx(np.log(np.exp(scores).sum()), rel=1e-6)
    assert result.target_scores[0] == -2.0


@settings(max_examples=30, deadline=None)
@given(data=st.data())
def test_chunks_equal_a_plain_loop(data):
    num_users, num_items = data.draw(st.integers(1, 12)), data.draw(st.integers(2, 9))
    scores = data.draw(
        st.lists(
            st.lists(st.integers(-3, 3), min_size=num_items, max_size=num_items), min_size=num_users, max_size=num_users
        )
    )
    item = st.integers(0, num_items - 1)
    histories = data.draw(st.lists(st.lists(item, min_size=1, max_size=5), min_size=num_users, max_size=num_users))
    targets = data.draw(st.lists(item, min_size=num_users, max_size=num_users))
    exclude_seen, chunk = data.draw(st.booleans()), data.draw(st.integers(1, 5))
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(ranking, "CHUNK_USERS", chunk)
        ours = rank(FixedScorer(scores), held_out(histories, targets, num_items), exclude_seen=exclude_seen).ranks
    known = {item for history in histories for item in history}
    for user, target in enumerate(targets):
        ranked = [i for i in range(num_items) if not (exclude_seen and i in histories[user])]
        if target not in ranked or target not in known:
            assert ours[user] == np.inf
            continue
        better = sum(scores[user][i] > scores[user][target] for i in ranked)
        equal = sum(scores[user][i] == scores[user][target] for i in ranked)
        assert ours[user] == better + (1 + equal) / 2
