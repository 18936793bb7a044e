"""The benchmark command on small data; the slow tests start a process per measurement. Speed is not tested."""

import json

import numpy as np
import pytest
import tensorflow as tf

from aprec_like.batches import BatchSettings, make_batches
from aprec_like.batches.layouts import STATIC
from aprec_like.losses import GBCE, Softmax
from aprec_like.models import SASRec
from aprec_like.negatives import Negatives
from aprec_like.recipe import Trained
from aprec_like.training import Training
from aprec_like.training.objective import make_objective
from evaluation import benchmark
from evaluation.benchmarking import bench, sizes
from evaluation.benchmarking.naive import naive_batch_loss
from evaluation.benchmarking.output_layer import FixedStates
from evaluation.benchmarking.setup import is_measured
from evaluation.benchmarking.sizes import Size, applicable_sizes
from tests.conftest import interactions_from

RECIPE = """
from aprec_like.datasets import Lengths, Simulated
from aprec_like.losses import GBCE
from aprec_like.models import Popularity, SASRec
from aprec_like.recipe import Recipe, Trained
from aprec_like.splits import LeaveOneOut
from aprec_like.training import Training

recipe = Recipe(
    dataset=Simulated(
        num_users=200,
        num_items=60,
        num_types=2,
        lengths=Lengths(median=8, spread=0.3, minimum=5, maximum=20),
    ),
    split=LeaveOneOut(num_validation_users=20),
    models={
        "Popularity": Popularity(),
        "gSASRec": Trained(
            SASRec(max_length=16, embedding_dim=8, num_blocks=1),
            GBCE(num_negatives=4, calibration=0.5),
            Training(batch_size=32),
        ),
    },
)
"""


@pytest.mark.parametrize(
    ("seconds", "expected"),
    [
        ([0.1] * 9, False),
        ([0.1] * 10, True),  # two of warm-up and eight
        ([40.0, 40.0], False),  # slow, but both are warm-up
        ([40.0, 40.0, 40.0], True),
    ],
)
def test_slow_steps_are_measured_less_often(seconds, expected):
    assert is_measured(seconds, 8) == expected


def test_the_output_layer_is_timed_on_the_same_loss_as_naive_code_computes():
    """In a batch of static shape every position is a target or padding, so both see the same states."""
    train = interactions_from([[1, 2, 3, 4, 5], [6, 7], [8, 9, 1]], 12)
    model = SASRec(max_length=4, embedding_dim=8)
    batch = next(iter(make_batches(train, model.examples(), BatchSettings(3, 1, layout=STATIC), seed=1)))
    fixed, seed = FixedStates(model.build(12), num_states=3 * 4), tf.constant([1, 2], tf.int64)
    with tf.GradientTape(persistent=True) as tape:
        ours = make_objective(Softmax(), Negatives(), train)(fixed, batch, seed)
        theirs = naive_batch_loss(fixed, Softmax(), batch, 4, seed)
    assert float(ours) == pytest.approx(float(theirs), rel=1e-5)
    scale = fixed.variables[0]
    np.testing.assert_allclose(tape.gradient(ours, scale), tape.gradient(theirs, scale), atol=1e-6)


@pytest.mark.slow
def test_every_number_is_there_and_makes_sense(tmp_path, monkeypatch, capfd):
    (tmp_path / "tiny.py").write_text(RECIPE)
    monkeypatch.setattr("sys.argv", ["benchmark", str(tmp_path / "tiny.py"), "--json", "--steps", "3"])
    assert benchmark.run_command(benchmark.main) == 0
    models = json.loads(capfd.readouterr().out)["models"]
    assert set(models["Popularity"]) == {"users_per_second", "ranking_memory_gib"}
    measured = models["gSASRec"]
    assert measured["step_ratio"] == measured["naive_step_seconds"] / measured["step_seconds"] > 0
    assert measured["output_ratio"] == measured["naive_output_seconds"] / measured["output_seconds"] > 0
    assert measured["ranking_ratio"] == measured["users_per_second"] / measured["naive_users_per_second"] > 0
    assert measured["encoder_seconds"] > 0
    assert 0 < measured["peak_memory_gib"] < 10 and measured["tokens_per_second"] > 0
    shares = [measured[f"{name}_share"] for name in ("input", "step", "validation", "save")]
    assert abs(sum(shares) - 1) < 1e-9 and min(shares) > 0


@pytest.mark.slow
def test_growth_is_measured_at_every_size_and_drawn(tmp_path, monkeypatch, capfd):
    monkeypatch.setattr(sizes, "SWEEPS", {"items": (50, 500), "length": (4, 8), "negatives": (1, 2)})
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
    assert "| 500 |" in (tmp_path / "growth.md").read_text()


@pytest.mark.parametrize("growth_options", [[], ["--growth", "figures"]])
def test_an_interrupted_benchmark_shows_what_it_has(growth_options, tmp_path, monkeypatch, capfd):
    measurements = iter([{"step_seconds": 0.25, "peak_memory_gib": 1.0}])

    def run_measurement(*arguments, **options):
        for values in measurements:
            return values
        raise KeyboardInterrupt

    monkeypatch.setattr(bench, "run_measurement", run_measurement)
    monkeypatch.chdir(tmp_path)
    (tmp_path / "tiny.py").write_text(RECIPE)
    monkeypatch.setattr("sys.argv", ["benchmark", "tiny.py", "--only", "gSASRec", *growth_options])
    assert benchmark.run_command(benchmark.main) == 130
    assert "0.250" in capfd.readouterr().out
    assert not (tmp_path / "figures").exists()  # an incomplete figure would look complete


def test_a_size_changes_one_setting_of_the_model():
    architecture = SASRec(max_length=16, embedding_dim=8, num_blocks=1)
    trained = Trained(architecture, GBCE(num_negatives=4, calibration=0.5), Training(batch_size=32))
    for size, expected in (
        (Size("items", 300), (300, 16, 4)),
        (Size("length", 5), (10_000, 5, 4)),
        (Size("negatives", 9), (10_000, 16, 9)),
    ):
        changed, data = size.apply(trained)
        assert (data.num_items, changed.model.max_length, changed.loss.num_negatives) == expected
        assert set(data.lengths) == {expected[1] + 1} and data.num_users == 64
    assert {size.varied for size in applicable_sizes(Trained(SASRec(), Softmax(), Training()))} == {"items", "length"}


def test_unknown_models_are_refused(tmp_path, monkeypatch, capfd):
    (tmp_path / "tiny.py").write_text(RECIPE)
    monkeypatch.setattr("sys.argv", ["benchmark", str(tmp_path / "tiny.py"), "--only", "Nothing"])
    assert benchmark.run_command(benchmark.main) == 2
    assert "no model 'Nothing'; it has Popularity, gSASRec" in capfd.readouterr().err
