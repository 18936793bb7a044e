"""Kernels of a step that XLA does not compile as a whole, from its graph as a GPU gets it.

The graph is traced without weights, so that tables of gigabytes need no memory, and optimised by Grappler. An operation
outside XLA is one kernel, unless it runs on the host or copies nothing; a function inside XLA has the kernels of its
optimised HLO. What a loop holds counts as often as the loop runs.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any, NamedTuple

import tensorflow as tf
from tensorflow.core.protobuf import config_pb2
from tensorflow.python.eager import context
from tensorflow.python.framework.func_graph import FuncGraph
from tensorflow.python.framework.function_def_to_graph import function_def_to_graph
from tensorflow.python.grappler import tf_optimizer
from tensorflow.python.ops import handle_data_util
from tensorflow.python.ops.resource_variable_ops import UninitializedVariable
from tensorflow.python.training.saver import export_meta_graph

from aprec_like.types import Tensor
from evaluation.benchmarking.compiled_step import CompiledStep, Kernel, read_compiled_step
from evaluation.benchmarking.gpu_kernels import called_functions, host_tensors, is_compiled, num_tensor_bytes

NOT_KERNELS = frozenset({
    "Assert", "AssignVariableOp", "Bitcast", "Const", "EnsureShape", "ExpandDims", "Identity", "IdentityN", "NoOp",
    "Placeholder", "PreventGradient", "Rank", "ReadVariableOp", "Reshape", "Shape", "ShapeN", "Size", "Squeeze",
    "StopGradient", "TensorListFromTensor", "TensorListGetItem", "TensorListReserve", "TensorListSetItem",
    "VarHandleOp",
})  # fmt: skip
"""Operations that hand on arrays, or facts about them, without a kernel."""

READS_OUTPUT_ONLY = frozenset({"GatherV2", "ResourceGather", "Slice", "Split", "SplitV", "StridedSlice", "Unpack"})
"""Operations that read as much of their first input as they write."""

ADAM_PASSES = 7
"""Arrays of a variable's size that Adam moves: it reads the gradient, and reads and writes variable and two moments."""

LOWERED = "_lower_using_switch_merge"

Library = dict[str, Any]
"""Definitions of functions by name."""


class TracedStep(NamedTuple):
    """What a traced step consists of.

    step: its kernels, and its scatters of floats.
    num_chunks: most iterations of a loop outside XLA; 1 without loops.
    transfers: bytes of every array that is copied between host and device within the step; not the batch.
    """

    step: CompiledStep
    num_chunks: int
    transfers: tuple[int, ...]


@contextmanager
def without_weights() -> Iterator[None]:
    """Build networks and optimisers whose variables have a shape but no memory, for tracing alone."""

    def create(next_creator: Callable[..., Any], initial_value: Any = None, **settings: Any) -> Any:
        value = initial_value
        if callable(initial_value):
            value = tf.function(initial_value).get_concrete_function().structured_outputs
        value = tf.convert_to_tensor(value)
        return UninitializedVariable(**settings | {"shape": value.shape, "dtype": value.dtype})

    # Variables are created both in the graph and, by Keras, outside of it.
    scope = tf.variable_creator_scope
    with scope(create), FuncGraph("without_weights").as_default(), scope(create):
        yield


def read_traced_step(function: Any) -> TracedStep:
    """Read the kernels of a traced step, a concrete function."""
    kernels: list[Kernel] = []
    transfers: list[int] = []
    num_float_scatters, num_chunks = 0, 1
    graph, library = _optimised_graph(function)
    for operation, repeats in _repeated_operations(graph, library):
        num_chunks = max(num_chunks, repeats)
        transfers += _transfers(operation) * repeats
        if is_compiled(operation):
            step = _compiled_function(operation)
            kernels += step.kernels * repeats
            num_float_scatters += step.num_float_scatters
        elif _is_kernel(operation):
            kernels += [Kernel(operation.name, _num_bytes(operation), _num_flops(operation))] * repeats
            num_float_scatters += _is_float_scatter(operation)
    return TracedStep(CompiledStep(tuple(kernels), num_float_scatters), num_chunks, tuple(transfers))


def _optimised_graph(function: Any) -> tuple[tf.Graph, Library]:
    """Return the graph of a function after Grappler, with all shapes, and the functions that it calls."""
    definition = function.graph.as_graph_def()
    for node in [*definition.node, *(node for each in definition.library.function for node in each.node_def)]:
        if LOWERED in node.attr:  # keep loops and branches as functions, which have shapes
            node.attr[LOWERED].b = False
    meta_graph = export_meta_graph(graph_def=definition, graph=function.graph)
    wanted = [*(tensor.name for tensor in function.outputs), *(op.name for op in function.graph.control_outputs)]
    meta_graph.collection_def["train_op"].node_list.value.extend(wanted)
    optimised = tf_optimizer.OptimizeGraph(config_pb2.ConfigProto(), meta_graph)
    names = {node.name for node in optimised.node}
    graph = FuncGraph("optimised")
    with graph.as_default():
        inputs = {}
        for tensor in function.inputs:
            if tensor.op.name in names:
                inputs[tensor.name] = tf.compat.v1.placeholder(tensor.dtype, tensor.shape)
                if tensor.dtype == tf.resource:
                    handle_data_util.copy_handle_data(tensor, inputs[tensor.name])
        tf.import_graph_def(optimised, inputs, name="")
    return graph, {each.signature.name: each for each in optimised.library.function}


