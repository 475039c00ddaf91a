"""Operations of products of matrices and vectors: dense, batched, grouped, scaled, quantized, semi-structured, and einsum.

A bias or an added matrix costs what the definition of `torch.addmm` says: beta * self + alpha * (mat1 @ mat2), where a factor
of one costs nothing and beta = 0 leaves `self` out.
"""

from __future__ import annotations

import re

from tuimon.roofline.counts.elementwise import POINTWISE
from tuimon.roofline.counts.formulas import (
    Call,
    Operations,
    Sizes,
    Unknown,
    broadcast,
    contraction,
    elementwise,
    formula,
    numel,
    require,
)
from tuimon.roofline.dtypes import packed


def _product(call: Call, a: int, b: int) -> tuple[int, int]:
    """(multiply-adds, results) of the product of two matrices."""
    left, right = call.sizes(a), call.sizes(b)
    require(len(left) == len(right) == 2 and left[1] == right[0])
    return left[0] * left[1] * right[1], left[0] * right[1]


def _batched(call: Call, a: int, b: int) -> tuple[int, int, int]:
    """(multiply-adds, results of all, results of one) of products of as many pairs of matrices."""
    left, right = call.sizes(a), call.sizes(b)
    require(len(left) == len(right) == 3 and left[0] == right[0] and left[2] == right[1])
    return numel(left) * right[2], left[0] * left[1] * right[2], left[1] * right[2]


def _added(call: Call, results: int) -> int:
    """What `beta * self + alpha * ..` costs for so many results.

    A trace that does not hold the two is read as if they were 1, as every layer of torch.nn has them: what they change is less
    than the Kth part of the product, and the product is known.
    """
    told = Call(call.operator, (), (), {k: v for k, v in call.arguments.items() if k != "known"})
    beta, alpha = told.number("beta", 1), told.number("alpha", 1)
    return results * ((1 + (beta != 1) if beta != 0 else 0) + (alpha != 1))


@formula("mm _int_mm", "2 M K N (definition of torch.mm)")
def _mm(call: Call) -> Operations:
    return Operations(contraction(_product(call, 0, 1)[0], call.dtype()))


@formula(
    "addmm _addmm_activation",
    "2 M K N, and beta * self + alpha * product: M N where both are 1 (definition of torch.addmm)",
)
def _addmm(call: Call) -> Operations:
    multiply_adds, results = _product(call, 1, 2)
    after = 0
    if call.operator == "_addmm_activation":
        after = POINTWISE["gelu"] * results if call.flag("use_gelu", False) else 0
    return Operations(contraction(multiply_adds, call.dtype(1)), elementwise(_added(call, results) + after, call.dtype(1)))


@formula("bmm", "2 B M K N (definition of torch.bmm)")
def _bmm(call: Call) -> Operations:
    return Operations(contraction(_batched(call, 0, 1)[0], call.dtype()))


@formula("baddbmm", "2 B M K N, and B M N for what is added (definition of torch.baddbmm)")
def _baddbmm(call: Call) -> Operations:
    multiply_adds, results, _ = _batched(call, 1, 2)
    return Operations(contraction(multiply_adds, call.dtype(1)), elementwise(_added(call, results), call.dtype(1)))


@formula("addbmm", "2 B M K N, the sum over B being part of the contraction, and M N for what is added (torch.addbmm)")
def _addbmm(call: Call) -> Operations:
    multiply_adds, _, results = _batched(call, 1, 2)
    return Operations(contraction(multiply_adds, call.dtype(1)), elementwise(_added(call, results), call.dtype(1)))


@formula("mv", "2 M K (definition of torch.mv)")
def _mv(call: Call) -> Operations:
    matrix, vector = call.sizes(0), call.sizes(1)
    require(len(matrix) == 2 and vector == matrix[1:])
    return Operations(contraction(numel(matrix), call.dtype()))


@formula("addmv", "2 M K, and M for what is added (definition of torch.addmv)")
def _addmv(call: Call) -> Operations:
    matrix, vector = call.sizes(1), call.sizes(2)
    require(len(matrix) == 2 and vector == matrix[1:])
    return Operations(contraction(numel(matrix), call.dtype(1)), elementwise(_added(call, matrix[0]), call.dtype(1)))


