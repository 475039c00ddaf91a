"""The Python that Inductor writes for a graph, read: which kernels it calls, in which order, with operands of which sizes.

The operands' sizes are those of their allocations: good for a name and a link, not for traffic.
"""

from __future__ import annotations

import re
from collections import Counter
from dataclasses import dataclass
from typing import Literal

from tuimon.events import Tensor
from tuimon.sources.graph_lines import LONGEST_SIZE, MOST_DIMENSIONS, split

MOST_KERNELS = 600
LONGEST_NAME = 300

DTYPES = {
    "float32": "f32", "float64": "f64", "float16": "f16", "bfloat16": "bf16", "int64": "i64", "int32": "i32", "int16": "i16",
    "int8": "i8", "uint8": "u8", "uint16": "u16", "uint32": "u32", "uint64": "u64", "bool": "b8", "complex64": "c64",
    "complex128": "c128", "complex32": "c32", "float8_e4m3fn": "f8e4m3fn", "float8_e5m2": "f8e5m2",
    "float8_e4m3fnuz": "f8e4m3fnuz", "float8_e5m2fnuz": "f8e5m2fnuz", "float8_e8m0fnu": "f8e8m0fnu",
    "float4_e2m1fn_x2": "f4e2m1fnx2",
}  # fmt: skip
"""torch's names of dtypes -> those that it prints in graphs."""

_EMPTY = re.compile(r"(\w+) = empty_strided_\w+\(\(([^()]*)\), \([^()]*\), torch\.(\w+)\)")
_SIZES = re.compile(r"assert_size_stride\((\w+), \(([^()]*)\), ")
_SAME = re.compile(r"(\w+) = (\w+)(?:;.*)?")
_SHAPED = re.compile(r"(\w+) = reinterpret_tensor\((\w+), \(([^()]*)\), ")
_CALL = re.compile(r"(?:(\w+) = )?([\w.]+)\((.*)\)")
_RANDOM = re.compile(r"(\w+) = rand_strided\(\(([^()]*)\), \([^()]*\), .*dtype=torch\.(\w+)\)")
_NUMBER = re.compile(r"(\w+) = (\d{1,18})")
_ARGS = re.compile(r"(.+?),? = args")
_OPERAND = re.compile(r"reinterpret_tensor\((\w+), \(([^()]*)\)|(\w+)")


@dataclass(frozen=True, slots=True)
class Code:
    """What the code tells, in the terms of `GraphSeen`."""

    direction: Literal["forward", "backward"]
    kernels: tuple[tuple[str, tuple[Tensor, ...], int], ...] = ()
    symbols: tuple[tuple[str, int], ...] = ()


def read(text: str) -> Code:
    """The kernels that the code calls. Never raises; code that is written otherwise (C++, ahead of time) has none."""
    body = text.rpartition("def call(")[2]
    dtypes = _dtypes(body)
    arguments, values, symbols = "", {}, []
    known: dict[str, Tensor] = {}
    called: Counter[tuple[str, tuple[Tensor, ...]]] = Counter()
    for raw in body.split("\n"):
        line = raw.strip()
        if line.startswith("return"):
            break
        if not arguments and (found := _ARGS.fullmatch(line)):
            arguments = found[1]
            values = {name: dtypes[name] for name in split(arguments) if name in dtypes}
        elif found := _EMPTY.match(line):
            _keep(known, found[1], found[2], DTYPES.get(found[3]))
        elif found := _SIZES.match(line):
            _keep(known, found[1], found[2], values.get(found[1]))
        elif found := _SHAPED.match(line):
            _keep(known, found[1], found[3], known[found[2]][0] if found[2] in known else None)
        elif found := _SAME.fullmatch(line):
            if found[2] in known:
                known[found[1]] = known[found[2]]
            elif (number := dtypes.get(found[2], "")).isdecimal() and len(number) < 19:  # s77 = primals_3
                symbols.append((found[1], int(number)))
        elif (found := _CALL.fullmatch(line)) and (name := _kernel(found[2])):
            called[name, _operands(found[3], known)] += 1
    direction: Literal["forward", "backward"] = "backward" if "tangents_" in arguments else "forward"
    kernels = tuple([(name, ins, times) for (name, ins), times in called.items()][:MOST_KERNELS])
    return Code(direction, kernels, tuple(symbols[:100]))


def _dtypes(body: str) -> dict[str, str]:
    """The dtype of each argument, or its value where it is a number: from the example call below the code."""
    found: dict[str, str] = {}
    for raw in body.rpartition("rand_strided\n")[2].split("\n"):
        line = raw.strip()
        if random := _RANDOM.fullmatch(line):
            found[random[1]] = DTYPES.get(random[3], "")
        elif number := _NUMBER.fullmatch(line):
            found[number[1]] = number[2]
        elif line.startswith(("return", "def ")) and found:
            break
    return found


def _keep(known: dict[str, Tensor], name: str, sizes: str, dtype: str | None) -> None:
    told = tuple(split(sizes))
    if dtype and len(told) <= MOST_DIMENSIONS and all(len(size) <= LONGEST_SIZE for size in told):
        known[name] = (dtype, told)


def _kernel(called: str) -> str | None:
    """The kernel that is called; None where it is no kernel."""
    if called.startswith(("extern_kernels.", "torch.ops.", "aten.", "cpp_", "graph_")):
        return called[:LONGEST_NAME]
    if called.endswith(".run"):
        return called[:-4][:LONGEST_NAME]
    return None


def _operands(text: str, known: dict[str, Tensor]) -> tuple[Tensor, ...]:
    """The distinct buffers of a call."""
    found: dict[str, Tensor] = {}
    for part in split(text):
        operand = _OPERAND.match(part.rpartition("=")[2])
        if operand is None:
            continue
        name = operand[1] or operand[3]
        if name in known and name not in found:
            shaped = tuple(split(operand[2])) if operand[1] else ()
            found[name] = (known[name][0], shaped) if shaped and len(shaped) <= MOST_DIMENSIONS else known[name]
    return tuple(found.values())
