"""Points of kernels and operators: what a profiler window or a trace file holds."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from tuimon.events import CountersSeen, KernelRow, KernelsSeen
from tuimon.model import Model
from tuimon.roofline.counts.counted import Class, Memo, add_classes, read_arguments
from tuimon.roofline.counts.operations import Operations, Shape, operations
from tuimon.roofline.counts.sizes import tensor_bytes
from tuimon.roofline.dtypes import bits
from tuimon.roofline.machines import dtype_of
from tuimon.roofline.making import Sums
from tuimon.roofline.regions import MOST_TRAIL, of_call, usual_sizes
from tuimon.roofline.roofs import Roofs

OTHERS = "(others)"
LONGEST_NAME = 60

_TF32 = ("tf32", "s1688", "xmma_gemm_f32f32_tf32", "_f32f32_f32f32_f32_")
_SIMT = ("sgemm", "simt", "ffma")
_GATHERS = ("embedding", "index", "index_select", "gather", "scatter", "slice", "select")


@dataclass(slots=True)
class KernelSums:
    """A kernel, or a CPU's operator, in its window."""

    sums: Sums
    ns: int
    known: bool
    unknown: str
    """The operator without a formula, "" where it has one."""


def kernel_sums(model: Model, roofs: Roofs, memo: Memo) -> list[KernelSums]:
    """The rows of the latest window; earlier windows give the trails."""
    every = list(model.kernels.values())
    if not every:
        return []
    *earlier, latest = every
    found = _rows(latest, roofs)
    if not latest.device:
        found += _fused(model, latest, memo)
    trails: dict[str, list[tuple[float, float]]] = {}
    for seen in earlier[-MOST_TRAIL:]:
        for one in _rows(seen, roofs):
            sums = one.sums
            if sums.by_class and sums.bytes and sums.seconds > 0:
                total = sums.by_class.total()
                trails.setdefault(sums.key, []).append((total / sums.bytes, total / sums.seconds))
    for one in found:
        one.sums.trail = tuple(trails.get(one.sums.key, ()))
    return found


def window_ns(seen: KernelsSeen) -> int:
    """What a kernel's share is of: the time that kernels took; on a CPU all of a compiled region's, which has kernels that no
    profiler sees."""
    regions = {name: ns for name, _, ns in seen.regions} if not seen.device else {}
    inside: Counter[str] = Counter()
    outside = 0
    for row in seen.rows:
        if row[4] in regions:
            inside[row[4] or ""] += row[7]
        else:
            outside += row[7]
    return outside + sum(max(ns, inside[name]) for name, ns in regions.items())


def _rows(seen: KernelsSeen, roofs: Roofs) -> list[KernelSums]:
    whole = window_ns(seen)
    return [_row(row, whole, roofs) for row in seen.rows if row[6] > 0 and row[7] > 0]


def _row(row: KernelRow, whole: int, roofs: Roofs) -> KernelSums:
    kernel, operator, operands, arguments, compile_id, _, calls, ns, least, most = row
    plain = operator.removeprefix("aten::")
    shapes = " ".join("x".join(map(str, dims)) or "()" for _, dims in operands)
    named = f"{plain} {shapes}".strip() if operator else kernel
    sums = Sums(
        key="kernel " + " ".join(filter(None, (operator, shapes, kernel, compile_id))),
        name=named if len(named) <= LONGEST_NAME else named[: LONGEST_NAME - 2] + "..",
        kind="kernel",
        seconds=ns / 1e9,
        calls=calls,
        share=ns / whole if whole else 0.0,
    )
    if OTHERS in (kernel, operator):
        sums.why_not = "many rows in one"
        return KernelSums(sums, ns, False, "")
    if not operator:
        sums.why_not = "no operator is linked to it: its shapes are not known"
        return KernelSums(sums, ns, False, "")
    told = read_arguments(arguments)
    outputs = results(plain, operands, told)
    found = operations(operator, operands, outputs, told)
    if found is None:
        sums.why_not = f"no formula for {operator} with what the window tells of it"
    else:
        by_class: Counter[Class] = Counter()
        add_classes(by_class, found, operands, outputs, calls)
        sums.by_class = _as_it_ran(by_class, kernel, roofs)
        sums.masked = told.get("mask") is True
        if least and most and found.matrix + found.vector:
            each = found.matrix + found.vector
            sums.slowest, sums.fastest = each / (most / 1e9), each / (least / 1e9)
    _fill_bytes(sums, plain, operands, outputs, found, calls)
    return KernelSums(sums, ns, found is not None, operator if found is None else "")


