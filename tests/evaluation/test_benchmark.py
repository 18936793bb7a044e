"""The benchmark command on small data, a minute of starting processes; that it is fast is for real sizes to show."""

import json

import pytest

from evaluation import benchmark

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
    assert 0 < measured["peak_memory_gib"] < 10 and measured["tokens_per_second"] > 0
    shares = [measured[f"{name}_share"] for name in ("input", "step", "validation")]
    assert abs(sum(shares) - 1) < 1e-9 and min(shares) > 0


def test_unknown_models_are_refused(tmp_path, monkeypatch, capfd):
    (tmp_path / "tiny.py").write_text(RECIPE)
    monkeypatch.setattr("sys.argv", ["benchmark", str(tmp_path / "tiny.py"), "--only", "Nothing"])
    assert benchmark.run_command(benchmark.main) == 2
    assert "no model 'Nothing'; it has Popularity, gSASRec" in capfd.readouterr().err
