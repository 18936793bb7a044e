from dataclasses import dataclass

import numpy as np
import pytest
import tensorflow as tf
from hypothesis import given, settings
from hypothesis import strategies as st

from aprec_like.errors import NotFiniteError
from aprec_like.interactions import PADDING
from aprec_like.models import Popularity, Scorer
from aprec_like.ranking import catalogue_scan as scan
from aprec_like.ranking import rank_catalogue as ranking
from aprec_like.ranking import seen_mass
from aprec_like.ranking.rank_catalogue import NetworkScorer, rank
from aprec_like.splits import HeldOut
from tests.conftest import interactions_from


@dataclass
class FixedScorer(Scorer):
    """Scores by user, as given."""

    scores: np.ndarray

    def score(self, histories):
        return np.asarray(self.scores, np.float32)[histories.users]


class TableNetwork:
    """A network with fixed states and embeddings."""

    needs_times = False

    def __init__(self, states, item_table, logit_bias=None):
        self.states, self.item_table = np.float32(states), tf.constant(np.float32(item_table))
        self.logit_bias = None if logit_bias is None else tf.constant(logit_bias)

    def last_states(self, histories):
        return tf.constant(self.states[histories.users])


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


def test_tied_items_share_the_mean_of_their_ranks():
    assert ranks_of([[1.0, 1.0, 1.0, 5.0]], [[3]], [0]) == [3]  # shares the ranks 2, 3 and 4
    assert ranks_of([[1.0, 1.0, 0.0]], [[2]], [0]) == [1.5]


def test_excluded_items_are_not_ranked_above_the_target():
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


@pytest.mark.parametrize("chunk", [1, 2, 256])
@pytest.mark.parametrize("bias", [None, 1.5])
def test_the_mass_on_seen_items_counts_each_of_them_once(monkeypatch, chunk, bias):
    monkeypatch.setattr(seen_mass, "CHUNK_SEEN", chunk)
    table, cases = np.log([[1.0], [2.0], [5.0]]), held_out([[0, 1, 0, 1], [2]], [2, 0], 3)
    result = rank(NetworkScorer(TableNetwork([[1.0], [1.0]], table, bias)), cases, exclude_seen=True, depth=1)
    assert result.seen_softmax_sums == pytest.approx([3 / 8, 5 / 8])
    odds = np.array([1.0, 2.0, 5.0]) * np.exp(bias or 0.0)
    sigmoids = odds / (1 + odds)
    assert result.seen_sigmoid_sums == pytest.approx([sigmoids[:2].sum(), sigmoids[2]])


@settings(max_examples=30)
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


def plain_rankings(scores, cases, exclude_seen, depth):
    """Ranks, best items, sums of sigmoids and logsumexps by NumPy, a user at a time, from (users, items) scores."""
    counts = cases.known.item_counts()
    for user, (row, target) in enumerate(zip(np.float64(scores), cases.targets, strict=True)):
        history = cases.known.histories(np.array([user])).items
        excluded = set(history.tolist()) if exclude_seen else set()
        items = np.setdiff1d(np.arange(len(row)), list(excluded))
        rank = 1 + (row[items] > row[target]).sum() + ((row[items] == row[target]).sum() - 1) / 2
        best = items[np.argsort(-row[items], kind="stable")][:depth]
        yield (
            rank if target not in excluded and counts[target] else np.inf,
            np.pad(best, (0, min(depth, len(row)) - len(best)), constant_values=PADDING),
            (1 / (1 + np.exp(-row))).sum(),
            np.log(np.exp(row - row.max()).sum()) + row.max(),
        )


def has_ties(ranks):
    return (ranks[np.isfinite(ranks)] % 1 == 0.5).any()


def random_cases(num_users, num_items, seed=1):
    """Users with histories of 1 to 30 items, repeats included, whose targets are sometimes among them."""
    random = np.random.default_rng(seed)
    histories = [random.integers(num_items, size=size).tolist() for size in random.integers(1, 31, num_users)]
    targets = random.choice(np.concatenate(histories), num_users)
    targets[:3] = random.integers(num_items, size=3)
    return held_out(histories, targets, num_items)


