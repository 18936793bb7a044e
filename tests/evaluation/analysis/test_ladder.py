import pytest
from scipy import stats

from aprec_like.errors import InputError
from evaluation import compare
from evaluation.analysis.comparison import Rules
from evaluation.analysis.ladder import ladder_table
from evaluation.results.load import load_runs
from tests.evaluation.made_runs import MIXED, make_run


def test_every_model_is_tested_against_the_one_before_it(tmp_path):
    runs = load_runs([make_run(tmp_path / "made")])
    (lines,) = ladder_table(runs, "NDCG@10", Rules(correction="bonferroni")).blocks
    assert [line[0] for line in lines] == list(MIXED)
    assert lines[0][1] == "" and lines[1][1] == "0.1800"  # a model that counts was not validated
    assert lines[0][3:] == ["", "", ""]
    values = [runs.find(name).per_user("NDCG@10") for name in MIXED]
    for place in range(1, len(values)):
        difference = values[place] - values[place - 1]
        expected = stats.ttest_1samp(difference, 0)
        assert lines[place][2] == f"{values[place].mean():.4f}"
        assert lines[place][3].text == f"{difference.mean():+.4f}"
        assert (lines[place][3].mark == "*") == (expected.pvalue * (len(values) - 1) < 0.05)
        low, high = expected.confidence_interval()
        assert lines[place][4] == f"{low:+.4f} to {high:+.4f}"


def test_one_model_is_no_ladder(tmp_path):
    run = make_run(tmp_path / "made", {"SASRec": MIXED["SASRec"]})
    with pytest.raises(InputError, match="a ladder needs two finished models"):
        ladder_table(load_runs([run]), "NDCG@10", Rules())


@pytest.mark.parametrize("kind", ["text", "csv"])
def test_the_command_prints_it(tmp_path, monkeypatch, capsys, kind):
    run = make_run(tmp_path / "made")
    monkeypatch.setattr("sys.argv", ["compare", str(run.path), "--ladder", "--metric", "NDCG@10", "--format", kind])
    assert compare.main() == 0
    assert "Best validation" in capsys.readouterr().out