def _repeated_operations(graph: tf.Graph, library: Library, repeats: int = 1) -> Iterator[tuple[tf.Operation, int]]:
    """All operations outside XLA, and calls of compiled functions, with how often each runs; of all branches."""
    for operation in graph.get_operations():
        names = called_functions(operation)
        yield operation, repeats
        if is_compiled(operation) or not names:
            continue
        # Inputs of a branch follow its condition.
        inputs = list(operation.inputs)[operation.type in ("If", "StatelessIf") :]
        graphs = {name: function_def_to_graph(library[name], [each.shape for each in inputs]) for name in names}
        if "While" in operation.type:
            condition, body = (graphs[operation.get_attr(part).name] for part in ("cond", "body"))
            yield from _repeated_operations(body, library, repeats * _num_trips(operation, condition))
        else:
            for called in graphs.values():
                yield from _repeated_operations(called, library, repeats)


def _num_trips(loop: tf.Operation, condition: FuncGraph) -> int:
    """Return how often a loop runs whose condition is that a counter from 0 is less than a constant; else 1."""
    for operation in condition.get_operations():
        if operation.type == "Less":
            limit = operation.inputs[1]
            if limit.op.type == "Placeholder":
                limit = loop.inputs[[each.name for each in condition.inputs].index(limit.name)]
            value = tf.get_static_value(limit)
            return 1 if value is None else int(value)
    return 1


def _is_kernel(operation: tf.Operation) -> bool:
    """Return whether a GPU launches a kernel for an operation: it writes to device memory, or updates a variable."""
    if operation.type in NOT_KERNELS or called_functions(operation):
        return False
    on_host = {id(tensor) for tensor in host_tensors(operation)}
    return not operation.outputs or any(id(tensor) not in on_host for tensor in operation.outputs)


def _transfers(operation: tf.Operation) -> list[int]:
    """Return the bytes of the outputs of an operation that one of their readers has in another memory."""
    found = []
    for tensor in operation.outputs:
        is_on_host = _is_on_host(operation, tensor)
        if any(_is_on_host(reader, tensor) != is_on_host for reader in tensor.consumers()):
            found.append(num_tensor_bytes(tensor))
    return found


def _is_on_host(operation: tf.Operation, tensor: Tensor) -> bool:
    """Return whether an operation has one of its inputs or outputs in host memory when it runs on a GPU.

    Arguments and results of functions are there if they are int32; those of compiled functions never.
    """
    if is_compiled(operation):
        return False
    if operation.type == "Placeholder" or called_functions(operation):
        return bool(tensor.dtype == tf.int32)
    return any(each is tensor for each in host_tensors(operation))


def _num_bytes(operation: tf.Operation) -> int:
    """Return the bytes that a kernel reads and writes."""
    written = sum(map(num_tensor_bytes, operation.outputs))
    if operation.type in READS_OUTPUT_ONLY:
        return 2 * written + sum(map(num_tensor_bytes, list(operation.inputs)[1:]))
    read = sum(map(num_tensor_bytes, operation.inputs))
    if operation.type == "ResourceApplyAdam":
        return ADAM_PASSES * read
    return read + (written or read)


def _num_flops(operation: tf.Operation) -> int:
    """Return the floating-point operations of a matrix product."""
    if "MatMul" not in operation.type:
        return 0
    attributes = operation.node_def.attr
    is_transposed = any(attributes[name].b for name in ("transpose_a", "adj_x") if name in attributes)
    first, out = operation.inputs[0].shape, operation.outputs[0].shape
    return 2 * int(first[-2 if is_transposed else -1] or 0) * int(out.num_elements() or 0)


def _is_float_scatter(operation: tf.Operation) -> bool:
    """Return whether an operation adds floats at indices that may repeat, in any order."""
    is_sum = "Scatter" in operation.type and "Update" not in operation.type
    return is_sum and any(tensor.dtype.is_floating for tensor in operation.inputs)


def _compiled_function(operation: tf.Operation) -> CompiledStep:
    """Read the kernels of a function that XLA compiles, for the shapes that it is called with."""
    (name,) = called_functions(operation)
    specs = [tf.TensorSpec(tensor.shape, tensor.dtype) for tensor in operation.inputs]
    text: bytes = context.context().get_compiler_ir(
        device_name="/job:localhost/replica:0/task:0/device:CPU:0",
        platform_name=None,
        function_name=name,
        flat_args=specs,
        captured_inputs=[],
        stage="optimized_hlo",
    )
    return read_compiled_step(text.decode())
