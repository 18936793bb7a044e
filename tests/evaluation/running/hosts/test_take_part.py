"""The run command on two hosts, which are processes of this machine."""

import json
import math
import os
import re
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import pandas as pd
import psutil
import pytest

from aprec_like import devices
from aprec_like.errors import InputError
from evaluation.running.hosts.orders import Order
from evaluation.running.hosts.train_along import train_along
from evaluation.running.worker import WorkerOptions
from tests.local_hosts import local_cluster, tf_config

ROOT = Path(__file__).parents[4]
RECIPE = """
from aprec_like.datasets import Lengths, Simulated
from aprec_like.losses import GBCE
from aprec_like.metrics import NDCG
from aprec_like.models import Popularity, SASRec
from aprec_like.recipe import Recipe, Trained
from aprec_like.splits import LeaveOneOut
from aprec_like.training import EarlyStopping, Training

lengths = Lengths(median=8, spread=0.3, minimum=5, maximum=20)
network = SASRec(max_length=8, embedding_dim=8, num_blocks=1, dropout_rate=0.2)
training = Training(batch_size=33, max_epochs=16, early_stopping=EarlyStopping(NDCG(10), patience=16))
recipe = Recipe(
    dataset=Simulated(num_users=200, num_items=60, num_types=2, lengths=lengths),
    split=LeaveOneOut(num_validation_users=50),
    models={"gSASRec": Trained(network, GBCE(8), training), "Popularity": Popularity()},
)
"""


def start(folder: Path, results: str, variables: dict[str, str]) -> subprocess.Popen:
    (folder / "pair.py").write_text(RECIPE)
    return subprocess.Popen(
        [sys.executable, "-m", "evaluation.run", "pair.py", "--results", results],
        cwd=folder,
        env=os.environ | {"PYTHONPATH": str(ROOT)} | variables,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )


def start_hosts(folder: Path) -> list[subprocess.Popen]:
    cluster = local_cluster(2)
    return [start(folder, "two", tf_config(cluster, number)) for number in range(2)]


def end_of(process: subprocess.Popen) -> tuple[int, str]:
    _, err = process.communicate(timeout=900)
    return process.returncode, err


def wait_for(is_reached) -> None:
    deadline = time.monotonic() + 900
    while not is_reached():
        assert time.monotonic() < deadline
        time.sleep(0.02)


def test_two_hosts_train_together_and_resume_when_one_was_killed(tmp_path):
    alone = start(tmp_path, "one", {})
    first, second = start_hosts(tmp_path)
    model = tmp_path / "two/pair/gSASRec/seed_1"
    wait_for(lambda: any(model.glob("checkpoint/state-00000[3-9]*")))
    for worker in psutil.Process(second.pid).children():
        worker.kill()
    (code, err), (other_code, other_err) = end_of(first), end_of(second)
    assert code == other_code == 1, err + other_err
    assert "the same command resumes" in err and "the same command on all hosts resumes" in other_err
    assert json.loads((model / "status.json").read_text())["state"] == "failed"

    first, second = start_hosts(tmp_path)
    (code, err), (other_code, other_err) = end_of(first), end_of(second)
    assert code == other_code == 0, err + other_err
    assert "resumes from epoch" in (model / "log.txt").read_text()
    assert end_of(alone)[0] == 0
    one, two = (pd.read_csv(tmp_path / name / "pair/gSASRec/seed_1/history.csv") for name in ("one", "two"))
    assert len(one) == len(two) == 16
    np.testing.assert_allclose(two["loss"], one["loss"], rtol=1e-4)
    np.testing.assert_allclose(two["loss"][:4], one["loss"][:4], rtol=1e-5)
    for name in ("gSASRec", "Popularity"):
        status = json.loads((tmp_path / f"two/pair/{name}/seed_1/status.json").read_text())
        assert status["state"] == "finished"
    assert "gSASRec, seed 1: trains with the first host" in other_err


@pytest.mark.parametrize(
    "config",
    [
        "{",
        '{"cluster": {"worker": ["a:1"], "chief": ["b:1"]}, "task": {"type": "worker", "index": 0}}',
        '{"cluster": {"worker": ["a:1", "b:1"]}, "task": {"type": "worker", "index": 2}}',
        '{"cluster": {"worker": ["a:1", "b:1"]}, "task": {"type": "evaluator", "index": 0}}',
    ],
)
def test_another_description_of_the_cluster_is_refused_and_repeated(monkeypatch, config):
    monkeypatch.setenv("TF_CONFIG", config)
    with pytest.raises(InputError, match=f"TF_CONFIG must be .* Received: {re.escape(config)}"):
        devices.num_configured_hosts()


def test_a_host_that_does_not_see_the_results_of_the_first_one_says_so(tmp_path):
    (tmp_path / "pair.py").write_text(RECIPE)
    options = WorkerOptions(tmp_path / "pair.py", "gSASRec", 1, tmp_path, tmp_path / "own/pair", math.inf, False)
    with pytest.raises(InputError, match=r"own/pair is not there, .* all need one --results DIR"):
        train_along(options, Order("gSASRec", 1), lambda: False)


def test_the_number_of_a_host_is_its_index(monkeypatch):
    monkeypatch.setenv("TF_CONFIG", tf_config(["a:1", "b:1", "c:1"], 2)["TF_CONFIG"])
    assert (devices.num_configured_hosts(), devices.host_number()) == (3, 2)
    monkeypatch.delenv("TF_CONFIG")
    assert (devices.num_configured_hosts(), devices.host_number()) == (1, 0)
