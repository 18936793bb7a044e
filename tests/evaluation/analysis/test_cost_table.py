"""What trainings cost, in every format; folders of earlier versions show what they know."""

import json

import numpy as np
import pytest

from evaluation import compare
from evaluation.analysis.cost_table import cost_table, model_costs
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
