"""Training on two replicas, which are logical CPU devices, against one: the same numbers but for the order of sums."""

import json
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

ROOT = Path(__file__).parents[3]


def run_replicas(*names: str) -> dict:
    command = [sys.executable, "-m", "tests.aprec_like.training.replicas", *names]
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
