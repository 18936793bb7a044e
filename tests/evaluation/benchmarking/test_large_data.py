"""The benchmark of comparisons over many users."""

import sys

import numpy as np
import pytest

from aprec_like.metrics import Recall
from evaluation.benchmarking import large_data, large_results
from evaluation.results.store import RunFolder


@pytest.mark.skipif(sys.platform != "linux", reason="reads /proc")
def test_results_are_written_in_row_groups_and_compared(tmp_path, monkeypatch, capsys):
    monkeypatch.setattr(large_results, "CHUNK_USERS", 400)
    monkeypatch.setattr(sys, "argv", ["large_data", str(tmp_path / "results"), "--compare", "1000"])
    assert large_data.main() == 0
    printed = capsys.readouterr().out
    with RunFolder(tmp_path / "results").model("second", 1).open_per_user() as columns:
        assert columns.num_users == 1000 and columns.table.num_row_groups == 3
        recall = np.mean(Recall(10).per_user(columns.read_numbers("rank")))
    assert f"Recall@10 {recall:.6f}" in printed and "without mapped files" in printed


@pytest.mark.skipif(sys.platform != "linux", reason="reads /proc")
def test_the_report_of_results_with_top_items_is_measured(tmp_path, monkeypatch, capsys):
    monkeypatch.setattr(sys, "argv", ["large_data", str(tmp_path / "results"), "--report", "300"])
    assert large_data.main() == 0
    assert any(line.startswith("report") for line in capsys.readouterr().out.splitlines())
    page = (tmp_path / "results" / "report.html").read_text()
    assert "log: 300 users" in page and "first" in page
