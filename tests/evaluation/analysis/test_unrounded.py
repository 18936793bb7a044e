import csv
import io

import pytest

from evaluation.analysis.unrounded import comparison_csv, comparison_json, significance_csv
from tests.evaluation.analysis.small_runs import compare


def test_csv_is_unrounded(run):
    rows = list(csv.DictReader(io.StringIO(comparison_csv(compare(run)))))
    best = next(row for row in rows if row["model"] == "Best" and row["metric"] == "NDCG@10")
    expected = run.model("Best", 1).read_per_user()["NDCG@10"].mean()
    assert float(best["mean"]) == pytest.approx(expected, rel=1e-15)
    tests = list(csv.DictReader(io.StringIO(significance_csv(compare(run)))))
    assert {row["comparator"] for row in tests} == {"Best"}


def test_json_is_whole_and_unrounded(run):
    value = comparison_json(compare(run))
    expected = run.model("Best", 1).read_per_user()["NDCG@10"].mean()
    assert value["models"]["Best"]["metrics"]["NDCG@10"]["value"]["mean"] == pytest.approx(expected, rel=1e-15)
    assert value["best"] == {"NDCG@10": "Best", "Recall@10": "Best"}
    assert value["models"]["A_B & 50%"]["metrics"]["NDCG@10"]["is_significant"] is True
