"""Devices of TensorFlow: whether there is a GPU, what it is, why it can't be used, and reproducible settings."""

from __future__ import annotations

import json
import os
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager

from aprec_like.errors import InputError
from aprec_like.lazy_tensorflow import tf
from aprec_like.types import Json

TENSOR_FLOAT_32 = "APREC_LIKE_TF32"
"""Environment variable: 1 lets products of float32 matrices round their factors to 10 bits, on GPUs since Ampere."""

NVIDIA_QUERY = (
    "nvidia-smi",
    "--query-gpu=name,driver_version,memory.total,compute_cap",
    "--format=csv,noheader,nounits",
)

_is_gpu_pretended = False


def has_gpu() -> bool:
    """Return whether TensorFlow uses a GPU; does not initialise it."""
    return _is_gpu_pretended or bool(tf.config.get_visible_devices("GPU"))


def visible_gpus() -> list[str]:
    """Return the GPUs that TensorFlow can use, each as the value of CUDA_VISIBLE_DEVICES that selects it alone."""
    num_gpus = len(tf.config.list_physical_devices("GPU"))
    chosen = [gpu.strip() for gpu in os.environ.get("CUDA_VISIBLE_DEVICES", "").split(",") if gpu.strip()]
    return chosen[:num_gpus] if chosen else [str(number) for number in range(num_gpus)]


def batch_device() -> str | None:
    """Return the device that batches are copied to ahead of their step; `None` without a GPU, also a pretended one."""
    return "/GPU:0" if tf.config.get_visible_devices("GPU") else None


@contextmanager
def pretend_gpu() -> Iterator[None]:
    """Make and trace everything within as for a GPU, on any machine: for tests, audits and forecasts."""
    global _is_gpu_pretended
    previous, _is_gpu_pretended = _is_gpu_pretended, True
    try:
        yield
    finally:
        _is_gpu_pretended = previous


def prepare_devices(is_exact: bool = False) -> None:
    """Prepare TensorFlow: deterministic operations, GPU memory that grows as needed, TF32 only if the user asks for it.

    TensorFlow would run scatters on the host to make them deterministic. Ours have distinct indices, which need no such
    protection (tests audit the graphs), so it is switched off.

    Args:
        is_exact: whether products are exact even if the user asks for TF32.
    """
    os.environ.setdefault("TF_DISABLE_SCATTER_OP_DETERMINISM", "1")
    tf.config.experimental.enable_op_determinism()
    tf.config.experimental.enable_tensor_float_32_execution(uses_tensor_float_32() and not is_exact)
    for device in tf.config.list_physical_devices("GPU"):
        tf.config.experimental.set_memory_growth(device, True)


def num_configured_hosts() -> int:
    """Return the number of hosts that TF_CONFIG, TensorFlow's description of a cluster, names; 1 without it."""
    return len(_read_cluster()[0])


def host_number() -> int:
    """Return the number of this host among those of TF_CONFIG, from 0; the first one leads."""
    return _read_cluster()[1]


def _read_cluster() -> tuple[list[str], int]:
    """Return the addresses of all workers that TF_CONFIG names, and the index of this one."""
    text = os.environ.get("TF_CONFIG")
    if not text:
        return ["localhost"], 0
    form = (
        'TF_CONFIG must be {"cluster": {"worker": [ADDRESSES]}, "task": {"type": "worker", "index": N}}, with N from 0 '
        "to one less than the number of addresses, and without other kinds of tasks"
    )
    try:
        config = json.loads(text)
        cluster, task = config.get("cluster", {}), config.get("task", {})
        workers, index = cluster.get("worker") or ["localhost"], int(task.get("index", 0))
    except (ValueError, TypeError, AttributeError) as error:
        raise InputError(f"{form}. Received: {text} ({error})") from None
    if set(cluster) - {"worker"} or task.get("type", "worker") != "worker" or not 0 <= index < len(workers):
        raise InputError(f"{form}. Received: {text}")
    return workers, index


def make_strategy(num_devices: int | None) -> tf.distribute.Strategy:
    """Return a strategy of data-parallel training on GPUs of this host; call it before TensorFlow is used.

    Where the environment variable TF_CONFIG names several hosts, it is one of all their GPUs, whatever `num_devices`.
    Without a GPU the devices are logical ones of the CPU, which is slower than one and only tests a recipe. One process
    should make one strategy: a second one would clash with the first in TensorFlow's collective operations.

    Args:
        num_devices: number of devices; `None` for all GPUs.

    Raises:
        InputError: if there are fewer GPUs.
    """
    if num_configured_hosts() > 1:
        return tf.distribute.MultiWorkerMirroredStrategy()
    check_num_devices(num_devices)
    num_gpus = len(tf.config.list_physical_devices("GPU"))
    wanted = max(1, num_gpus) if num_devices is None else num_devices
    if wanted == 1:
        return tf.distribute.get_strategy()
    if num_gpus == 0:
        cpu = tf.config.list_physical_devices("CPU")[0]
        tf.config.set_logical_device_configuration(cpu, [tf.config.LogicalDeviceConfiguration()] * wanted)
    kind = "GPU" if num_gpus else "CPU"
    return tf.distribute.MirroredStrategy([f"{kind}:{number}" for number in range(wanted)])


