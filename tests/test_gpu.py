"""On a machine with a GPU: determinism, the same update as on the CPU, a run, and the forecast beside the clock.

Run with `python -m pytest -m gpu -n 0 -s`. Everything here is skipped without a GPU.
"""

import json
import os
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import pytest
import tensorflow as tf

from aprec_like.devices import device_line, prepare_devices
from aprec_like.recipe import load_recipe
from aprec_like.training import make_step
from evaluation.benchmarking.forecast import forecast
from tests.aprec_like.training.test_gpu_step import CASES, made_step, make_split, one_update

ROOT = Path(__file__).parent.parent
pytestmark = [
    pytest.mark.gpu,
    pytest.mark.skipif(not tf.config.list_physical_devices("GPU"), reason="needs a GPU"),
]

CPU_UPDATE = """
import sys
import numpy as np
from aprec_like.devices import prepare_devices
from tests.aprec_like.training.test_gpu_step import CASES, make_split, one_update
prepare_devices()
loss, weights = one_update(CASES[sys.argv[1]], make_split())
np.savez(sys.argv[2], loss, *weights)
"""


@pytest.fixture(scope="module", autouse=True)
def device():
    prepare_devices()
    print(device_line())


def update_bytes(name):
    trained, split = CASES[name], make_split()
    network, objective, optimizer, spec, batch, is_compiled = made_step(
        trained, split, trained.training.optimizer.build()
    )
    step = make_step(network, objective, optimizer, 1, spec, is_compiled)
    losses = [step(batch, tf.constant(number, tf.int64)).numpy() for number in range(2)]
    return b"".join(array.tobytes() for array in (*losses, *network.get_weights()))


@pytest.mark.parametrize("name", CASES)
def test_two_steps_give_the_same_bytes_twice(name):
    assert update_bytes(name) == update_bytes(name)


@pytest.mark.parametrize("name", CASES)
def test_a_step_makes_the_update_of_the_cpu(name, tmp_path):
    environment = os.environ | {"CUDA_VISIBLE_DEVICES": "-1", "PYTHONPATH": str(ROOT)}
    command = [sys.executable, "-c", CPU_UPDATE, name, str(tmp_path / "cpu.npz")]
    subprocess.run(command, env=environment, check=True)
    loss, weights = one_update(CASES[name], make_split())
    with np.load(tmp_path / "cpu.npz") as stored:
        expected_loss, *expected = stored.values()
    assert loss == pytest.approx(float(expected_loss), rel=1e-4)
    for ours, theirs in zip(weights, expected, strict=True):
        np.testing.assert_allclose(ours, theirs, atol=1e-4)


def test_a_run_ends_with_a_table_and_says_what_memory_the_gpu_needed(tmp_path):
    command = [sys.executable, "-m", "evaluation.run", "recipes/quickstart.py", "--smoke", "--results", str(tmp_path)]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr[-2000:]
    assert "GPU: " in done.stderr
    status = json.loads((tmp_path / "quickstart-smoke/gSASRec/seed_1/status.json").read_text())
    assert status["peak_gpu_memory_gib"] > 0 and "GPU" in status["devices"]


@pytest.mark.parametrize("name", ["SASRec", "SASRec-Softmax", "gSASRec"])
def test_the_step_takes_the_time_of_the_forecast(name):
    """Prints both; forecasts are not measurements, so only their order of magnitude is held."""
    recipe = load_recipe(ROOT / "recipes/ml1m_gsasrec.py")
    folder = Path(os.environ.get("APREC_LIKE_DATA", "."))
    if not recipe.dataset.is_on_disk(folder):
        pytest.skip("needs ml-1m.zip in APREC_LIKE_DATA")
    split = recipe.split.split(recipe.load(folder))
    trained = recipe.models[name]
    network, objective, optimizer, spec, batch, is_compiled = made_step(
        trained, split, trained.training.optimizer.build()
    )
    step = make_step(network, objective, optimizer, 1, spec, is_compiled)
    float(step(batch, tf.constant(0, tf.int64)))
    started = time.monotonic()
    for number in range(50):
        loss = step(batch, tf.constant(number, tf.int64))
    float(loss)
    measured = 1e3 * (time.monotonic() - started) / 50
    expected = forecast(trained, split)["milliseconds"]
    print(f"{name}: measured {measured:.1f} ms a step; forecast {json.dumps(expected)}")
    assert 0.1 * min(expected.values()) < measured < 10 * max(expected.values())
