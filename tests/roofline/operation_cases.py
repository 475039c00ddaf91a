"""Calls of operators with their count by hand: what the formulas are held against."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

from tests.roofline import by_hand as by
from tuimon.events.arguments import PLACES
from tuimon.roofline.counts.operations import Operations, Shape, operations

SAME = ""
VECTOR = "torch counts no vector operations"
NO_FORMULA = "torch has no formula"
CAUSAL = "torch counts the pairs that the mask hides"
GROUPS = "torch counts the gradient by the weight as if there were one group"


def f(*sizes: int, dtype: str = "f32") -> Shape:
    return dtype, sizes


@dataclass
class Case:
    title: str
    operator: str
    arguments: Sequence[Any]
    """In the order of the schema: (dtype, sizes) is a tensor, a list of those a list of tensors, all else a literal."""
    hand: by.Hand | None
    """None: the sizes do not tell, so it has to be unknown."""
    out: Sequence[Shape] = ()
    why: str = SAME
    """Why torch's figure differs, if it does."""
    named: dict[str, Any] = field(default_factory=dict)

    def ours(self) -> Operations | None:
        inputs: list[Shape] = []
        for a in self.arguments:
            if is_shape(a):
                inputs.append(a)
            elif isinstance(a, list) and a and is_shape(a[0]):
                inputs.extend(a)
        told = dict(self.named)
        for key, place in PLACES.get(self.operator, {}).items():
            if place < len(self.arguments) and not is_shape(self.arguments[place]):
                told.setdefault(key, self.arguments[place])
        return operations(self.operator, inputs, self.out, told)

    def by_hand(self) -> Operations | None:
        return None if self.hand is None else Operations(*by.tally(self.hand))


def is_shape(a: Any) -> bool:
    return isinstance(a, tuple) and len(a) == 2 and isinstance(a[0], str) and isinstance(a[1], tuple)