def check_num_devices(num_devices: int | None) -> str | None:
    """Check that this host has so many GPUs; returns what to tell the user where CPU devices take their place.

    Raises:
        InputError: if there are fewer GPUs.
    """
    num_gpus = len(tf.config.list_physical_devices("GPU"))
    if num_devices is None or num_devices == 1 or num_devices <= num_gpus:
        return None
    if num_gpus:
        found = "one GPU" if num_gpus == 1 else f"{num_gpus} GPUs"
        raise InputError(f"--devices {num_devices}: TensorFlow finds {found}; --devices all uses what there is")
    return (
        f"no GPU: --devices {num_devices} trains on as many logical devices of the CPU, slower than on one; for tests"
    )


def uses_tensor_float_32() -> bool:
    """Return whether the user asked for TF32 products."""
    return os.environ.get(TENSOR_FLOAT_32, "0") == "1"


def describe_devices() -> Json:
    """Return name, driver, memory and compute capability of NVIDIA GPUs, CUDA and cuDNN of TensorFlow, TF32 and XLA."""
    build = tf.sysconfig.get_build_info()
    return {
        "gpus": query_nvidia(),
        "is_gpu_used": has_gpu(),
        "cuda": build.get("cuda_version"),
        "cudnn": build.get("cudnn_version"),
        "tensor_float_32": uses_tensor_float_32(),
        "xla": {"compiles_steps": has_gpu(), "flags": os.environ.get("XLA_FLAGS", "")},
    }


def query_nvidia() -> list[Json]:
    """Return what the NVIDIA driver says about its GPUs; nothing where there is no driver."""
    try:
        done = subprocess.run(NVIDIA_QUERY, capture_output=True, text=True, timeout=30, check=True)
    except (OSError, subprocess.SubprocessError):
        return []
    rows = [[value.strip() for value in line.split(",")] for line in done.stdout.splitlines() if line.count(",") == 3]
    return [
        {"name": name, "driver": driver, "memory_mib": int(memory) if memory.isdecimal() else None, "capability": level}
        for name, driver, memory, level in rows
    ]


def gpu_memory() -> int | None:
    """Return the bytes of memory of the GPU that is used; `None` if there is none, or its driver does not say."""
    gpus = query_nvidia() if has_gpu() else []
    return gpus[0]["memory_mib"] * 2**20 if gpus and gpus[0]["memory_mib"] else None


def peak_gpu_memory() -> int | None:
    """Return the most bytes that this process had on the GPU at once; `None` without a GPU."""
    if not tf.config.list_logical_devices("GPU"):
        return None
    return int(tf.config.experimental.get_memory_info("GPU:0")["peak"])


def device_line() -> str:
    """Return one line about the device that models are trained on, and what to do if a GPU can't be used."""
    gpus = query_nvidia()
    if not has_gpu():
        if not gpus:
            return "no GPU: training on the CPU"
        return (
            f"training on the CPU: TensorFlow can't use the {gpus[0]['name']} (driver {gpus[0]['driver']}); "
            f"{_reason_not_used()}"
        )
    if not gpus:
        return "GPU: training on a device that its driver does not describe"
    gpu = gpus[0]
    memory = "" if gpu["memory_mib"] is None else f", {gpu['memory_mib'] / 1024:.0f} GiB"
    line = f"GPU: {gpu['name']}{memory}, driver {gpu['driver']}"
    if len(gpus) > 1:
        line += f" (the first of {len(gpus)} is used)"
    if _is_newer(gpu):
        line += "; it is newer than TensorFlow's code, so the first step compiles for minutes"
    return line


def _reason_not_used() -> str:
    build = tf.sysconfig.get_build_info()
    if not build.get("is_cuda_build"):
        return 'this TensorFlow is built without CUDA; pip install "aprec_like[gpu]" on Linux'
    if os.environ.get("CUDA_VISIBLE_DEVICES") in ("", "-1"):
        return "CUDA_VISIBLE_DEVICES hides it"
    return (
        f"it needs the libraries of CUDA {build.get('cuda_version')} and cuDNN {build.get('cudnn_version')}: "
        'pip install "aprec_like[gpu]" brings them; if they are there, the driver is too old'
    )


def _is_newer(gpu: Json) -> bool:
    """Return whether a GPU's compute capability is above all that TensorFlow has machine code or PTX for."""
    levels = tf.sysconfig.get_build_info().get("cuda_compute_capabilities", [])
    known = [int(level.rsplit("_", 1)[1]) for level in levels]
    own = gpu["capability"].replace(".", "")
    return bool(known) and own.isdecimal() and int(own) > max(known)
