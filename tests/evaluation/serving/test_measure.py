"""The measurement of the server: real requests to a real server, and percentiles that can be computed in the head."""

import re

import pytest

from evaluation import export
from evaluation.inference import exported
from evaluation.serving import measure
from tests.evaluation.inference.made_models import make_models


def test_percentiles_by_hand():
    found = measure.Latencies([number / 100 for number in range(101)], total=2.0)
    assert found.percentile(50) == pytest.approx(0.5) and found.percentile(99) == pytest.approx(0.99)


def test_requests_are_the_same_in_every_run():
    first, again = (list(measure.make_bodies(["a", "b"], 3, 2)) for _ in range(2))
    assert first == again and len(set(first)) == 3


def test_the_command_measures_a_server_of_its_own(tmp_path, monkeypatch, capsys):
    (tmp_path / "models").mkdir()
    data, run, *_ = make_models(tmp_path / "models")
    to = tmp_path / "exported"
    monkeypatch.setattr(exported, "NUM_CHECKED_USERS", 5)
    monkeypatch.setattr(
        "sys.argv", ["export", str(run.path), "--data", str(data), "--model", "gSASRec", "--to", str(to)]
    )
    assert export.main() == 0
    capsys.readouterr()
    monkeypatch.setattr("sys.argv", ["measure", str(to), "--requests", "6"])
    assert measure.run_command(measure.main) == 0
    title, header, *lines, memory = capsys.readouterr().out.splitlines()
    assert re.match(r"gSASRec, \d+ items, 6 requests per line", title) and "p99, ms" in header
    rows = [list(map(float, line.split())) for line in lines]
    assert [tuple(row[:2]) for row in rows] == list(measure.LOADS)
    assert all(0 < row[2] <= row[3] and row[4] > 0 and row[5] >= 0 for row in rows)
    assert memory.startswith("memory of the server: ")


def test_a_folder_that_is_no_export_is_refused(tmp_path, monkeypatch, capsys):
    monkeypatch.setattr("sys.argv", ["measure", str(tmp_path)])
    assert measure.run_command(measure.main) == 2
    assert "export.json" in capsys.readouterr().err
