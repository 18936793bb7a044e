"""Kernels that TensorFlow has for GPUs: which operations have one, and which of their arguments lie in host memory.

TensorFlow's wheel for Linux registers its GPU kernels on any machine, so that a step traced as for a GPU can be looked
up operation by operation without one.
"""

from __future__ import annotations

import functools
from collections.abc import Iterator

import numpy as np
import tensorflow as tf
from tensorflow.python.framework import kernels

from aprec_like.types import Tensor

DEVICES = ("GPU", "DEFAULT")
"""Kernels of a GPU, and those of any device."""

XLA_DEVICES = ("XLA_GPU_JIT",)
"""What XLA's compiler for GPUs can translate."""

PASSED_ON = frozenset({"Placeholder"})
"""Operations that stand for the arguments of a function."""

WAITING = frozenset({"Where", "Unique", "UniqueV2", "UniqueWithCounts", "SparseTensorToCSRSparseMatrix"})
"""Operations whose output has a size that the host waits for."""

RAISING = frozenset({
    "AdjustContrast", "AdjustContrastv2", "Bincount", "CropAndResizeGradBoxes", "CropAndResizeGradImage",
    "DenseBincount", "Dilation2DBackpropFilter", "Dilation2DBackpropInput", "FakeQuantWithMinMaxVarsGradient",
    "FakeQuantWithMinMaxVarsPerChannelGradient", "MaxPoolGradWithArgmax", "ResizeNearestNeighborGrad",
    "SoftmaxCrossEntropyWithLogits", "SparseSoftmaxCrossEntropyWithLogits", "SparseTensorDenseMatMul", "Svd",
    "Timestamp",
})  # fmt: skip
"""Operations that raise on a GPU when operations have to be deterministic, by the messages in TensorFlow 2.21."""

COMPILED = "_XlaMustCompile"


def is_compiled(operation: tf.Operation) -> bool:
    """Return whether an operation calls a function that XLA compiles as a whole."""
    return COMPILED in operation.node_def.attr and bool(operation.get_attr(COMPILED))


def called_functions(operation: tf.Operation) -> list[str]:
    """Return the names of the functions, branches or loop bodies that an operation calls."""
    return [value.func.name for value in operation.node_def.attr.values() if value.func.name]


def walk_operations(graph: tf.Graph, enters_compiled: bool = False) -> Iterator[tf.Operation]:
    """All operations of a graph and of the functions, branches and loops in it; those inside XLA only if asked."""
    waiting, known = [graph], set()
    while waiting:
        graph = waiting.pop()
        for operation in graph.get_operations():
            yield operation
            for name in called_functions(operation) if enters_compiled or not is_compiled(operation) else []:
                if name not in known:
                    known.add(name)
                    waiting.append(graph._get_function(name).graph)


def walk_compiled_operations(graph: tf.Graph) -> Iterator[tf.Operation]:
    """All operations of the functions of a graph that XLA compiles."""
    for call in filter(is_compiled, walk_operations(graph)):
        for name in called_functions(call):
            yield from walk_operations(call.graph._get_function(name).graph, enters_compiled=True)


@functools.cache
def _registered(operation_type: str, devices: tuple[str, ...]) -> list[tuple[dict[str, set[int]], set[str]]]:
    """For every kernel of the devices the types that it takes and the arguments that it has in host memory."""
    found = [
        each
        for device in devices
        for each in kernels.get_registered_kernels_for_op(operation_type).kernel
        if each.device_type == device
    ]
    return [
        (
            {
                rule.name: set(rule.allowed_values.list.type)
                for rule in each.constraint
                if rule.allowed_values.list.type
            },
            set(each.host_memory_arg),
        )
        for each in found
    ]


def host_arguments(operation: tf.Operation) -> set[str] | None:
    """Return the arguments that a GPU's kernel of an operation has in host memory; `None` if there is no kernel."""
    return _find_kernel(operation, DEVICES)


def has_compiled_kernel(operation: tf.Operation) -> bool:
    """Return whether XLA compiles an operation for GPUs. TensorFlow knows it once XLA has compiled anything."""
    return operation.type in PASSED_ON or _find_kernel(operation, XLA_DEVICES) is not None


def _find_kernel(operation: tf.Operation, devices: tuple[str, ...]) -> set[str] | None:
    """Return the arguments in host memory of the first kernel that takes an operation's types; `None` without one."""
    attributes = operation.node_def.attr
    for types, names in _registered(operation.type, devices):
        if all(
            set(attributes[name].list.type or [attributes[name].type]) <= allowed for name, allowed in types.items()
        ):
            return names
    return None


def host_tensors(operation: tf.Operation) -> list[Tensor]:
    """Return the inputs and outputs of an operation that its GPU kernel has in host memory."""
    names = host_arguments(operation) or set()
    definition = operation.op_def
    tensors = [
        *_named([argument.name for argument in definition.input_arg], list(operation.inputs)),
        *_named([argument.name for argument in definition.output_arg], list(operation.outputs)),
    ]
    return [tensor for name, tensor in tensors if name in names]


def num_tensor_bytes(tensor: Tensor) -> int:
    """Return the bytes of a tensor; 0 if its shape is not known, and for handles."""
    if not tensor.shape.is_fully_defined() or tensor.dtype in (tf.resource, tf.variant, tf.string):
        return 0
    return int(np.prod(tensor.shape.as_list(), dtype=np.int64)) * tensor.dtype.size


def max_host_bytes(operation: tf.Operation) -> int:
    """Return the bytes of the largest tensor that the GPU's kernel of an operation has in host memory."""
    return max(map(num_tensor_bytes, host_tensors(operation)), default=0)


def _named(names: list[str], tensors: list[Tensor]) -> list[tuple[str, Tensor]]:
    """Return arguments and their tensors; the first argument may be a list of tensors."""
    extra = len(tensors) - len(names)
    return list(zip([names[0]] * extra + names if names else [], tensors, strict=False))
