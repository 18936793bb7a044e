"""Forecast of a training step on GPUs, from the step as a GPU gets it and constants of devices; not a measurement."""

from __future__ import annotations

import itertools
from dataclasses import dataclass
from typing import Any

import tensorflow as tf

from aprec_like.batches import make_batches
from aprec_like.batches.layouts import Batch, PackedBatch
from aprec_like.devices import pretend_gpu
from aprec_like.interactions import PADDING
from aprec_like.losses import SampledLoss
from aprec_like.losses.counted_sampled import num_chunks
from aprec_like.recipe import Trained
from aprec_like.splits import Split
from aprec_like.training import make_step
from aprec_like.training.objective import make_objective
from aprec_like.types import Json, Tensor
from evaluation.benchmarking.compiled_step import CompiledStep, read_compiled_step
from evaluation.benchmarking.setup import build_seeded_network

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


def forecast(model: Trained, split: Split) -> Json | None:
    """Return kernels, padding, transfers, work and milliseconds of a step; `None` if it is not compiled as a whole."""
    with pretend_gpu():
        data = model.training_data(split)
        if not model.is_step_compiled(data):
            return None
        step, (batch, number) = compiled_step(model, split)
        compiled = read_compiled_step(step.experimental_get_compiler_ir(batch, number)(stage="optimized_hlo"))
        found = list(itertools.islice(_batches(model, split), NUM_BATCHES))
        num_rows = model.build_network(data).score_table.shape[0]
        is_sampled = isinstance(model.loss, SampledLoss) and model.negatives.shared_by == "position"
        return {
            "kernels": len(compiled.kernels),
            "chunks": num_chunks(batch.targets.shape[0], num_rows) if is_sampled else 1,
            "padding": sum(map(_num_positions, found)) / sum(map(_num_items, found)),
            "float_scatters": compiled.num_float_scatters,
            "host_megabytes": sum(part.numpy().nbytes for part in tf.nest.flatten(batch)) / 1e6,
            "gflop": sum(kernel.num_flops for kernel in compiled.kernels) / 1e9,
            "gigabytes": sum(kernel.num_bytes for kernel in compiled.kernels) / 1e9,
            "milliseconds": {name: 1e3 * device.seconds(compiled) for name, device in DEVICES.items()},
        }


def compiled_step(model: Trained, split: Split) -> tuple[Any, tuple[Batch, Tensor]]:
    """Return the step of one layout of batches, compiled as a whole, and arguments to call it with."""
    data, batches = model.training_data(split), _batches(model, split)
    network, spec, batch = build_seeded_network(model, data), batches.element_spec, next(iter(batches))
    if isinstance(spec, PackedBatch):
        spec, batch = spec.packed, batch.packed
    objective, optimizer = make_objective(model.loss, model.negatives, data), model.training.optimizer.build()
    return make_step(network, objective, optimizer, 1, spec, jit_compile=True), (batch, tf.constant(0, tf.int64))


def _batches(model: Trained, split: Split) -> tf.data.Dataset:
    return make_batches(model.training_data(split), model.model.examples(), model.batch_settings, seed=1)


def _layout(batch: Batch | PackedBatch) -> Batch:
    """Return the layout that a batch takes."""
    if not isinstance(batch, PackedBatch):
        return batch
    return batch.packed if bool(batch.fits) else batch.unpacked


def _num_positions(batch: Batch | PackedBatch) -> int:
    return sum(int(tf.size(bucket.inputs)) for bucket in _layout(batch).buckets)


def _num_items(batch: Batch | PackedBatch) -> int:
    is_item = [bucket.inputs != PADDING for bucket in _layout(batch).buckets]
    return sum(int(tf.reduce_sum(tf.cast(each, tf.int32))) for each in is_item)