@pytest.mark.parametrize(
    ("num_items", "chunk_items", "cached_items", "block_items", "depth", "exclude_seen"),
    [
        (203, 64, 32, 4, 5, False),  # three whole chunks and a rest, which is not a number of whole blocks
        (203, 64, 32, 4, 5, True),
        (192, 64, 32, 4, 5, True),  # no rest
        (203, 64, 16, 16, 150, True),  # more best items than a chunk has
        (50, 64, 32, 4, 1_000, True),  # fewer items than a chunk, and than are asked for
        (70_001, scan.CHUNK_ITEMS, scan.CACHED_ITEMS, scan.BLOCK_ITEMS, 100, True),  # as it is
    ],
)
def test_products_in_chunks_of_items_equal_plain_numpy(
    monkeypatch, num_items, chunk_items, cached_items, block_items, depth, exclude_seen
):
    """Whole numbers, so that all products are exact, and few of them, so that there are many ties."""
    for name, value in (("CHUNK_ITEMS", chunk_items), ("CACHED_ITEMS", cached_items), ("BLOCK_ITEMS", block_items)):
        monkeypatch.setattr(scan, name, value)
    monkeypatch.setattr(ranking, "CHUNK_USERS", 16)
    scan.make_product_scan.cache_clear()
    random, cases = np.random.default_rng(2), random_cases(37, num_items)
    states, table = random.integers(-2, 3, [37, 3]), random.integers(-2, 3, [num_items, 3])
    ours = rank(NetworkScorer(TableNetwork(states, table)), cases, exclude_seen=exclude_seen, depth=depth)
    ranks_alone = rank(NetworkScorer(TableNetwork(states, table)), cases, exclude_seen=exclude_seen)
    scan.make_product_scan.cache_clear()
    scores = states @ table.T
    plain = zip(*plain_rankings(scores, cases, exclude_seen, depth), strict=True)
    ranks, top_items, sigmoid_sums, logsumexps = map(np.array, plain)
    assert has_ties(ranks)
    np.testing.assert_array_equal(ours.ranks, ranks)
    np.testing.assert_array_equal(ranks_alone.ranks, ranks)
    np.testing.assert_array_equal(ours.top_items, top_items)
    np.testing.assert_array_equal(
        ours.top_scores, np.where(top_items == PADDING, -np.inf, np.take_along_axis(scores, top_items, axis=1))
    )
    np.testing.assert_array_equal(ours.target_scores, scores[np.arange(37), cases.targets])
    np.testing.assert_allclose(ours.sigmoid_sums, sigmoid_sums, rtol=1e-5)
    np.testing.assert_allclose(ours.logsumexps, logsumexps, rtol=1e-5)
    is_seen = np.zeros(scores.shape, bool)
    is_seen[cases.histories().rows, cases.histories().items] = True
    np.testing.assert_allclose(ours.seen_sigmoid_sums, (is_seen / (1 + np.exp(-scores))).sum(axis=1), rtol=1e-5)
    softmax = np.exp(scores - logsumexps[:, None])
    np.testing.assert_allclose(ours.seen_softmax_sums, (is_seen * softmax).sum(axis=1), rtol=1e-5)
    assert np.isnan(ranks_alone.seen_softmax_sums).all()
    assert np.isnan(ranks_alone.sigmoid_sums).all() and ranks_alone.top_items.shape == (37, 0)


def test_items_with_the_same_row_are_tied_wherever_they_are():
    """Rows of random numbers, each three times: at the start, in the middle and at the end of many chunks."""
    random = np.random.default_rng(3)
    rows = random.standard_normal([3_000, 48])
    states = random.standard_normal([20, 48])
    cases = held_out([[0]] * 19 + [list(range(9_000))], random.integers(9_000, size=20), 9_000)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(scan, "CHUNK_ITEMS", 1_024)
        patch.setattr(scan, "CACHED_ITEMS", 256)
        ranks = rank(NetworkScorer(TableNetwork(states, np.tile(rows, [3, 1]))), cases, exclude_seen=False).ranks
    scan.make_product_scan.cache_clear()
    scores = states @ rows.T
    better = (scores > scores[np.arange(20), cases.targets % 3_000][:, None] + 1e-9).sum(axis=1)
    np.testing.assert_array_equal(ranks, 3 * better + 2)


