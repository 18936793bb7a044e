"""Forecast of a training step on GPUs, from the step as a GPU gets it and constants of devices; not a measurement."""

from __future__ import annotations

import itertools
from dataclasses import dataclass
from typing import Any

import tensorflow as tf

from aprec_like.batches import make_batches
from aprec_like.batches.layouts import Batch, PackedBatch
from aprec_like.devices import pretend_gpu
from aprec_like.interactions import PADDING, Interactions
from aprec_like.losses import SampledLoss
from aprec_like.losses.counted_sampled import num_chunks
from aprec_like.recipe import Trained
from aprec_like.splits import Split
from aprec_like.training import make_step
from aprec_like.training.objective import make_objective
from aprec_like.types import Json, Tensor
from evaluation.benchmarking.compiled_step import CompiledStep, read_compiled_step
from evaluation.benchmarking.gpu_kernels import num_tensor_bytes
from evaluation.benchmarking.setup import build_seeded_network
from evaluation.benchmarking.traced_step import TracedStep, read_traced_step, without_weights

NUM_BATCHES = 50
"""Batches over which padding is averaged."""


@dataclass(frozen=True)
class Device:
    """Constants of a device, from its maker's data sheet; TF32 off, launches as usually reported.

    Args:
        launch_seconds: to start a kernel.
        bytes_per_second: of its memory.
        flops_per_second: of float32 products.
    """

    launch_seconds: float
    bytes_per_second: float
    flops_per_second: float

    def seconds(self, step: CompiledStep) -> float:
        """Return the forecast: every kernel takes its launch, and the longer of its memory traffic and arithmetic."""
        return sum(
            self.launch_seconds
            + max(kernel.num_bytes / self.bytes_per_second, kernel.num_flops / self.flops_per_second)
            for kernel in step.kernels
        )


DEVICES = {
    "A100": Device(5e-6, 1.555e12, 19.5e12),
    "RTX 4090": Device(5e-6, 1.008e12, 82.6e12),
    "T4": Device(8e-6, 0.320e12, 8.1e12),
}


def forecast(model: Trained, split: Split) -> Json:
    """Return kernels, chunks, padding, transfers, work and milliseconds of a step as a GPU gets it."""
    with pretend_gpu():
        data = model.training_data(split)
        read = (
            _read_compiled(model, data) if model.is_step_compiled(data) else read_traced_step(trace_step(model, data))
        )
        batches = _batches(model, data)
        found = list(itertools.islice(batches, NUM_BATCHES))
    transfers = [*read.transfers, *map(num_tensor_bytes, tf.nest.flatten(batches.element_spec))]
    return {
        "kernels": len(read.step.kernels),
        "chunks": read.num_chunks,
        "padding": sum(map(_num_positions, found)) / sum(map(_num_items, found)),
        "float_scatters": read.step.num_float_scatters,
        "host_megabytes": sum(transfers) / 1e6,
        "gflop": sum(kernel.num_flops for kernel in read.step.kernels) / 1e9,
        "gigabytes": sum(kernel.num_bytes for kernel in read.step.kernels) / 1e9,
        "milliseconds": {name: 1e3 * device.seconds(read.step) for name, device in DEVICES.items()},
    }


def compiled_step(model: Trained, data: Interactions, is_packed: bool = True) -> tuple[Any, tuple[Batch, Tensor]]:
    """Return the step of one layout of batches, compiled as a whole, and arguments to call it with."""
    batches = _batches(model, data)
    network, batch = build_seeded_network(model, data), next(iter(batches))
    spec, batch = (_choose_layout(each, is_packed) for each in (batches.element_spec, batch))
    objective, optimizer = make_objective(model.loss, model.negatives, data), model.training.optimizer.build()
    return make_step(network, objective, optimizer, 1, spec, jit_compile=True), (batch, tf.constant(0, tf.int64))


def trace_step(model: Trained, data: Interactions, is_packed: bool = True) -> Any:
    """Trace the step of one layout of batches that is not compiled as a whole: a concrete function without weights."""
    spec = _choose_layout(_batches(model, data).element_spec, is_packed)
    objective = make_objective(model.loss, model.negatives, data)
    with without_weights():
        network, optimizer = build_seeded_network(model, data), model.training.optimizer.build()
        step: Any = make_step(network, objective, optimizer, 1, spec)
        return step.get_concrete_function()


def _read_compiled(model: Trained, data: Interactions) -> TracedStep:
    """Read the step from XLA's optimised HLO; constants that lie on the host cross to the device."""
    step, (batch, number) = compiled_step(model, data)
    constants = [each for each in step.get_concrete_function().captured_inputs if each.dtype == tf.int32]
    text = step.experimental_get_compiler_ir(batch, number)(stage="optimized_hlo")
    is_counted = isinstance(model.loss, SampledLoss) and model.negatives.shared_by == "position"
    num_rows = model.build_network(data).score_table.shape[0]
    chunks = num_chunks(batch.targets.shape[0], num_rows) if is_counted else 1
    transfers = tuple(map(num_tensor_bytes, constants))
    return TracedStep(read_compiled_step(text), chunks, transfers)


def _batches(model: Trained, data: Interactions) -> tf.data.Dataset:
    return make_batches(data, model.model.examples(), model.batch_settings, seed=1)


def _choose_layout(batch: Batch | PackedBatch, is_packed: bool) -> Batch:
    """Return one layout of a batch, or of its shapes, if it has two."""
    if not isinstance(batch, PackedBatch):
        return batch
    return batch.packed if is_packed else batch.unpacked


def _layout(batch: Batch | PackedBatch) -> Batch:
    """Return the layout that a batch takes."""
    return _choose_layout(batch, isinstance(batch, PackedBatch) and bool(batch.fits))


def _num_positions(batch: Batch | PackedBatch) -> int:
    return sum(int(tf.size(bucket.inputs)) for bucket in _layout(batch).buckets)


def _num_items(batch: Batch | PackedBatch) -> int:
    is_item = [bucket.inputs != PADDING for bucket in _layout(batch).buckets]
    return sum(int(tf.reduce_sum(tf.cast(each, tf.int32))) for each in is_item)