@formula("dot vdot inner1d", "2 K (definition of torch.dot)")
def _dot(call: Call) -> Operations:
    require(len(call.sizes(0)) == 1 and call.sizes(0) == call.sizes(1))
    return Operations(contraction(call.sizes(0)[0], call.dtype()))


@formula("outer ger", "M N products: nothing is contracted (definition of torch.outer)")
def _outer(call: Call) -> Operations:
    require(len(call.sizes(0)) == len(call.sizes(1)) == 1)
    return Operations(0, elementwise(call.sizes(0)[0] * call.sizes(1)[0], call.dtype()))


@formula("addr", "M N products, and M N for what is added (definition of torch.addr)")
def _addr(call: Call) -> Operations:
    require(len(call.sizes(1)) == len(call.sizes(2)) == 1)
    results = call.sizes(1)[0] * call.sizes(2)[0]
    return Operations(0, elementwise(results + _added(call, results), call.dtype(1)))


@formula(
    "matmul __matmul__",
    "2 K for every result; leading sizes broadcast, one vector or two have no row of their own (torch.matmul)",
)
def _matmul(call: Call) -> Operations:
    left, right = call.sizes(0), call.sizes(1)
    require(len(left) > 0 and len(right) > 0)
    rows = left[-2:-1] if len(left) > 1 else ()
    columns = right[-1:] if len(right) > 1 else ()
    require(left[-1] == (right[-2] if len(right) > 1 else right[0]))
    results = (*broadcast([left[:-2], right[:-2]]), *rows, *columns)
    return Operations(contraction(numel(results) * left[-1], call.dtype()))


@formula("linear", "2 K for every result, and one for a bias (definition of torch.nn.functional.linear)")
def _linear(call: Call) -> Operations:
    x, weight = call.sizes(0), call.sizes(1)
    require(len(x) > 0 and len(weight) in (1, 2) and x[-1] == weight[-1])
    multiply_adds = numel(x[:-1]) * numel(weight)
    results = numel(x[:-1]) * numel(weight[:-1])
    bias = call.has(2) or call.get("bias") is True
    return Operations(contraction(multiply_adds, call.dtype()), elementwise(results if bias else 0, call.dtype()))


@formula("vllm.rocm_unquantized_gemm aiter.gemm_a16w16", "as linear: x [.., K] by a weight [N, K] (vLLM, AITER)")
def _library_linear(call: Call) -> Operations:
    bias = call.has(2) and call.sizes(2) == call.sizes(1)[:1]
    return _linear(Call("linear", call.inputs[: 3 if bias else 2], (), {}))


@formula("mkl._mkl_linear", "as linear, with the weight before it was packed (torch/_inductor/fx_passes/mkldnn_fusion.py)")
def _mkl_linear(call: Call) -> Operations:
    return _linear(Call("linear", (call.inputs[0], *call.inputs[2:]), call.outputs, call.arguments))


POST_OPS = {
    "": 0, "none": 0, "relu": 0, "hardtanh": 0, "leaky_relu": 1, "sigmoid": 1, "tanh": 1, "swish": 2,
    "hardsigmoid": 2, "hardswish": 3, "gelu": POINTWISE["gelu"],
    "add": 1, "sum": 1, "mul": 1, "sub": 1, "add_relu": 1, "sum_relu": 1,
}  # fmt: skip
"""Cost of one result for each function that oneDNN fuses behind a product, by the names that Inductor passes to it."""


def post_op(call: Call) -> int:
    """Functions of every result that are fused behind a product. A trace does not hold which: they are left out there, being
    less than a few Kths of the product."""
    name = call.get("attr", "none")
    if not isinstance(name, str) or name not in POST_OPS:
        raise Unknown(f"post-op {name}")
    if name == "gelu" and call.get("algorithm", "none") == "tanh":
        return POINTWISE["gelu_tanh"]
    return POST_OPS[name]


