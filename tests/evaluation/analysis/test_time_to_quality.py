import numpy as np
import pandas as pd
import pytest

from aprec_like.errors import InputError
from aprec_like.models import Popularity
from aprec_like.settings import describe
from evaluation import compare
from evaluation.analysis.time_to_quality import time_table
from evaluation.results.load import load_runs
from tests.evaluation.made_runs import MIXED, NUM_USERS, make_run, write_model


def test_minutes_until_the_validation_metric_first_reached_a_value(tmp_path):
    """Epochs of half a minute with 0.12, 0.14, 0.16, 0.18 and then 0.15."""
    table = time_table(load_runs([make_run(tmp_path / "made")]), [0.12, 0.15, 0.18, 0.3])
    assert table.header[1:] == [
        "Minutes to 0.12", "Minutes to 0.15", "Minutes to 0.18", "Minutes to 0.3", "Best NDCG@10", "Minutes in all",
    ]  # fmt: skip
    (rows,) = table.blocks
    assert [row[0] for row in rows] == [name for name in MIXED if name != "Popularity"]
    assert all(row[1:] == ["0.5", "1.5", "2.0", "", "0.1800", "2.5"] for row in rows)


def test_minutes_are_means_over_seeds_and_empty_where_a_seed_never_got_there(tmp_path):
    """Seed 1 reaches 0.12 after half a minute and 0.15 after 1.5; seed 2 reaches 0.12 after 2.5 minutes, never 0.15."""
    run = make_run(tmp_path / "made", {"SASRec": MIXED["SASRec"]})
    write_model(run, "SASRec", MIXED["SASRec"], np.full(NUM_USERS, 0.5), np.random.default_rng(0), seed=2)
    folder = run.model("SASRec", 2)
    folder.write_history(pd.DataFrame({"epoch": [1, 2], "validation": [0.1, 0.12], "seconds": [60.0, 150.0]}))
    folder.finish(seconds_to_best=150.0, best_validation=0.12)
    (rows,) = time_table(load_runs([run]), [0.12, 0.15]).blocks
    assert rows == [["SASRec", "1.5", "", "0.1500", "2.5"]]


def test_a_run_without_validation_has_no_times(tmp_path):
    run = make_run(tmp_path / "counted", {"Popularity": describe(Popularity())})
    with pytest.raises(InputError, match="no finished model was validated"):
        time_table(load_runs([run]), [0.1])


def test_the_command_prints_the_minutes(tmp_path, monkeypatch, capsys):
    run = make_run(tmp_path / "made")
    monkeypatch.setattr("sys.argv", ["compare", str(run.path), "--time-to", "0.15"])
    assert compare.main() == 0
    lines = capsys.readouterr().out.splitlines()
    header = next(number for number, line in enumerate(lines) if "Minutes to 0.15" in line)
    assert lines[header + 2].split() == ["SASRec", "1.5", "0.1800", "2.5"]