@pytest.mark.parametrize("shift", [0.0, 300.0, -300.0])
def test_sums_hold_for_scores_far_from_zero(monkeypatch, shift):
    """In chunks of one item, so that the highest score changes on the way."""
    for name, value in (("CHUNK_ITEMS", 1), ("CACHED_ITEMS", 1), ("BLOCK_ITEMS", 1)):
        monkeypatch.setattr(scan, name, value)
    scan.make_product_scan.cache_clear()
    states, table = np.array([[1.0], [0.5]]), np.array([[-3.0], [2.0], [1.5]])
    network = TableNetwork(states, table, logit_bias=shift)
    ours = rank(NetworkScorer(network), held_out([[0], [0, 1, 2]], [1, 2], 3), exclude_seen=False, depth=1)
    scan.make_product_scan.cache_clear()
    scores = states @ table.T + shift
    np.testing.assert_allclose(ours.logsumexps, np.log(np.exp(scores - shift).sum(axis=1)) + shift, rtol=1e-6)
    np.testing.assert_allclose(ours.sigmoid_sums, (1 / (1 + np.exp(-scores))).sum(axis=1), rtol=1e-6, atol=1e-30)
    np.testing.assert_allclose(ours.target_scores, scores[[0, 1], [1, 2]])
    np.testing.assert_allclose(ours.top_scores[:, 0], scores.max(axis=1))


@pytest.mark.parametrize("bad", [np.nan, np.inf, -np.inf, 1e38])
def test_a_product_that_is_not_finite_fails(bad):
    with pytest.raises(NotFiniteError, match="not finite"):
        cases = held_out([[0]], [1], 3)
        rank(NetworkScorer(TableNetwork([[10.0]], [[0.1], [bad], [0.3]])), cases, exclude_seen=False)


@pytest.mark.parametrize("exclude_seen", [False, True])
def test_scores_that_are_the_same_for_all_users_are_ranked_like_any_others(exclude_seen):
    cases = random_cases(50, 40)
    candidates = np.random.default_rng(4).integers(40, size=[50, 6])
    popularity = Popularity().fit(cases.known)
    options = {"exclude_seen": exclude_seen, "depth": 35, "candidates": candidates}
    common = rank(popularity, cases, **options)
    plain = rank(FixedScorer(popularity.score(cases.histories())), cases, **options)
    assert has_ties(common.ranks) and np.isinf(common.ranks).any() == exclude_seen
    for name in ("ranks", "target_scores", "top_items", "top_scores", "candidate_ranks"):
        np.testing.assert_array_equal(getattr(common, name), getattr(plain, name), err_msg=name)
    np.testing.assert_allclose(common.sigmoid_sums, plain.sigmoid_sums, rtol=1e-6)
    np.testing.assert_allclose(common.logsumexps, plain.logsumexps, rtol=1e-6)
    np.testing.assert_allclose(common.seen_sigmoid_sums, plain.seen_sigmoid_sums, rtol=1e-6)
    np.testing.assert_allclose(common.seen_softmax_sums, plain.seen_softmax_sums, rtol=1e-6)


def test_progress_reaches_the_number_of_cases(monkeypatch):
    monkeypatch.setattr(ranking, "CHUNK_USERS", 3)
    done = []
    rank(FixedScorer(np.zeros([8, 4])), random_cases(8, 4), exclude_seen=False, on_progress=done.append)
    assert done == [3, 6, 8]


def test_a_scan_is_traced_once_for_all_chunks_and_calls():
    cases = random_cases(300, 20)
    scorer = NetworkScorer(TableNetwork(np.ones([300, 2]), np.ones([20, 2])))
    for _ in range(2):
        rank(scorer, cases, exclude_seen=True, depth=3)
    spec = scan.ScanSpec(num_items=20, num_users=100, depth=3, excludes_seen=True, is_unshifted=True)
    assert scan.make_product_scan(spec, 2).experimental_get_tracing_count() == 1
