"""Training on two replicas, which are logical CPU devices, against one: the same numbers but for the order of sums."""

import json
import os
import socket
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

ROOT = Path(__file__).parents[3]


def run_replicas(*names: str) -> dict:
    command = [sys.executable, "-m", "tests.aprec_like.training.replicas", "devices", *names]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr[-3000:]
    return json.loads(done.stdout.splitlines()[-1])


def check_losses(*names: str) -> None:
    for name, (one, two) in run_replicas(*names).items():
        assert len(one) == 20 and min(one) < one[0], name
        np.testing.assert_allclose(two, one, rtol=1e-2 if name == "mixed" else 1e-5, err_msg=name)


def test_two_replicas_draw_the_same_dropout_and_negatives_and_learn_the_same():
    check_losses("gSASRec", "SASRec-Softmax", "BERT4Rec", "lazy")


@pytest.mark.slow
def test_two_replicas_share_negatives_by_sequence_and_compile_and_mix_precisions_as_one_does():
    check_losses("sequence", "compiled", "mixed")


def test_a_training_goes_on_with_another_number_of_devices():
    one, two = run_replicas()["resumed"]
    np.testing.assert_allclose(two, one, rtol=1e-5)
    assert len(one) == 3


def start_host(number: int, ports: list[int], folder: Path) -> subprocess.Popen:
    """Start one of the hosts at these ports of this machine; without ports, a single one."""
    workers = [f"127.0.0.1:{port}" for port in ports]
    config = json.dumps({"cluster": {"worker": workers}, "task": {"type": "worker", "index": number}})
    command = [sys.executable, "-m", "tests.aprec_like.training.replicas", "hosts", str(folder), "gSASRec", "lazy"]
    environment = os.environ | ({"TF_CONFIG": config} if ports else {})
    return subprocess.Popen(
        command, cwd=ROOT, env=environment, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True
    )


def free_ports(number: int) -> list[int]:
    sockets = [socket.create_server(("127.0.0.1", 0)) for _ in range(number)]
    ports = [each.getsockname()[1] for each in sockets]
    for each in sockets:
        each.close()
    return ports


def result_of(process: subprocess.Popen) -> dict:
    out, _ = process.communicate(timeout=600)
    assert process.returncode == 0
    return json.loads(out.splitlines()[-1])


@pytest.mark.slow
def test_two_hosts_learn_what_one_does_and_resume_when_one_was_killed(tmp_path):
    one = result_of(start_host(0, [], tmp_path / "one"))
    ports = free_ports(2)
    hosts = [start_host(number, ports, tmp_path / "two") for number in range(2)]
    assert all(hosts[1].stdout.readline() == "epoch\n" for _ in range(3))
    for host in hosts[::-1]:  # the second dies, the first can't go on without it
        host.kill()
        host.communicate()
    assert list((tmp_path / "two").glob("state-*"))
    ports = free_ports(2)
    hosts = [start_host(number, ports, tmp_path / "two") for number in range(2)]
    for found in [result_of(host) for host in hosts]:
        for name in ("gSASRec", "lazy"):
            np.testing.assert_allclose(found[name], one[name], rtol=1e-5, err_msg=name)
        np.testing.assert_allclose(np.array(found["history"])[:3], np.array(one["history"])[:3], rtol=1e-5)
        assert len(found["history"]) == len(one["history"]) == 30