def _fill_bytes(
    sums: Sums, plain: str, operands: Sequence[Shape], outputs: Sequence[Shape], found: Operations | None, calls: int
) -> None:
    """Each operand once and each result once; where the results are not known, or not all of an operand need be read, no more
    than the operands' sizes can be told."""
    taken = _read(plain, operands, outputs)
    sizes = [tensor_bytes(dtype, dims) for dtype, dims in (*taken, *outputs) if dtype and bits(dtype) is not None]
    total = sum(one for one in sizes if one is not None)
    if not total:
        return
    sums.bytes = total * calls
    sums.footprint = total
    exact = found is not None and outputs and not plain.startswith(_GATHERS)
    sums.bytes_how = "compulsory" if exact else "operands"


def _read(plain: str, operands: Sequence[Shape], outputs: Sequence[Shape]) -> Sequence[Shape]:
    """The operands without those that are written only: the first of `copy_`, and what `out=` has given behind the others."""
    if plain in _WRITES_FIRST:
        return operands[1:]
    takes = _TAKES.get(plain)
    if takes is not None and len(operands) == takes + 1 and outputs and operands[-1][1] == outputs[0][1]:
        return operands[:-1]
    return operands


_WRITES_FIRST = frozenset(("copy_", "fill_", "zero_"))
_TAKES = {
    **dict.fromkeys(("mm", "bmm", "_int_mm", "add", "sub", "mul", "div", "maximum", "minimum"), 2),
    **dict.fromkeys(("gelu_backward", "silu_backward", "tanh_backward", "sigmoid_backward", "threshold_backward"), 2),
    **dict.fromkeys(("_softmax_backward_data", "_log_softmax_backward_data", "eq", "ne", "lt", "le", "gt", "ge"), 2),
    **dict.fromkeys(("neg", "abs", "exp", "log", "sqrt", "rsqrt", "tanh", "sigmoid", "gelu", "silu", "reciprocal", "erf"), 1),
    **dict.fromkeys(("sin", "cos", "_softmax", "_log_softmax", "logical_not"), 1),
    **dict.fromkeys(("addmm", "baddbmm", "addcmul", "addcdiv", "where"), 3),
}
"""How many tensors an operator takes when none is given for its result."""


def _as_it_ran(by_class: Counter[Class], kernel: str, roofs: Roofs) -> Counter[Class]:
    """The classes as the kernel's name tells them: f32 products on matrix units are tf32, and some run without them."""
    if not kernel or not roofs.on_gpu:
        return by_class
    name = kernel.lower()
    ran: Counter[Class] = Counter()
    for (unit, dtype), number in by_class.items():
        if unit == "matrix" and dtype == "f32" and any(token in name for token in _TF32):
            ran["matrix", "tf32"] += number
        elif unit == "matrix" and any(token in name for token in _SIMT):
            ran["vector", dtype] += number
        else:
            ran[unit, dtype] += number
    return ran


def results(plain: str, operands: Sequence[Shape], told: dict[str, Any]) -> tuple[Shape, ...]:
    """The results of an operator by its operands, () where they do not tell: a trace does not hold them."""
    dims = [one for _, one in operands]
    kind = operands[0][0] if operands else ""
    try:
        if plain in ("mm", "_int_mm", "matmul") and len(dims[0]) == len(dims[1]) == 2:
            return (("int" if plain == "_int_mm" else kind, (dims[0][0], dims[1][1])),)
        if plain == "addmm":
            return ((kind, (dims[1][0], dims[2][1])),)
        if plain == "bmm":
            return ((kind, (*dims[0][:2], dims[1][2])),)
        if plain == "baddbmm":
            return ((kind, (*dims[1][:2], dims[2][2])),)
        if plain in ("linear", "mkldnn::_linear_pointwise"):
            return ((kind, (*dims[0][:-1], dims[1][0])),)
        if plain.startswith("_scaled_dot_product") and plain.endswith("_backward"):
            return tuple((kind, one) for one in dims[1:4])
        if plain.startswith("_scaled_dot_product"):
            return ((kind, (*dims[0][:-1], dims[2][-1])),)
        if plain == "convolution_backward":
            mask = told.get("output_mask")
            wanted = [True] * 3 if not isinstance(mask, list) else [bool(one) for one in mask]
            return tuple((kind, one) for one, kept in zip((*dims[1:3], dims[2][:1]), wanted, strict=False) if kept)
        if plain in _POINTWISE:
            return ((kind, _broadcast(dims)),)
    except (IndexError, ValueError):
        return ()
    return ()