@formula("mkldnn._linear_pointwise", "as linear, and the fused function's own cost (torch/_inductor/mkldnn_ir.py)")
def _linear_pointwise(call: Call) -> Operations:
    # with another tensor that is added, its place is before the weight
    binary = call.has(2) and len(call.sizes(2)) == 2
    x, w = call.sizes(0), call.sizes(1 + binary)
    require(len(x) > 0 and len(w) == 2 and x[-1] == w[1])
    results = numel(x[:-1]) * w[0]
    after = (1 if binary else post_op(call)) + call.has(2 + binary)
    return Operations(contraction(results * x[-1], call.dtype()), elementwise(results * after, call.dtype()))


@formula(
    "_scaled_mm _scaled_mm_v2",
    "2 M K N, and two products with the scales for every result (torch/nn/functional.py scaled_mm)",
)
def _scaled_mm(call: Call) -> Operations:
    multiply_adds, results = _product(call, 0, 1)
    bias = 0 if call.operator.endswith("v2") else call.has(4)
    # a shell of two four-bit floats stands as one element along K
    return Operations(contraction(multiply_adds * packed(call.dtype())), results * (2 + bias))


@formula(
    "_grouped_mm _scaled_grouped_mm",
    "2 M K N: every row (or column, or part of K) belongs to one group (aten/native/GroupedMMUtils.h)",
)
def _grouped_mm(call: Call) -> Operations:
    left, right = call.sizes(0), call.sizes(1)
    if len(left) == len(right) == 3:
        multiply_adds, results, _ = _batched(call, 0, 1)
    elif len(left) == 2 and len(right) == 3:
        require(left[1] == right[1])
        multiply_adds, results = numel(left) * right[2], left[0] * right[2]
    elif len(left) == 3 and len(right) == 2:
        require(left[2] == right[0])
        multiply_adds, results = left[1] * left[2] * right[1], left[1] * right[1]
    else:
        multiply_adds, results = _product(call, 0, 1)
        if call.operator != "_grouped_mm":
            raise Unknown("the number of groups is not in the sizes")
    scales = 2 * results if call.operator != "_grouped_mm" else 0
    return Operations(contraction(multiply_adds), scales)


@formula("_weight_int8pack_mm", "2 M K N, and one product with the scale for every result (aten/native/LinearAlgebra.cpp)")
def _int8pack(call: Call) -> Operations:
    x, w = call.sizes(0), call.sizes(1)
    require(len(x) == len(w) == 2 and x[1] == w[1])
    return Operations(contraction(numel(x) * w[0]), x[0] * w[0])


@formula(
    "_weight_int4pack_mm _weight_int4pack_mm_for_cpu",
    "2 M K N, and one product and one sum for every weight that is made a float (aten/native/cuda/int4mm.cu)",
)
def _int4pack(call: Call) -> Operations:
    x, scales = call.sizes(0), call.sizes(2)
    require(len(x) == 2 and len(scales) == 3 and scales[2] == 2)
    return Operations(contraction(numel(x) * scales[1]), 2 * x[1] * scales[1])


@formula(
    "_sparse_semi_structured_mm",
    "2 M K N of the dense product, as the makers' 2:4 figures count (aten/native/sparse/cuda/SparseSemiStructuredOps.cu)",
)
def _semi_structured_mm(call: Call) -> Operations:
    return Operations(contraction(_semi_structured(call.sizes(0), call.sizes(2))))


@formula(
    "_sparse_semi_structured_linear",
    "2 M K N of the dense product, and one for a bias (as _sparse_semi_structured_mm)",
)
def _semi_structured_linear(call: Call) -> Operations:
    x, w = call.sizes(0), call.sizes(1)
    require(len(x) > 0 and len(w) == 2 and x[-1] == 2 * w[1])
    results = numel(x[:-1]) * w[0]
    after = post_op(Call(call.operator, (), (), {"attr": call.get("activation") or "none"}))
    return Operations(contraction(results * x[-1]), results * (after + call.has(3)))


@formula(
    "_sparse_semi_structured_addmm",
    "2 M K N of the dense product, and M N for what is added (as _sparse_semi_structured_mm)",
)
def _semi_structured_addmm(call: Call) -> Operations:
    results = call.sizes(1)[0] * call.sizes(3)[1]
    return Operations(contraction(_semi_structured(call.sizes(1), call.sizes(3))), _added(call, results))


