"""The measured plan on small data. The processes of measurements are functions of this one; speed is not tested."""

import json
from pathlib import Path

import pytest

from aprec_like.datasets import Sizes
from aprec_like.losses import GBCE, Softmax
from aprec_like.models import SASRec
from aprec_like.recipe import Trained
from aprec_like.training import Training
from evaluation import benchmark, run
from evaluation.benchmarking.planning import measured_epoch, measured_plan
from evaluation.benchmarking.planning.measured_epoch import PLAN_KINDS, time_steps
from evaluation.benchmarking.planning.measured_plan import plan_table
from evaluation.running import plan
from evaluation.table import as_text

RECIPE = """
from aprec_like.datasets import Simulated
from aprec_like.losses import GBCE
from aprec_like.models import Popularity, SASRec
from aprec_like.recipe import Recipe, Trained
from aprec_like.training import Training

recipe = Recipe(
    dataset=Simulated(num_users=700, num_items=500),
    models={
        "Popularity": Popularity(),
        "gSASRec": Trained(SASRec(max_length=8, embedding_dim=8, num_blocks=1), GBCE(4), Training(batch_size=64)),
    },
)
"""


@pytest.fixture
def call(tmp_path, monkeypatch):
    """Call a command on the recipe, with measurements in this process."""

    def measure(inputs):
        return json.loads(
            json.dumps(PLAN_KINDS[inputs["kind"]](Path(inputs["recipe"]), inputs["model"], tmp_path, False))
        )

    monkeypatch.setattr(measured_plan, "run_measurement", measure)
    monkeypatch.setattr(measured_epoch, "SECONDS_OF_STEPS", 0.0)
    monkeypatch.setattr(measured_epoch, "NUM_RANKED", 16)
    monkeypatch.chdir(tmp_path)
    (tmp_path / "small.py").write_text(RECIPE)

    def call(command, *options):
        monkeypatch.setattr("sys.argv", [command.__name__, "small.py", *options])
        return command.run_command(command.main)

    return call


def test_steps_of_warm_up_are_not_counted(monkeypatch):
    """The first two steps take 100 seconds each, the others 2."""
    now, done = [0.0], []
    monkeypatch.setattr(measured_epoch.time, "monotonic", lambda: now[0])

    def steps(first, num_steps, total):
        assert int(first) == len(done)
        for _ in range(int(num_steps)):
            now[0] += 100.0 if len(done) < 2 else 2.0
            done.append(int(first))
        return total

    assert time_steps(steps)[0] == 2.0
    assert len(done) == 7  # five steps of two seconds are ten


def test_fast_steps_are_called_several_at_a_time_as_in_a_training(monkeypatch):
    now, numbers = [0.0], []
    monkeypatch.setattr(measured_epoch.time, "monotonic", lambda: now[0])

    def steps(first, num_steps, total):
        now[0] += 0.03125 * int(num_steps)
        numbers.append(int(num_steps))
        return total

    assert time_steps(steps)[0] == 0.03125
    assert numbers[:4] == [1, 1, 1, 8] and max(numbers) == 8


def test_the_measured_plan_has_time_and_memory_here_and_a_forecast_of_gpus(call, tmp_path, capsys):
    assert call(run, "--dry-run", "--measure") == 0
    out, err = capsys.readouterr()
    assert "700 users, 500 items" in out and "gSASRec: times steps" in err
    cells = next(line for line in out.splitlines() if line.startswith("gSASRec  ")).split()
    assert f"gSASRec: {cells[1]} parameters; {cells[2]} steps per epoch" in out and len(cells) == 10
    assert float(cells[3]) > 0.1  # GiB of TensorFlow alone
    assert all(float(cell) > 0 for cell in cells[4:5])
    assert {path.name for path in tmp_path.iterdir()} == {"small.py"}


def test_a_plan_is_compared_with_a_training_of_two_epochs(call, capsys):
    assert call(benchmark, "--plan", "--json") == 0
    found = json.loads(capsys.readouterr().out)["models"]["gSASRec"]
    assert found["predicted_memory_gib"] == pytest.approx(1.0, abs=0.1)
    assert found["plan"]["steps_per_epoch"] == 10
    assert found["training"]["epoch_cpu_seconds"] > 0 and found["plan"]["epoch_cpu_seconds"] > 0
    assert found["training"]["epoch_seconds"] > 0 and found["training"]["peak_memory_gib"] > 0.1


def test_measuring_without_a_dry_run_or_without_the_data_is_refused(call, tmp_path, capsys):
    with pytest.raises(SystemExit):
        call(run, "--measure")
    assert "--measure is a part of --dry-run" in capsys.readouterr().err
    (tmp_path / "small.py").write_text(
        RECIPE.replace("Simulated(num_users=700, num_items=500)", "MovieLens1M()").replace(
            "import Simulated", "import MovieLens1M"
        )
    )
    assert call(run, "--dry-run", "--measure", "--data", str(tmp_path)) == 2
    assert "MovieLens1M is not in" in capsys.readouterr().err


def test_a_model_without_room_on_a_gpu_is_marked_and_the_plan_has_the_setting_to_change():
    """19 million items of 64 dimensions: two tables with two moments and gradients are 36 GiB."""
    sizes, training = Sizes(users=1_000, items=19_000_000, interactions=10**6), Training(batch_size=16)
    model = Trained(SASRec(max_length=50, embedding_dim=64), GBCE(4), training)
    epoch = {
        "steps_per_epoch": 60,
        "step_seconds": 1.5,
        "epoch_seconds": 90.0,
        "ranking_seconds": 30.0,
        "peak_memory_gib": 40.0,
    }
    found = {"gSASRec": {"epoch": epoch, "milliseconds": {"A100": 500.0, "RTX 4090": 700.0, "T4": 900.0}}}
    text = as_text(plan_table({"gSASRec": model}, sizes, found))
    cells = next(line for line in text.splitlines() if line.startswith("gSASRec  ")).split()
    assert cells[2:8] == ["60", "40.0", "1.5000", "1.50", "0.50", "0.500"]  # 60 steps of half a second on an A100
    assert text.count("no room") == 2
    shortages = plan.gpu_shortages("gSASRec", model, sizes)
    assert list(shortages) == ["RTX 4090", "T4"] and "a GPU such as T4 has 15.0 GiB" in shortages["T4"]
    assert "no batch_size fits; to save memory: " in shortages["T4"] and "a smaller batch_size" not in shortages["T4"]


def test_a_gpu_has_larger_chunks_of_logits_than_this_machine(monkeypatch):
    """Four chunks of 2^26 values are 1 GiB on a GPU, and 32 MiB on a CPU."""
    sizes, model = Sizes(users=10, items=100, interactions=100), Trained(SASRec(max_length=8), Softmax(), Training())
    on_cpu = plan.predict_memory(model, sizes)
    monkeypatch.setattr(plan, "GPU_MEMORY", {"tiny": plan.TENSORFLOW_BYTES + on_cpu + 2**29})
    assert list(plan.gpu_shortages("A", model, sizes)) == ["tiny"]


def test_a_plan_names_a_batch_size_that_fits_this_machine(monkeypatch):
    model = Trained(SASRec(max_length=200, embedding_dim=128), Softmax(), Training(batch_size=512))
    sizes = Sizes(users=6_040, items=3_416, interactions=999_611)
    needed = plan.predict_peak_memory(model, sizes)
    assert plan.memory_shortage("A", model, sizes, "this machine", needed) is None
    assert plan.memory_shortage("A", model, sizes, "this machine", needed - 1).endswith("batch_size=256 would fit")
