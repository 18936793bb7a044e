import pytest

from aprec_like.errors import InputError
from aprec_like.models import Popularity
from aprec_like.settings import describe
from evaluation import compare
from evaluation.analysis.time_to_quality import time_table
from evaluation.results.load import load_runs
from tests.evaluation.made_runs import MIXED, make_run


def test_minutes_until_the_validation_metric_first_reached_a_value(tmp_path):
    """Epochs of half a minute with 0.12, 0.14, 0.16, 0.18 and then 0.15."""
    table = time_table(load_runs([make_run(tmp_path / "made")]), [0.12, 0.15, 0.18, 0.3])
    assert table.header[1:] == [
        "Minutes to 0.12", "Minutes to 0.15", "Minutes to 0.18", "Minutes to 0.3", "Best NDCG@10", "Minutes in all",
    ]  # fmt: skip
    (lines,) = table.blocks
    assert [line[0] for line in lines] == [name for name in MIXED if name != "Popularity"]
    assert all(line[1:] == ["0.5", "1.5", "2.0", "", "0.1800", "2.5"] for line in lines)


def test_a_run_without_validation_has_no_times(tmp_path):
    run = make_run(tmp_path / "counted", {"Popularity": describe(Popularity())})
    with pytest.raises(InputError, match="no finished model was validated"):
        time_table(load_runs([run]), [0.1])


def test_the_command_prints_them(tmp_path, monkeypatch, capsys):
    run = make_run(tmp_path / "made")
    monkeypatch.setattr("sys.argv", ["compare", str(run.path), "--time-to", "0.15"])
    assert compare.main() == 0
    assert "Minutes to 0.15" in capsys.readouterr().out
