"""What trainings cost, in every format; folders of earlier versions show what they know."""

import json

import numpy as np
import pandas as pd
import pytest

from aprec_like.errors import InputError
from aprec_like.models import Popularity
from aprec_like.settings import describe
from evaluation import compare
from evaluation.analysis.training_cost import cost_table, model_costs, time_table
from evaluation.results.load import load_runs
from tests.evaluation.made_runs import MIXED, NUM_USERS, make_run, write_model

SASREC = {"SASRec": MIXED["SASRec"]}


def finish(run, seed, cost, **changes):
    """Finish a model again with another cost."""
    folder = run.model("SASRec", seed)
    status = {"seconds_to_best": 60.0, "seconds_total": 600.0, "peak_memory_gib": 1.5, "peak_gpu_memory_gib": None}
    folder.finish(**status | changes, **({} if cost is None else {"cost": cost}))


@pytest.fixture
def two_seeds(tmp_path):
    run = make_run(tmp_path / "made", SASREC)
    write_model(run, "SASRec", MIXED["SASRec"], np.full(NUM_USERS, 0.5), np.random.default_rng(0), seed=2)
    finish(run, 1, {"cpu_seconds": 600.0, "gpu_seconds": 0.0, "energy_kwh": 0.001})
    finish(run, 2, {"cpu_seconds": 1800.0, "gpu_seconds": 0.0, "energy_kwh": 0.0004}, peak_memory_gib=2.5)
    return run


def test_costs_are_means_over_seeds(two_seeds):
    table = cost_table(load_runs([two_seeds]))
    assert table.header == ["Model", "Trainings", "Minutes", "CPU minutes", "Energy, Wh", "Memory, GiB"]
    assert table.blocks == [[["SASRec", "2", "10.0", "20.0", "0.7", "2.00"]]]


def test_a_seed_that_was_not_measured_leaves_the_mean_unknown(two_seeds):
    finish(two_seeds, 2, {"cpu_seconds": 1800.0, "gpu_seconds": 0.0, "energy_kwh": None})
    assert cost_table(load_runs([two_seeds])).blocks[0][0][3:5] == ["20.0", "not measured"]


def test_results_of_earlier_versions_have_wall_clock_and_memory_alone(tmp_path):
    rows = cost_table(load_runs([make_run(tmp_path / "made")])).blocks[0]
    assert [row[0] for row in rows] == list(MIXED)
    assert all(row[1:] == ["1", "2.7", "not measured", "not measured", "1.50"] for row in rows)


def test_gpus_have_columns_where_one_was_used(two_seeds):
    for seed in (1, 2):
        cost = {"cpu_seconds": 600.0, "gpu_seconds": 90.0, "energy_kwh": 0.5}
        finish(two_seeds, seed, cost, peak_gpu_memory_gib=4.0)
    table = cost_table(load_runs([two_seeds]))
    row = dict(zip(table.header, table.blocks[0][0], strict=True))
    assert row["GPU minutes"] == "1.5" and row["GPU memory, GiB"] == "4.00" and row["Energy, Wh"] == "500"


@pytest.mark.parametrize("kind", ["text", "markdown", "latex", "csv"])
def test_the_command_prints_costs_in_every_format(two_seeds, kind, monkeypatch, capsys):
    monkeypatch.setattr("sys.argv", ["compare", str(two_seeds.path), "--cost", "--format", kind])
    assert compare.run_command(compare.main) == 0
    out = capsys.readouterr().out
    assert "CPU minutes" in out and "20.0" in out and "NDCG@10" not in out


def test_json_has_costs_unrounded(two_seeds, monkeypatch, capsys):
    monkeypatch.setattr("sys.argv", ["compare", str(two_seeds.path), "--cost", "--format", "json"])
    assert compare.run_command(compare.main) == 0
    value = json.loads(capsys.readouterr().out)
    expected = model_costs(load_runs([two_seeds]))["SASRec"]
    assert value["costs"]["SASRec"]["energy_kwh"] == expected.energy_kwh == pytest.approx(0.0007)
    assert value["costs"]["SASRec"]["gpu_memory_gib"] is None
    assert value["tables"][0]["header"][3] == "CPU minutes"


def test_a_cost_that_is_no_number_is_refused(two_seeds, monkeypatch, capsys):
    finish(two_seeds, 1, {"cpu_seconds": "many"})
    monkeypatch.setattr("sys.argv", ["compare", str(two_seeds.path), "--cost"])
    assert compare.run_command(compare.main) == 2
    assert "cost.cpu_seconds" in capsys.readouterr().err


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
