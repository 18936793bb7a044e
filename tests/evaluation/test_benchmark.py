"""The benchmark command on small data, a minute of starting processes; that it is fast is for real sizes to show."""

import json

import pytest

from aprec_like.losses import GBCE, Softmax
from aprec_like.models import SASRec
from aprec_like.recipe import Trained
from aprec_like.training import Training
from evaluation import benchmark, growth

RECIPE = """
from aprec_like.datasets import Lengths, Simulated
from aprec_like.losses import GBCE
from aprec_like.models import Popularity, SASRec
from aprec_like.recipe import Recipe, Trained
from aprec_like.splits import LeaveOneOut
from aprec_like.training import Training

recipe = Recipe(
    dataset=Simulated(num_users=200, num_items=60, num_types=2, lengths=Lengths(8, 0.3, 5, 20)),
    split=LeaveOneOut(20),
    models={
        "Popularity": Popularity(),
        "gSASRec": Trained(SASRec(16, 8, 1), GBCE(4, 0.5), Training(batch_size=32)),
    },
)
"""


@pytest.mark.slow
def test_every_number_is_there_and_makes_sense(tmp_path, monkeypatch, capfd):
    (tmp_path / "tiny.py").write_text(RECIPE)
    monkeypatch.setattr("sys.argv", ["benchmark", str(tmp_path / "tiny.py"), "--json", "--steps", "3"])
    assert benchmark.run_command(benchmark.main) == 0
    models = json.loads(capfd.readouterr().out)["models"]
    assert set(models["Popularity"]) == {"users_per_second", "ranking_memory_gib"}
    measured = models["gSASRec"]
    assert measured["step_ratio"] == measured["naive_step_seconds"] / measured["step_seconds"] > 0
    assert measured["ranking_ratio"] == measured["users_per_second"] / measured["naive_users_per_second"] > 0
    assert measured["encoder_seconds"] > 0
    assert 0 < measured["peak_memory_gib"] < 10 and measured["tokens_per_second"] > 0
    shares = [measured[f"{name}_share"] for name in ("input", "step", "validation", "save")]
    assert abs(sum(shares) - 1) < 1e-9 and min(shares) > 0


@pytest.mark.slow
def test_growth_is_measured_at_every_size_and_drawn(tmp_path, monkeypatch, capfd):
    monkeypatch.setattr(growth, "SWEEPS", {"items": (50, 500), "length": (4, 8), "negatives": (1, 2)})
    (tmp_path / "tiny.py").write_text(RECIPE)
    options = ["--json", "--steps", "1", "--growth", str(tmp_path)]
    monkeypatch.setattr("sys.argv", ["benchmark", str(tmp_path / "tiny.py"), *options])
    assert benchmark.run_command(benchmark.main) == 0
    measured = json.loads(capfd.readouterr().out)["models"]
    assert {varied: list(values) for varied, values in measured["gSASRec"].items()} == {
        "items": ["50", "500"],
        "length": ["4", "8"],
        "negatives": ["1", "2"],
    }
    assert all(found["step_seconds"] > 0 for values in measured["gSASRec"].values() for found in values.values())
    assert (tmp_path / "growth.pdf").read_bytes().startswith(b"%PDF")
    assert (tmp_path / "growth.png").exists()


def test_a_size_changes_one_thing_of_the_model():
    trained = Trained(SASRec(16, 8, 1), GBCE(4, 0.5), Training(batch_size=32))
    for size, expected in (
        (growth.Size("items", 300), (300, 16, 4)),
        (growth.Size("length", 5), (10_000, 5, 4)),
        (growth.Size("negatives", 9), (10_000, 16, 9)),
    ):
        changed, data = size.applied(trained)
        assert (data.num_items, changed.model.max_length, changed.loss.num_negatives) == expected
        assert set(data.lengths) == {expected[1] + 1} and data.num_users == 64
    assert [size.varied for size in growth.sizes_for(Trained(SASRec(), Softmax(), Training()))].count("negatives") == 0


def test_unknown_models_are_refused(tmp_path, monkeypatch, capfd):
    (tmp_path / "tiny.py").write_text(RECIPE)
    monkeypatch.setattr("sys.argv", ["benchmark", str(tmp_path / "tiny.py"), "--only", "Nothing"])
    assert benchmark.run_command(benchmark.main) == 2
    assert "no model 'Nothing'; it has Popularity, gSASRec" in capfd.readouterr().err
