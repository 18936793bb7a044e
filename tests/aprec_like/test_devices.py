import subprocess
import sys
from pathlib import Path

import pytest
import tensorflow as tf
from tensorflow.python.framework.config import is_op_determinism_enabled

from aprec_like import devices
from aprec_like.errors import InputError
from evaluation import parity
from evaluation.cli import import_tensorflow


class Smi:
    """Stands for nvidia-smi."""

    def __init__(self, output):
        self.output = output

    def __call__(self, command, **options):
        if self.output is None:
            raise FileNotFoundError(command[0])
        return subprocess.CompletedProcess(command, 0, stdout=self.output)


def smi(monkeypatch, output):
    monkeypatch.setattr(devices.subprocess, "run", Smi(output))


def test_without_a_gpu_the_line_says_so(monkeypatch):
    smi(monkeypatch, None)
    assert devices.device_line() == "no GPU: training on the CPU"
    assert devices.describe_devices()["gpus"] == []


def test_a_gpu_that_tensorflow_cant_use_is_named_with_what_to_install(monkeypatch):
    smi(monkeypatch, "NVIDIA GeForce RTX 4090, 550.54, 24564, 8.9\n")
    monkeypatch.delenv("CUDA_VISIBLE_DEVICES", raising=False)
    line = devices.device_line()
    assert line.startswith("training on the CPU: TensorFlow can't use the NVIDIA GeForce RTX 4090 (driver 550.54)")
    assert 'pip install "aprec_like[gpu]"' in line and "CUDA 12" in line
    monkeypatch.setenv("CUDA_VISIBLE_DEVICES", "-1")
    assert devices.device_line().endswith("CUDA_VISIBLE_DEVICES hides it")


@pytest.mark.parametrize(("capability", "is_newer"), [("8.0", False), ("9.0", False), ("12.0", True)])
def test_a_card_newer_than_tensorflows_code_is_said_to_compile(monkeypatch, capability, is_newer):
    smi(monkeypatch, f"NVIDIA X, 570.1, 81920, {capability}\nNVIDIA X, 570.1, 81920, {capability}\n")
    with devices.pretend_gpu():
        line = devices.device_line()
    assert line.startswith("GPU: NVIDIA X, 80 GiB, driver 570.1 (the first of 2 is used)")
    assert line.endswith("compiles for minutes") == is_newer


@pytest.mark.parametrize("output", ["", "no devices were found\n"])
def test_a_driver_without_devices_is_none(monkeypatch, output):
    smi(monkeypatch, output)
    assert devices.query_nvidia() == []


@pytest.mark.parametrize(
    ("value", "is_exact", "expected"), [("1", False, True), ("0", False, False), ("1", True, False)]
)
def test_products_are_exact_unless_the_user_asks_for_tf32(monkeypatch, value, is_exact, expected):
    monkeypatch.setenv(devices.TENSOR_FLOAT_32, value)
    devices.prepare_devices(is_exact)
    assert tf.config.experimental.tensor_float_32_execution_enabled() == expected
    assert devices.describe_devices()["tensor_float_32"] == (value == "1")


def test_every_command_prepares_devices_and_parity_never_allows_tf32(monkeypatch):
    monkeypatch.setenv(devices.TENSOR_FLOAT_32, "1")
    for is_exact in (False, True):
        import_tensorflow(is_exact)
        assert is_op_determinism_enabled()
        assert tf.config.experimental.tensor_float_32_execution_enabled() != is_exact
    golden = sorted(str(path) for path in Path(__file__).parent.parent.glob("golden/*.npz"))[:1]
    monkeypatch.setattr(sys, "argv", ["parity", *golden])
    import_tensorflow()
    assert parity.main() == 0 and not tf.config.experimental.tensor_float_32_execution_enabled()


def test_the_environment_names_the_flags_of_xla(monkeypatch):
    monkeypatch.setenv("XLA_FLAGS", "--xla_cpu_enable_fast_math=false")
    with devices.pretend_gpu():
        found = devices.describe_devices()["xla"]
    assert found == {"compiles_steps": True, "flags": "--xla_cpu_enable_fast_math=false"}


@pytest.mark.parametrize(("num_gpus", "wanted"), [(0, 1), (0, None), (2, 1), (2, 2), (2, None)])
def test_devices_that_are_there_need_no_word(monkeypatch, num_gpus, wanted):
    monkeypatch.setattr(devices.tf.config, "list_physical_devices", lambda kind: [kind] * num_gpus)
    assert devices.check_num_devices(wanted) is None


def test_more_gpus_than_there_are_are_refused_and_without_any_the_cpu_takes_their_place(monkeypatch):
    monkeypatch.setattr(devices.tf.config, "list_physical_devices", lambda kind: [kind] * 2)
    with pytest.raises(InputError, match="--devices 3: TensorFlow finds 2 GPUs; --devices all"):
        devices.check_num_devices(3)
    monkeypatch.setattr(devices.tf.config, "list_physical_devices", lambda kind: [])
    assert "--devices 3 trains on as many logical devices of the CPU" in devices.check_num_devices(3)