NO = None
PRODUCTS: list[Case] = [
    # products of matrices and vectors
    Case("mm", "mm", [f(3, 4), f(4, 5)], by.mm(3, 4, 5)),
    Case("mm of bf16, K = 1", "mm", [f(3, 1, dtype="bf16"), f(1, 5, dtype="bf16")], by.mm(3, 1, 5)),
    Case("addmm", "addmm", [f(5), f(3, 4), f(4, 5)], by.mm(3, 4, 5, beta=1), why=VECTOR),
    Case(
        "addmm, beta 0, alpha 2",
        "addmm",
        [f(5), f(3, 4), f(4, 5)],
        by.mm(3, 4, 5, beta=0, alpha=2),
        why=VECTOR,
        named={"beta": 0, "alpha": 2},
    ),
    Case("bmm", "bmm", [f(6, 3, 4), f(6, 4, 2)], by.mm(3, 4, 2, batch=6)),
    Case(
        "baddbmm, alpha 2",
        "baddbmm",
        [f(6, 3, 2), f(6, 3, 4), f(6, 4, 2)],
        by.mm(3, 4, 2, batch=6, beta=1, alpha=2),
        why=VECTOR,
        named={"alpha": 2},
    ),
    Case("addbmm", "addbmm", [f(3, 2), f(6, 3, 4), f(6, 4, 2)], by.mm(3, 4, 2, batch=6, beta=1, summed=True), why=NO_FORMULA),
    Case("mv", "mv", [f(7, 5), f(5)], by.mm(7, 5, 1), why=NO_FORMULA),
    Case("addmv", "addmv", [f(7), f(7, 5), f(5)], by.mm(7, 5, 1, beta=1), why=NO_FORMULA),
    Case("dot", "dot", [f(9), f(9)], by.mm(1, 9, 1), why=NO_FORMULA),
    Case("outer", "outer", [f(4), f(6)], by.elements(4, 6), why=NO_FORMULA),
    Case("matmul, batches broadcast", "matmul", [f(2, 1, 3, 4), f(5, 4, 2)], by.mm(3, 4, 2, batch=10), why=NO_FORMULA),
    Case("matmul of a vector", "matmul", [f(4), f(5, 4, 2)], by.mm(1, 4, 2, batch=5), why=NO_FORMULA),
    Case("linear with bias", "linear", [f(2, 3, 4), f(5, 4), f(5)], by.mm(6, 4, 5, beta=1), why=NO_FORMULA),
    Case("linear, frozen (mkl)", "mkl._mkl_linear", [f(6, 4), f(77), f(5, 4), f(5)], by.mm(6, 4, 5, beta=1), why=NO_FORMULA),
    Case(
        "linear + gelu (mkldnn)",
        "mkldnn._linear_pointwise",
        [f(6, 4), f(5, 4), f(5), "gelu", [], "none"],
        by.both(by.mm(6, 4, 5, beta=1), by.elements(6, 5, each=5)),
        why=NO_FORMULA,
    ),
    Case(
        "einsum bik,bkj->bij",
        "einsum",
        ["bik,bkj->bij", [f(2, 3, 4), f(2, 4, 5)]],
        by.einsum("bik,bkj->bij", (2, 3, 4), (2, 4, 5)),
        why=NO_FORMULA,
    ),
    Case(
        "einsum, nothing contracted",
        "einsum",
        ["bi,j->bij", [f(2, 3), f(4)]],
        by.einsum("bi,j->bij", (2, 3), (4,)),
        why=NO_FORMULA,
    ),
    Case(
        "einsum, one label summed first",
        "einsum",
        ["bik,kj->ij", [f(2, 3, 4), f(4, 5)]],
        by.einsum("bik,kj->ij", (2, 3, 4), (4, 5)),
        why=NO_FORMULA,
    ),
    Case("einsum of three", "einsum", ["ij,jk,kl->il", [f(2, 3), f(3, 4), f(4, 5)]], None, why=NO_FORMULA),
    Case("_int_mm", "_int_mm", [f(3, 4, dtype="i8"), f(4, 5, dtype="i8")], by.mm(3, 4, 5), why=NO_FORMULA),
    Case(
        "_scaled_mm of fp8",
        "_scaled_mm",
        [f(16, 32, dtype="f8e4m3fn"), f(32, 16, dtype="f8e4m3fn"), f(), f()],
        by.both(by.mm(16, 32, 16), by.elements(16, 16, each=2)),
        why=VECTOR,
    ),
    Case(
        "_grouped_mm, 7 rows in 3 groups",
        "_grouped_mm",
        [f(7, 4), f(3, 4, 5), f(3, dtype="i32")],
        by.both(by.mm(2, 4, 5), by.mm(4, 4, 5), by.mm(1, 4, 5)),
        why=NO_FORMULA,
    ),
    Case(
        "_weight_int8pack_mm",
        "_weight_int8pack_mm",
        [f(3, 4, dtype="bf16"), f(5, 4, dtype="i8"), f(5, dtype="bf16")],
        by.mm(3, 4, 5, beta=1),
        why=NO_FORMULA,
    ),
    Case("sparse x dense", "_sparse_mm", [f(3, 4), f(4, 5)], None, why=NO_FORMULA),
    # convolutions
    Case("conv1d", "conv1d", [f(2, 3, 9), f(4, 3, 3)], by.convolution((2, 3, 9), (4, 3, 3)), why=NO_FORMULA),
    Case(
        "convolution, stride, padding, bias",
        "convolution",
        [f(2, 3, 7, 6), f(4, 3, 3, 2), f(4), [2, 2], [1, 1], [1, 1], False, [0, 0], 1],
        by.convolution((2, 3, 7, 6), (4, 3, 3, 2), stride=2, padding=1, bias=True),
        why=VECTOR,
    ),
    Case(
        "convolution, 2 groups, dilated",
        "convolution",
        [f(2, 4, 9, 9), f(6, 2, 3, 3), NO, [1, 1], [0, 0], [2, 2], False, [0, 0], 2],
        by.convolution((2, 4, 9, 9), (6, 2, 3, 3), dilation=2, groups=2),
    ),
    Case(
        "convolution by depth",
        "convolution",
        [f(2, 4, 5, 5), f(4, 1, 3, 3), NO, [1, 1], [1, 1], [1, 1], False, [0, 0], 4],
        by.convolution((2, 4, 5, 5), (4, 1, 3, 3), padding=1, groups=4),
    ),
    Case(
        "convolution in 3 dimensions",
        "convolution",
        [f(1, 2, 4, 4, 4), f(3, 2, 2, 2, 2), NO, [1, 1, 1], [0, 0, 0], [1, 1, 1], False, [0, 0, 0], 1],
        by.convolution((1, 2, 4, 4, 4), (3, 2, 2, 2, 2)),
    ),
    Case(
        "convolution, transposed, bias",
        "convolution",
        [f(2, 4, 5, 5), f(4, 3, 3, 3), f(6), [2, 2], [1, 1], [1, 1], True, [0, 0], 2],
        by.transposed((2, 4, 5, 5), (4, 3, 3, 3), stride=2, padding=1, groups=2, bias=True),
        why=VECTOR,
    ),
    Case(
        "cudnn_convolution, no strides known",
        "cudnn_convolution",
        [f(2, 3, 7, 7), f(4, 3, 3, 3)],
        None,
        why="torch needs the result, too",
        named={"known": False},
    ),
    Case(
        "convolution_backward, all",
        "convolution_backward",
        [f(2, 4, 4, 4), f(2, 3, 7, 7), f(4, 3, 3, 3), [4], [2, 2], [1, 1], [1, 1], False, [0, 0], 1, [True, True, True]],
        by.convolution_backward((2, 3, 7, 7), (4, 3, 3, 3), (True, True, True), stride=2, padding=1),
        why=VECTOR,
    ),
    Case(
        "convolution_backward, weight alone",
        "convolution_backward",
        [f(2, 4, 4, 4), f(2, 3, 7, 7), f(4, 3, 3, 3), [4], [2, 2], [1, 1], [1, 1], False, [0, 0], 1, [False, True, False]],
        by.convolution_backward((2, 3, 7, 7), (4, 3, 3, 3), (False, True, False), stride=2, padding=1),
    ),
    Case(
        "convolution_backward, 2 groups",
        "convolution_backward",
        [f(2, 6, 5, 5), f(2, 4, 7, 7), f(6, 2, 3, 3), [6], [1, 1], [0, 0], [1, 1], False, [0, 0], 2, [True, True, False]],
        by.convolution_backward((2, 4, 7, 7), (6, 2, 3, 3), (True, True, False), groups=2),
        why=GROUPS,
    ),
    Case(
        "convolution_backward, transposed",
        "convolution_backward",
        [f(2, 3, 9, 9), f(2, 4, 5, 5), f(4, 3, 3, 3), [3], [2, 2], [1, 1], [1, 1], True, [0, 0], 1, [True, True, True]],
        by.convolution_backward((2, 4, 5, 5), (4, 3, 3, 3), (True, True, True), stride=2, padding=1, transposed=True),
        why=VECTOR,
    ),
]
