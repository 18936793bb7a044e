"""Kernels of a step compiled by XLA, read from its optimised HLO text: operations, bytes, floating-point operations.

The text is that of XLA's CPU compiler, the only one at hand without a GPU, so kernels are an estimate. A GPU's compiler
makes one kernel of operations that read the same arrays; that is counted so for the three outputs of Adam alone.
"""

from __future__ import annotations

import math
import re
from dataclasses import dataclass

INSTRUCTION = re.compile(r"^\s*(?:ROOT )?%(\S+) = (\([^=]*?\)|\S+) ([\w-]+)\((.*)$")
COMPUTATION = re.compile(r"^(ENTRY )?%(\S+) \(.*\{$")
SHAPE = re.compile(r"\b(pred|[suf]\d+|bf16|c64)\[([\d,]*)\]")
CALLED = re.compile(r"(?:calls|to_apply|body)=%([\w.-]+)")
CONTRACTED = re.compile(r"lhs_contracting_dims=\{([\d,]*)\}")
OPERATION = re.compile(r'op_name="([^"]*)"')
NOT_KERNELS = {"parameter", "constant", "bitcast", "get-tuple-element", "tuple", "after-all", "partition-id"}
WIDTHS = {"pred": 1, "bf16": 2, "c64": 8}


@dataclass(frozen=True)
class Kernel:
    """One launch on a device.

    Args:
        operation: name of the operation that it comes from.
        num_bytes: bytes read and written.
        num_flops: floating-point operations of its matrix products.
    """

    operation: str
    num_bytes: int
    num_flops: int


@dataclass(frozen=True)
class CompiledStep:
    """What a compiled step consists of: its kernels, and its scatters of floats."""

    kernels: tuple[Kernel, ...]
    num_float_scatters: int


@dataclass(frozen=True)
class _Instruction:
    name: str
    type: str
    opcode: str
    rest: str


def read_compiled_step(text: str) -> CompiledStep:
    """Read the optimised HLO of a step."""
    computations: dict[str, list[_Instruction]] = {}
    entry, current = "", ""
    for line in text.splitlines():
        if header := COMPUTATION.match(line):
            current = header[2]
            computations[current] = []
            entry = current if header[1] else entry
        elif current and (found := INSTRUCTION.match(line)):
            computations[current].append(_Instruction(*found.groups()))
    types = {each.name: each.type for body in computations.values() for each in body}
    flops = {name: sum(_product_flops(each, types) for each in body) for name, body in computations.items()}
    called = {name: [c for each in body for c in CALLED.findall(each.rest)] for name, body in computations.items()}

    def total_flops(computation: str) -> int:
        return flops.get(computation, 0) + sum(map(total_flops, called.get(computation, [])))

    kernels: dict[str, Kernel] = {}
    for each in computations[entry]:
        if each.opcode in NOT_KERNELS:
            continue
        name = OPERATION.search(each.rest)
        operation = name[1] if name else each.name
        key = operation if "ApplyAdam" in operation else each.name
        operands = re.findall(r"%([\w.-]+)", each.rest.split("), ")[0])
        num_bytes = num_type_bytes(each.type) + sum(num_type_bytes(types.get(operand, "")) for operand in operands)
        num_flops = _product_flops(each, types) + sum(map(total_flops, CALLED.findall(each.rest)))
        before = kernels.get(key, Kernel(operation, 0, 0))
        kernels[key] = Kernel(operation, before.num_bytes + num_bytes, before.num_flops + num_flops)
    scatters = [each for body in computations.values() for each in body if each.opcode == "scatter"]
    return CompiledStep(tuple(kernels.values()), sum(each.type.startswith(("f", "bf")) for each in scatters))


def num_type_bytes(text: str) -> int:
    """Return the bytes of all arrays of an HLO type, such as `(f32[2,3]{1,0}, s32[])`."""
    return sum(
        math.prod(map(int, filter(None, dims.split(",")))) * (WIDTHS.get(dtype) or int(dtype[1:]) // 8)
        for dtype, dims in SHAPE.findall(text)
    )


def _product_flops(instruction: _Instruction, types: dict[str, str]) -> int:
    if instruction.opcode != "dot":
        return 0
    first = re.search(r"%([\w.-]+)", instruction.rest)
    lhs = SHAPE.search(types.get(first[1], "") if first else "")
    out = SHAPE.search(instruction.type)
    contracted = CONTRACTED.search(instruction.rest)
    if lhs is None or out is None or contracted is None:
        return 0
    sizes = [int(size) for size in lhs[2].split(",") if size]
    inner = math.prod(sizes[int(axis)] for axis in contracted[1].split(",") if axis)
    return 2 * inner * math.prod(int(size) for size in out[2].split(",") if size)
