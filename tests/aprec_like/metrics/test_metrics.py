import ir_measures
import numpy as np
import pytest

from aprec_like.metrics import MRR, NDCG, Precision, Recall, metric_named


@pytest.mark.parametrize(
    ("metric", "rank", "value"),
    [
        (NDCG(10), 1, 1.0),
        (NDCG(10), 3, 0.5),
        (NDCG(2), 3, 0.0),
        (Recall(1), 1, 1.0),
        (Recall(1), 1.5, 0.0),  # tied with another item: not certain to be first
        (Recall(10), 10, 1.0),
        (Recall(10), 11, 0.0),
        (Precision(10), 10, 0.1),
        (MRR(), 2, 0.5),
        (MRR(), np.inf, 0.0),
        (NDCG(10), np.inf, 0.0),
        (Recall(10), np.inf, 0.0),
    ],
)
def test_value_of_a_rank(metric, rank, value):
    assert metric.per_user(np.array([rank])).tolist() == [value]


@pytest.mark.parametrize("metric", [NDCG(10), Recall(1), Precision(5), MRR()])
def test_the_name_is_what_stands_in_tables(metric):
    assert str(metric) == {NDCG: "NDCG@10", Recall: "Recall@1", Precision: "Precision@5", MRR: "MRR"}[type(metric)]


def test_metrics_agree_with_ir_measures():
    random = np.random.default_rng(0)
    ranks = random.integers(1, 40, size=200)
    qrels = [ir_measures.Qrel(str(user), "target", 1) for user in range(200)]
    run = [
        ir_measures.ScoredDoc(str(user), "target" if place == rank else f"other{place}", float(-place))
        for user, rank in enumerate(ranks)
        for place in range(1, 41)
    ]
    ours = {"nDCG@10": NDCG(10), "R@10": Recall(10), "P@5": Precision(5), "RR": MRR()}
    for name, metric in ours.items():
        theirs = {
            value.query_id: value.value
            for value in ir_measures.iter_calc([ir_measures.parse_measure(name)], qrels, run)
        }
        expected = [theirs[str(user)] for user in range(200)]
        np.testing.assert_allclose(metric.per_user(ranks), expected, atol=1e-12)


@pytest.mark.parametrize("k", [0, -1, 2.5, "10", True])
def test_a_cutoff_must_be_a_positive_integer(k):
    with pytest.raises(ValueError, match="integer k"):
        NDCG(k)


def test_ranks_below_one_are_refused():
    with pytest.raises(ValueError, match="at least 1"):
        MRR().per_user(np.array([0.5]))
    with pytest.raises(ValueError, match="at least 1"):
        MRR().per_user(np.array([np.nan]))


def test_the_reciprocal_rank_may_have_a_cutoff():
    ranks = np.array([1, 2, 5, 5.5, np.inf])
    np.testing.assert_allclose(MRR(5).per_user(ranks), [1, 1 / 2, 1 / 5, 0, 0])
    np.testing.assert_allclose(MRR().per_user(ranks), [1, 1 / 2, 1 / 5, 1 / 5.5, 0])
    assert metric_named("MRR@5") == MRR(5) and metric_named("MRR") == MRR() and str(MRR(5)) == "MRR@5"
    with pytest.raises(ValueError, match="MRR needs an integer k of at least 1"):
        MRR(0)