_POINTWISE = frozenset((
    "add", "add_", "sub", "sub_", "mul", "mul_", "div", "div_", "neg", "abs", "exp", "exp_", "log", "sqrt", "sqrt_",
    "rsqrt", "pow", "pow_", "tanh", "sigmoid", "relu", "relu_", "gelu", "silu", "clamp", "clamp_min", "maximum", "minimum",
    "where", "copy_", "fill_", "zero_", "addcmul", "addcmul_", "addcdiv", "addcdiv_", "lerp", "lerp_", "reciprocal", "erf",
    "sin", "cos", "eq", "ne", "lt", "le", "gt", "ge", "logical_not", "threshold_backward", "gelu_backward", "silu_backward",
    "tanh_backward", "sigmoid_backward", "_softmax", "_log_softmax", "_softmax_backward_data", "_log_softmax_backward_data",
    "dropout", "native_dropout",
))  # fmt: skip
"""Those with one result of their operands' common shape."""


def _broadcast(shapes: Sequence[tuple[int, ...]]) -> tuple[int, ...]:
    """The common shape. Raises ValueError where there is none."""
    rank = max(len(one) for one in shapes)
    found = []
    for at in range(-rank, 0):
        sizes = {one[at] for one in shapes if len(one) >= -at} - {1}
        if len(sizes) > 1:
            raise ValueError
        found.append(sizes.pop() if sizes else 1)
    return tuple(found)


# ------------------------------------------------------------------------------------------------- a CPU's fused kernels


def _fused(model: Model, seen: KernelsSeen, memo: Memo) -> list[KernelSums]:
    """A row for each region of a CPU: what Inductor's own kernels did, which no profiler sees.

    Their time is the region's without its operators', their operations the graph's without those.
    """
    whole = window_ns(seen)
    found = []
    for name, calls, ns in seen.regions:
        inside = [row for row in seen.rows if row[4] == name]
        rest = ns - sum(row[7] for row in inside)
        if rest <= 0 or calls <= 0 or any(OTHERS in (row[0], row[1]) for row in inside):
            continue
        sums = Sums(
            key=f"kernel fused {name}",
            name=f"the rest of {name.rstrip('<')} {'backward' if name.endswith('<') else 'forward'}",
            kind="kernel",
            seconds=rest / 1e9,
            calls=calls,
            share=rest / whole if whole else 0.0,
            why_not="no operator stands for it: fused kernels or the host's own work, of which the operations are not known",
        )
        left = _left(model, name, calls, inside, memo)
        if left is not None:
            sums.name = sums.name.replace("the rest", "fused kernels", 1)
            sums.by_class = left
            sums.why_not = "what its kernels read and write is not known"
        found.append(KernelSums(sums, rest, left is not None, ""))
    return found


def _left(model: Model, name: str, calls: int, inside: Sequence[KernelRow], memo: Memo) -> Counter[Class] | None:
    """The graph's operations without those of its operators; None where one of the two is not known."""
    direction = "backward" if name.endswith("<") else "forward"
    regions = [
        region
        for region in model.regions.values()
        if region.compile_id == name.rstrip("<") and region.direction == direction and region.graphs
    ]
    if len(regions) != 1:
        return None
    graph = of_call(regions[0], usual_sizes(regions[0]), memo).by_class
    if graph is None:
        return None
    left = Counter({of: number * calls for of, number in graph.items()})
    for row in inside:
        operands, told = row[2], read_arguments(row[3])
        outputs = results(row[1].removeprefix("aten::"), operands, told)
        done = operations(row[1], operands, outputs, told)
        if done is None:
            return None
        add_classes(left, Operations(-done.matrix, -done.vector), operands, outputs, row[6])
    # a sum of operators that is more than the graph was counted at other sizes, or in a window that cuts a call
    return left if all(number >= 0 for number in left.values()) else None


# ------------------------------------------------------------------------------------------------- counters


def counter_sums(seen: CountersSeen) -> list[Sums]:
    """Kernels by hardware counters."""
    whole = sum(row[2] for row in seen.rows)
    found = []
    for kernel, calls, ns, done, memory, _, unit, dtype in seen.rows:
        if calls <= 0 or ns <= 0:
            continue
        found.append(
            Sums(
                key=f"kernel counted {kernel}",
                name=kernel if len(kernel) <= LONGEST_NAME else kernel[: LONGEST_NAME - 2] + "..",
                kind="kernel",
                seconds=ns / 1e9,
                calls=calls,
                by_class=None
                if done is None
                else Counter({("matrix" if unit == "matrix" else "vector", dtype_of(dtype)): round(done)}),
                bytes=memory,
                footprint=None if memory is None else memory / calls,
                bytes_how="measured",
                operations_how="counter",
                share=ns / whole if whole else 0.0,
            )
        )
    return found
