"""How many operations a call of an operator is, from its name, its sizes and its arguments alone: no torch in here.

Names are taken as graphs, traces and Dynamo have them: "addmm", "aten::addmm", "add_.Tensor", "mkldnn::_linear_pointwise",
"torch._C._nn.linear". Policy and sources: `formulas` and `known_operators`.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Any

from tuimon.roofline.counts import attention, convolution, elementwise, matrix, norms, optimizers, recurrent, reductions
from tuimon.roofline.counts.formulas import FORMULAS, WORDS, Call, Operations, Shape, Unknown, is_tensor

__all__ = ["Operations", "Shape", "known_operators", "operations", "plain_name"]

_ROOMS = (attention, convolution, elementwise, matrix, norms, optimizers, recurrent, reductions)
"""Imported for what they put into the table."""

_ATEN = ("aten", "prims", "inductor", "method", "operator", "op", "torch")
"""Namespaces whose names mean what ATen's do."""
_OTHERS = ("sparse", "masked", "ao", "fft", "distributed")
"""Modules of torch whose functions are not those of the same name in torch itself."""
_SYMBOLS = {
    "@": "matmul", "+": "add", "-": "sub", "*": "mul", "/": "div", "//": "floor_divide", "%": "remainder", "**": "pow",
    "<": "lt", "<=": "le", ">": "gt", ">=": "ge", "==": "eq", "!=": "ne",
    "&": "bitwise_and", "|": "bitwise_or", "^": "bitwise_xor",
}  # fmt: skip
_SPLIT = re.compile(r"::?|\.")
"""Kineto has "aten::mm" and "nccl:all_reduce"."""


def plain_name(operator: str) -> str:
    """The name in the table: without ATen's namespace, overload and the underscore of in-place forms."""
    name = operator.strip()
    if name.removeprefix("op.") in _SYMBOLS:
        return _SYMBOLS[name.removeprefix("op.")]
    parts = [p for p in _SPLIT.split(name) if p]
    if parts[:2] == ["torch", "ops"]:
        parts = parts[2:]
    elif parts and parts[0] in ("torch", "math"):
        # Dynamo's level: torch.nn.functional.linear, torch._C._nn.linear; but torch.sparse.mm is not torch.mm
        if parts[1:2] and parts[1] in _OTHERS:
            return ".".join(parts)
        return _in_table(parts[-1]) or parts[-1]
    if len(parts) > 1 and parts[0] in _ATEN:
        parts = parts[1:]
    if not parts:
        return name
    # "mkldnn._linear_pointwise" is a name, "addmm.default" one with an overload; "other::mm" is not ATen's
    names = [".".join(parts[:2])]
    if not name.startswith(f"{parts[0]}::"):
        names.append(parts[0])
    found = (_in_table(candidate) for candidate in names)
    return next((n for n in found if n is not None), ".".join(parts))


def _in_table(name: str) -> str | None:
    """The name of the table for one of a function, of its in-place form or of Python's operator."""
    bare = name[2:-2] if name.startswith("__") and name.endswith("__") and len(name) > 4 else name
    for candidate in (name, bare, bare[:-1] if bare.endswith("_") else bare, bare[1:] if bare[:1] in "ir" else bare):
        if candidate in FORMULAS:
            return candidate
    return None


def operations(
    operator: str, inputs: Sequence[Shape], outputs: Sequence[Shape], arguments: Mapping[str, Any]
) -> Operations | None:
    """The operations of one call, None where they are not known; never an estimate, never an exception.

    `inputs` are the tensors in the order of the schema; what stands there for scalars and None (no type and no sizes) is
    skipped. `outputs` may be empty where they are not known. `arguments` are by name, those of
    `tuimon.events.arguments.PLACES`; one left out has its schema's default, unless `known` is False. A name with "::" is a
    trace's, whose arguments are without texts (`approximate` of gelu is then not known, however it was called).
    """
    try:
        name = plain_name(operator)
        formula = FORMULAS.get(name)
        if formula is None:
            return None
        call = Call(name, _tensors(inputs), _tensors(outputs), arguments, traced="::" in operator)
        counted = formula(call)
    except (Unknown, ArithmeticError, AttributeError, LookupError, TypeError, ValueError):
        # sizes of a trace may be anything: what does not fit is not known
        return None
    return counted if counted.matrix >= 0 and counted.vector >= 0 else None


def _tensors(shapes: Sequence[Shape]) -> tuple[Shape, ...]:
    tensors = []
    for dtype, sizes in shapes:
        if any(isinstance(n, bool) or not isinstance(n, int) or n < 0 for n in sizes):
            raise Unknown("sizes are no numbers")
        shape = (dtype, tuple(sizes))
        if is_tensor(shape):
            tensors.append(shape)
    return tuple(tensors)


def known_operators() -> Mapping[str, str]:
    """Operator -> its formula in words with the source, for the help page and the tests' list."""
    return dict(sorted(WORDS.items()))
