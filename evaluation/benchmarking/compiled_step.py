"""Kernels of a step compiled by XLA, read from its optimised HLO text: operations, bytes, floating-point operations.

The text is that of XLA's CPU compiler, the only one at hand without a GPU, so kernels are an estimate. Two differences
between the compilers are accounted for. A GPU's compiler makes one kernel of operations that read the same arrays; that
is counted so for the three outputs of Adam alone. The CPU's compiler splits a sum over the last axis into sums of 32
values and their sum; a GPU has one kernel for both.
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
WINDOW = re.compile(r"window=\{size=([\dx]+)")
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

    @property
    def operation(self) -> str:
        """Name of TensorFlow's operation that it comes from, else its own."""
        found = OPERATION.search(self.rest)
        return found[1] if found else self.name

    @property
    def operands(self) -> list[str]:
        return re.findall(r"%([\w.-]+)", self.rest.split("), ")[0])


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
    keys = _kernel_keys(computations[entry], computations)
    for each in computations[entry]:
        if each.opcode in NOT_KERNELS:
            continue
        num_bytes = sum(map(num_type_bytes, [each.type, *(types.get(operand, "") for operand in each.operands)]))
        num_flops = _product_flops(each, types) + sum(map(total_flops, CALLED.findall(each.rest)))
        before = kernels.get(keys[each.name], Kernel(each.operation, 0, 0))
        kernels[keys[each.name]] = Kernel(each.operation, before.num_bytes + num_bytes, before.num_flops + num_flops)
    scatters = [each for body in computations.values() for each in body if each.opcode == "scatter"]
    return CompiledStep(tuple(kernels.values()), sum(each.type.startswith(("f", "bf")) for each in scatters))


def _kernel_keys(entry: list[_Instruction], computations: dict[str, list[_Instruction]]) -> dict[str, str]:
    """Return for each instruction of the entry computation the name of its kernel on a GPU."""
    reader = {operand: each.name for each in entry for operand in each.operands}
    keys = {}
    for each in reversed(entry):
        bodies = [each, *(inner for name in CALLED.findall(each.rest) for inner in computations.get(name, []))]
        keys[each.name] = each.operation if "ApplyAdam" in each.operation else each.name
        if any(map(_is_partial_row_sum, bodies)):
            keys[each.name] = keys[reader[each.name]]
    return keys


def _is_partial_row_sum(instruction: _Instruction) -> bool:
    """Return whether an instruction sums parts of the last axis, which another one sums up."""
    window = WINDOW.search(instruction.rest)
    return instruction.opcode == "reduce-window" and window is not None and set(window[1].split("x")[:-1]) <= {"1"}


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