def _semi_structured(packed_left: Sizes, right: Sizes) -> int:
    """Multiply-adds of the dense product; the packed matrix holds every second number of a row."""
    require(len(packed_left) == len(right) == 2 and 2 * packed_left[1] == right[0])
    return packed_left[0] * right[0] * right[1]


@formula(
    "tensordot",
    "2 K for every result, K the product of the sizes that are summed over (definition of torch.tensordot)",
)
def _tensordot(call: Call) -> Operations:
    left, right = call.sizes(0), call.sizes(1)
    places = [call.get("dims_self"), call.get("dims_other")]
    if not all(isinstance(p, (list, tuple)) for p in places):
        raise Unknown("dims are not known")
    ours, theirs = ([int(i) % len(s) for i in p] for p, s in zip(places, (left, right), strict=True))
    require([left[i] for i in ours] == [right[i] for i in theirs])
    contracted = numel(tuple(left[i] for i in ours))
    return Operations(contraction(numel(left) * numel(right) // contracted if contracted else 0, call.dtype()))


_EQUATION = re.compile(r"([a-zA-Z.]*(?:,[a-zA-Z.]*)*)(?:->([a-zA-Z.]*))?")


def _letters(term: str, sizes: Sizes, known: set[str]) -> tuple[str, ...]:
    """One label for each size: an ellipsis stands for labels "0", "1", .. counted from the right, as broadcasting does."""
    head, dots, tail = term.partition("...")
    require("." not in head + tail)
    rest = len(sizes) - len(head) - len(tail)
    require(rest >= 0 if dots else rest == 0)
    known.update(str(i) for i in range(rest if dots else 0))
    return (*head, *(str(i) for i in reversed(range(rest if dots else 0))), *tail)


@formula(
    "einsum",
    "of one or two operands: 2 for every combination of all labels, after what only one operand has is summed over; "
    "products alone where nothing is contracted; more than two operands: the order is not known (torch.einsum, "
    "aten/native/Linear.cpp)",
)
def _einsum(call: Call) -> Operations:
    match = _EQUATION.fullmatch(str(call.get("equation", "?")).replace(" ", ""))
    if match is None:
        raise Unknown("no equation")
    terms, extra = match[1].split(","), set[str]()
    require(len(terms) == len(call.inputs))
    if len(terms) > 2:
        raise Unknown("the order of the contractions is not known")
    labels = [_letters(t, s, extra) for t, (_, s) in zip(terms, call.inputs, strict=True)]
    size: dict[str, int] = {}
    for label, (_, sizes) in zip(labels, call.inputs, strict=True):
        for letter, n in zip(label, sizes, strict=True):
            require(n == 1 or size.get(letter, 1) in (1, n))
            size[letter] = n if n != 1 else size.get(letter, 1)
    if match[2] is None:
        result = {x for x in size if "".join(terms).count(x) == 1} | extra
    else:
        result = set(match[2].replace("...", "", 1)) | (extra if "..." in match[2] else set())
        require(result <= set(size) and (not extra or "..." in match[2]))
    # a label that stands twice in one term is its diagonal; one of size 1 takes no part
    own = [{x for x in lab if s[lab.index(x)] != 1} for lab, (_, s) in zip(labels, call.inputs, strict=True)]
    kept = [mine & (result.union(*own[:i], *own[i + 1 :])) for i, mine in enumerate(own)]
    summed = sum(_combinations(mine, size) - _combinations(rest, size) for mine, rest in zip(own, kept, strict=True))
    if len(terms) == 1:
        return Operations(0, elementwise(summed, call.dtype()))
    everything = _combinations(kept[0] | kept[1], size)
    if (kept[0] & kept[1]) - result:
        return Operations(contraction(everything, call.dtype()), elementwise(summed, call.dtype()))
    return Operations(0, elementwise(summed + everything, call.dtype()))


def _combinations(labels: set[str], size: dict[str, int]) -> int:
    return numel(tuple(size[x] for x in labels))
