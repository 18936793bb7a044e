"""Audit of a traced step: which operations a GPU has no kernel for, and which tensors TensorFlow keeps in host memory.

TensorFlow's wheel registers its GPU kernels on any machine, so a step that is traced as for a GPU can be looked up.
"""

import functools
from collections.abc import Iterator

import numpy as np
import tensorflow as tf
from tensorflow.python.framework import kernels

DEVICES = ("GPU", "DEFAULT")
"""Kernels of a GPU, and those of any device."""

WAITING = {"Where", "Unique", "UniqueV2", "UniqueWithCounts", "SparseTensorToCSRSparseMatrix"}
"""Operations whose output has a size that the host waits for."""

COMPILED = "_XlaMustCompile"


def operations(function) -> Iterator[tf.Operation]:
    """All operations of a function and of the functions, branches and loops in it; not those that XLA compiles."""
    waiting, known = [function.graph], set()
    while waiting:
        graph = waiting.pop()
        for operation in graph.get_operations():
            yield operation
            if COMPILED in operation.node_def.attr and operation.get_attr(COMPILED):
                continue
            for name in (value.func.name for value in operation.node_def.attr.values() if value.func.name):
                if name not in known:
                    known.add(name)
                    waiting.append(graph._get_function(name).graph)


@functools.cache
def registered(operation_type: str) -> list[tuple[dict[str, set[int]], set[str]]]:
    """For every kernel that a GPU may run the types that it takes and the arguments that it has in host memory."""
    found = [
        each
        for device in DEVICES
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
    """Arguments that the kernel that a GPU runs has in host memory; `None` if there is no kernel."""
    attributes = operation.node_def.attr
    for types, names in registered(operation.type):
        if all(attributes[name].type in allowed for name, allowed in types.items()):
            return names
    return None


def host_bytes(operation: tf.Operation) -> int:
    """Bytes of the largest tensor of known shape that the GPU's kernel of an operation has in host memory."""
    names = host_arguments(operation) or set()
    definition = operation.op_def
    tensors = [
        *_named([argument.name for argument in definition.input_arg], list(operation.inputs)),
        *_named([argument.name for argument in definition.output_arg], list(operation.outputs)),
    ]
    sizes = [
        int(np.prod(tensor.shape.as_list())) * tensor.dtype.size
        for name, tensor in tensors
        if name in names and tensor.shape.is_fully_defined()
    ]
    return max(sizes, default=0)


def _named(names: list[str], tensors: list[tf.Tensor]) -> list[tuple[str, tf.Tensor]]:
    """Arguments and their tensors; the first argument may be a list of tensors."""
    extra = len(tensors) - len(names)
    return list(zip([names[0]] * extra + names if names else [], tensors, strict=False))
