"""Training on two replicas, of one process or of two, against one: the same numbers but for the order of sums."""

import json
import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from tests.local_hosts import local_cluster, tf_config

ROOT = Path(__file__).parents[3]


def run_replicas(*names: str) -> dict:
    command = [sys.executable, "-m", "tests.aprec_like.training.replicas", "devices", *names]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr[-3000:]
    return json.loads(done.stdout.splitlines()[-1])


def check_losses(losses: dict[str, list[list[float]]]) -> None:
    for name, (one, two) in losses.items():
        assert len(one) == 20 and min(one) < one[0], name
        np.testing.assert_allclose(two, one, rtol=1e-2 if name == "mixed" else 1e-5, err_msg=name)


NAMES = ("gSASRec", "SASRec-Softmax", "GRU4Rec", "BERT4Rec", "lazy")


@pytest.fixture(scope="module")
def losses_on_devices():
    """By model, the losses of the first 20 steps on one device and on two."""
    return run_replicas(*NAMES)


def test_two_replicas_draw_the_same_dropout_and_negatives_and_learn_the_same(losses_on_devices):
    check_losses(losses_on_devices)


@pytest.mark.slow
def test_two_replicas_share_negatives_by_sequence_and_compile_and_mix_precisions_as_one_does():
    check_losses(run_replicas("sequence", "compiled", "mixed"))


def test_two_hosts_learn_what_one_does(losses_on_devices):
    """Two processes with an address each on this machine (MultiWorkerMirroredStrategy)."""
    hosts = [start_host(number, cluster) for cluster in [local_cluster(2)] for number in range(2)]
    for host in hosts:
        out, err = host.communicate(timeout=600)
        assert host.returncode == 0, err[-3000:]
        found = json.loads(out.splitlines()[-1])
        check_losses({name: [losses_on_devices[name][0], found[name]] for name in NAMES})


def test_a_training_goes_on_with_another_number_of_devices():
    one, two = run_replicas()["resumed"]
    np.testing.assert_allclose(two, one, rtol=1e-5)
    assert len(one) == 3


def start_host(number: int, cluster: list[str]) -> subprocess.Popen:
    command = [sys.executable, "-m", "tests.aprec_like.training.replicas", "host", *NAMES]
    environment = os.environ | tf_config(cluster, number)
    return subprocess.Popen(
        command, cwd=ROOT, env=environment, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    )
