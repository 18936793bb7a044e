import pytest

from evaluation.analysis.comparison import Rules
from evaluation.analysis.pairwise import compare_pairs, pairwise_table
from evaluation.analysis.significance import paired_t
from evaluation.results.load import load_runs
from tests.evaluation.analysis.small_runs import texts


def test_every_pair_is_tested_in_one_family(crossed_run):
    runs = load_runs([crossed_run])
    pairs = compare_pairs(runs, "NDCG@10", Rules(correction="bonferroni"))
    assert len(pairs.tests) == 6
    difference = runs.find("S1").per_user("NDCG@10") - runs.find("SA").per_user("NDCG@10")
    assert pairs.p_corrected["S1", "SA"] == pytest.approx(min(1, 6 * paired_t(difference)))
    block = pairwise_table(pairs).blocks[0]
    assert texts(block[0])[:2] == ["S1", ""]
    assert texts(block[0])[2].startswith("-") and texts(block[1])[1].startswith("+")
    assert texts(block[0])[2][1:] == texts(block[1])[1][1:]
