from __future__ import annotations

from importlib.util import find_spec
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.roofline.operation_cases import VECTOR, Case, f
from tests.roofline.operation_cases_more import CASES
from tests.roofline.operations import Torchs, torchs
from tuimon.events.arguments import PLACES
from tuimon.roofline.counts.operations import Operations, Shape, known_operators, operations, plain_name
from tuimon.roofline.dtypes import bits, is_complex, is_float, short

sizes = st.integers(1, 9)
some = st.integers(0, 1 << 40)


def count(operator: str, *inputs: Shape, out: tuple[Shape, ...] = (), **arguments: Any) -> Operations:
    counted = operations(operator, inputs, out, arguments)
    assert counted is not None, operator
    return counted


# ------------------------------------------------------------------------------------------------------------ by hand, by torch
@pytest.mark.parametrize("case", CASES, ids=lambda c: c.title)
def test_the_count_is_that_by_hand_or_unknown(case: Case) -> None:
    assert case.ours() == case.by_hand()


NOT_IN_ATEN = {"cross_entropy", "flash_attn._flash_attn_forward", "flash_attn._flash_attn_backward"}
OF_TORCH_1 = {f"{lib}_convolution_backward{what}" for lib in ("cudnn", "miopen") for what in ("", "_weight")}


@pytest.fixture(scope="module")
def said() -> Torchs:
    if find_spec("torch") is None:
        pytest.skip("this Python has no torch to compare with")
    return torchs(CASES, {k: v for k, v in PLACES.items() if k not in NOT_IN_ATEN | OF_TORCH_1})


def test_matrix_operations_are_torchs_own_unless_a_reason_is_given(said: Torchs) -> None:
    agree = 0
    for case, theirs in zip(CASES, said.counts, strict=True):
        ours = case.ours()
        if case.why in ("", VECTOR):
            assert ours is not None and ours.matrix == theirs, case.title
            agree += 1
        else:
            # a reason that is not needed any more would hide a mistake
            assert theirs is None or ours is None or theirs != ours.matrix, case.title
    assert agree >= 14


def test_every_argument_stands_where_the_schema_has_it(said: Torchs) -> None:
    # the old `norm` calls its order p; Dynamo's dropout has another word
    other_words = [["norm", "ord"], ["dropout", "training"]]
    assert [w for w in said.misplaced if w[:2] not in other_words] == []


def test_the_short_names_of_number_formats_are_torchs(said: Torchs) -> None:
    for name, width, long in said.dtypes:
        known = bits(name)
        if known is not None and known % 8 == 0:
            assert (known, short(long)) == (8 * width, name)


def test_every_operator_with_places_has_a_formula() -> None:
    assert set(PLACES) <= set(known_operators())


# ------------------------------------------------------------------------------------------------------------ names
@pytest.mark.parametrize(
    ("told", "name"),
    [
        ("aten::addmm", "addmm"), ("aten.addmm.default", "addmm"), ("torch.ops.aten.mm.default", "mm"), ("add_", "add"),
        ("aten::add_", "add"), ("add_.Tensor", "add"), ("torch.add", "add"), ("torch.linear", "linear"),
        ("torch._C._nn.linear", "linear"),
        ("torch.nn.functional.linear", "linear"), ("mkldnn::_linear_pointwise", "mkldnn._linear_pointwise"),
        ("@", "matmul"),
        ("mkldnn._linear_pointwise.binary", "mkldnn._linear_pointwise"), ("iadd", "add"), ("torch.Tensor.mul_", "mul"),
        ("prims.convert_element_type.default", "convert_element_type"), ("__getitem__", "__getitem__"),
        ("truediv", "truediv"),
        ("_fused_adamw_", "_fused_adamw"), ("nccl:all_reduce", "nccl.all_reduce"), ("aten::_foreach_add_", "_foreach_add"),
    ],
)  # fmt: skip
def test_a_name_is_found_however_it_is_written(told: str, name: str) -> None:
    assert plain_name(told) == name
    assert name in known_operators()


@pytest.mark.parametrize(
    "name",
    [
        "mylib::mm",
        "triton_poi_fused_add_0",
        "cpp_fused_add_0",
        "",
        ".",
        "::",
        "aten::",
        "AddmmBackward0",
        "a.b.c",
        "torch.sparse.mm",
        "torch.ops.mylib.mm",
        "higher_order.mm",
    ],
)
def test_the_name_of_another_operator_is_not_taken_for_one(name: str) -> None:
    assert operations(name, [f(2, 3), f(3, 4)], (), {}) is None


def test_every_formula_says_what_it_is() -> None:
    known = known_operators()
    assert len(known) > 400
    assert all(words.strip() for words in known.values())


# ------------------------------------------------------------------------------------------------------------ bad input
BAD: list[list[Any]] = [
    [], [f()], [f(2)], [f(2, 3)], [f(2, 3), f(4, 5)], [f(2, 3, 4), f(3, 4)], [("", ()), ("", ())], [("f32", (-1, 3)),
    f(3, 4)],
    [("f32", ("s77", 3)), f(3, 4)], [("f32", (2.5, 3)), f(3, 4)], [("f32", (True, 3)), f(3, 4)], [("f32", None),
    f(3, 4)], ["f32"], [None],
    [f(0, 0), f(0, 0), f(0, 0)], [f(0), f(0), f(0), f(0)], [f(*(1 << 70,) * 4), f(*(1 << 70,) * 4), f(*(1 << 70,) * 4)],
    [(7, (2, 3))],
]  # fmt: skip
ODD: list[dict[str, Any]] = [
    {}, {"known": False}, {"output_mask": "?"}, {"transposed": "maybe"}, {"is_causal": "yes"}, {"dim": "0, 0"},
    {"dim": 99}, {"stride": 0},
    {"stride": [0, 0]}, {"padding": -99}, {"groups": "all"}, {"equation": "((("}, {"equation": None},
    {"dropout_p": float("nan")},
    {"lists": [0]}, {"kernel_size": 0, "dim": None}, {"window_size_left": "x", "is_causal": 1},
    {"num_groups": 0, "group": 0}, {"ord": "fro"},
    {"mode": 99}, {"dims_self": [9], "dims_other": [9]}, {"equation": "..." * 9}, {"reduction": [1]}, {"attr": ["gelu"]},
]  # fmt: skip


def test_no_input_makes_a_formula_fail() -> None:
    for operator in known_operators():
        for i, inputs in enumerate(BAD):
            for arguments in ODD[i % 5 :: 5]:
                counted = operations(operator, inputs, (), arguments)
                assert counted is None or (counted.matrix >= 0 and counted.vector >= 0)
        for outputs in BAD:
            operations(operator, [f(2, 3, 4, 5)] * 4, outputs, {"dim": 1})


shapes = st.tuples(st.sampled_from(["f32", "bf16", "i64", "c64", "", "b8", "Scalar"]), st.lists(some, max_size=5).map(tuple))


@given(
    st.sampled_from(sorted(known_operators())), st.lists(shapes, max_size=6), st.lists(shapes, max_size=3), st.sampled_from(ODD)
)
def test_counts_are_never_negative(operator: str, inputs: list[Shape], outputs: list[Shape], arguments: dict[str, Any]) -> None:
    counted = operations(operator, inputs, outputs, arguments)
    assert counted is None or (counted.matrix >= 0 and counted.vector >= 0)


def test_enormous_sizes_are_exact() -> None:
    n = 10**15
    assert count("mm", f(n, n), f(n, n)).matrix == 2 * 10**45
    assert count("scaled_dot_product_attention", *[f(1, 1, n, 8)] * 3, is_causal=True).matrix == 2 * 16 * n * (n + 1) // 2


def test_a_trace_without_arguments_is_not_given_defaults() -> None:
    q = f(1, 2, 8, 4)
    assert operations("aten::_scaled_dot_product_flash_attention", [q, q, q], (), {"known": False}) is None
    assert operations("aten::convolution", [f(1, 2, 8, 8), f(2, 2, 3, 3)], (), {"known": False}) is None
    assert count("aten::mm", f(2, 3), f(3, 4), known=False).matrix == 48


def test_a_mask_is_read_as_a_tensor_and_as_a_flag() -> None:
    q, lse, mask = f(2, 2, 5, 4), f(2, 2, 5), f(5, 5)
    told = {"is_causal": False, "dropout_p": 0.0}
    cpu = "_scaled_dot_product_flash_attention_for_cpu_backward"
    for name, inputs in (("scaled_dot_product_attention", [q] * 3), (cpu, [q] * 5 + [lse])):
        plain = count(name, *inputs, **told)
        masked = count(name, *inputs, mask, **told)
        assert masked == count(name, *inputs, mask=True, **told)
        assert masked == Operations(plain.matrix, plain.vector + 100)


def test_a_trace_holds_no_texts() -> None:
    assert count("gelu", f(4)) == Operations(0, 20)
    assert count("gelu", f(4), approximate="tanh") == Operations(0, 36)
    assert operations("aten::gelu", [f(4)], (), {}) is None
    # of a product it is a few parts of K, and left out
    assert count("mkldnn::_linear_pointwise", f(6, 4), f(5, 4), f(5)) == Operations(240, 30)
    assert count("mkldnn::_linear_pointwise", f(6, 4), f(6, 5), f(5, 4), f(5)) == Operations(240, 60)
    assert count("aten::addmm", f(5), f(6, 4), f(4, 5), known=False) == Operations(240, 30)


def test_what_stands_for_no_tensor_is_skipped() -> None:
    q = f(2, 3, 8, 4, dtype="c10::BFloat16")
    row = [q, q, q, ("Scalar", ()), ("Scalar", ()), ("", ())]
    assert count("aten::_scaled_dot_product_flash_attention", *row, is_causal="True") == count(
        "_scaled_dot_product_flash_attention", q, q, q, is_causal=True
    )


# ------------------------------------------------------------------------------------------------------------ laws
@given(sizes, sizes, sizes, sizes)
def test_products_grow_with_each_size_and_agree(b: int, m: int, k: int, n: int) -> None:
    one = count("mm", f(m, k), f(k, n)).matrix
    assert count("mm", f(2 * m, k), f(k, n)).matrix == 2 * one
    assert count("mm", f(n, k), f(k, m)).matrix == one
    assert count("bmm", f(b, m, k), f(b, k, n)).matrix == b * one
    assert count("matmul", f(b, m, k), f(k, n)).matrix == b * one
    assert count("linear", f(b, m, k), f(n, k)).matrix == b * one
    assert count("einsum", f(b, m, k), f(b, k, n), equation="bik,bkj->bij").matrix == (b * one if k > 1 else 0)
    assert count("einsum", f(b, m, k), f(k, n), equation="...k,kj").matrix == (b * one if k > 1 else 0)
    assert count("tensordot", f(b, m, k), f(k, n), dims_self=[2], dims_other=[0]).matrix == b * one
    assert count("mv", f(m, k), f(k)).matrix == count("mm", f(m, k), f(k, 1)).matrix
    assert count("mm", f(m, k, dtype="c64"), f(k, n, dtype="c64")).matrix == 4 * one


@given(sizes, sizes, sizes, st.integers(1, 4), st.integers(1, 3), st.integers(0, 2), st.booleans())
def test_a_convolution_is_the_sum_of_its_groups(n: int, c: int, o: int, g: int, k: int, p: int, t: bool) -> None:
    x, w = f(n, c * g, 8, 7), f(o * g, c, k, k)
    x, w = (f(n, c * g, 8, 7), f(c * g, o, k, k)) if t else (x, w)
    told = {"stride": [2, 2], "padding": [p, p], "dilation": [1, 1], "transposed": t, "output_padding": [0, 0]}
    if t and p >= k:
        return  # nothing is left of the result
    whole = count("convolution", x, w, **told, groups=g)
    alone = count("convolution", f(n, c, 8, 7), f(*((c, o) if t else (o, c)), k, k), **told, groups=1)
    assert (whole.matrix, whole.vector) == (g * alone.matrix, 0)
    assert g > 1 or count("conv_transpose2d" if t else "conv2d", x, w, **told).matrix == whole.matrix


@given(sizes, sizes, sizes, st.integers(1, 3), st.booleans())
def test_gradients_of_a_convolution_are_one_forward_pass_each(n: int, c: int, o: int, k: int, t: bool) -> None:
    x, w = f(n, c, 8, 8), f(*((c, o) if t else (o, c)), k, k)
    size = (8 - 1) * 1 + k if t else 8 - k + 1
    grad = f(n, o, size, size)
    told = {"stride": [1, 1], "padding": [0, 0], "dilation": [1, 1], "transposed": t, "output_padding": [0, 0], "groups": 1}
    forward = count("convolution", x, w, **told).matrix
    for mask, times in (
        ([True, True, True], 2),
        ([True, False, False], 1),
        ([False, True, False], 1),
        ([False, False, True], 0),
    ):
        assert count("convolution_backward", grad, x, w, transposed=t, output_mask=mask).matrix == times * forward
    assert operations("convolution_backward", [grad, x, w], (), {"transposed": t}) is None


@given(st.integers(1, 4), st.integers(1, 3), st.integers(1, 12), st.integers(1, 12), sizes, sizes)
def test_laws_of_attention(b: int, h: int, tq: int, tk: int, d: int, dv: int) -> None:
    q, k, v = f(b, h, tq, d), f(b, h, tk, d), f(b, h, tk, dv)
    full = count("scaled_dot_product_attention", q, k, v)
    assert (
        full.matrix
        == count("bmm", f(b * h, tq, d), f(b * h, d, tk)).matrix + count("bmm", f(b * h, tq, tk), f(b * h, tk, dv)).matrix
    )
    assert count("scaled_dot_product_attention", f(b, 2 * h, tq, d), k, v).matrix == 2 * full.matrix
    causal = count("scaled_dot_product_attention", q, k, v, is_causal=True)
    assert causal.matrix <= full.matrix
    lower = count("_scaled_dot_product_flash_attention", q, k, v, is_causal=True)
    # the pairs hidden by both are a triangle each; with as many keys as queries the corner does not matter
    assert causal == lower if tq == tk else True
    seen = sum(j - i <= tk - tq for i in range(tq) for j in range(tk))
    assert lower.matrix == 2 * b * h * seen * (d + dv)
    tokens = (f(b, tq, h, d), f(b, tk, h, d), f(b, tk, h, dv))
    assert count("_flash_attention_forward", *tokens, is_causal=False) == full
    assert count("_flash_attention_forward", *tokens, is_causal=True) == lower
    assert count("_efficient_attention_forward", *tokens, custom_mask_type=1) == causal
    grad = f(b, h, tq, dv)
    backward = count("_scaled_dot_product_flash_attention_for_cpu_backward", grad, q, k, v, is_causal=True)
    assert d != dv or 2 * backward.matrix == 5 * causal.matrix


@given(
    st.integers(0, 9),
    st.integers(0, 9),
    st.one_of(st.none(), st.integers(0, 9)),
    st.one_of(st.none(), st.integers(0, 9)),
    st.booleans(),
)
def test_pairs_in_a_window_are_those_that_a_loop_finds(
    tq: int, tk: int, left: int | None, right: int | None, causal: bool
) -> None:
    shift = tk - tq

    def sees(i: int, j: int) -> bool:
        ahead = 0 if causal else right
        return (ahead is None or j - i - shift <= ahead) and (left is None or j - i - shift >= -left)

    rows = [sum(sees(i, j) for j in range(tk)) for i in range(tq)]
    told = {"window_size_left": -1 if left is None else left, "window_size_right": right, "is_causal": causal}
    counted = count("_flash_attention_forward", f(1, tq, 1, 1), f(1, tk, 1, 1), f(1, tk, 1, 1), **told)
    assert counted == Operations(4 * sum(rows), 5 * sum(rows) - sum(n > 0 for n in rows))


@given(sizes, sizes, sizes, sizes)
def test_a_recurrent_stack_is_the_sum_of_its_layers(t: int, b: int, i: int, h: int) -> None:
    layer = [f(4 * h, i), f(4 * h, h), f(4 * h), f(4 * h)]
    second = [f(4 * h, h), f(4 * h, h), f(4 * h), f(4 * h)]
    state = [f(2, b, h)] * 2
    one = count("lstm", f(t, b, i), *state, *layer)
    assert one + count("lstm", f(t, b, h), *state, *second) == count("lstm", f(t, b, i), *state, *layer, *second)
    assert one == count("mkldnn_rnn_layer", f(t, b, i), *layer, *state, mode=2, has_biases=True)
    assert one == count("lstm", f(t * b, i), f(t, dtype="i64"), *state, *layer)
    cell = count("lstm_cell", f(b, i), f(b, h), f(b, h), *layer)
    assert (t * cell.matrix, t * cell.vector) == (one.matrix, one.vector)
    back = count("mkldnn_rnn_layer_backward", f(t, b, i), *layer, *state, mode=2, has_biases=True)
    assert back.matrix == 2 * one.matrix
    assert count("aten::_cudnn_rnn", f(t, b, i), *layer, f(999), *state, mode=2) == one


@given(st.lists(sizes, min_size=1, max_size=4), st.integers(0, 3), st.booleans())
def test_a_sum_is_the_same_by_its_dims_and_by_its_result(x: list[int], dim: int, keep: bool) -> None:
    dim %= len(x)
    result = [n for i, n in enumerate(x) if i != dim or keep]
    if keep:
        result[dim] = 1
    assert count("sum", f(*x), dim=[dim - len(x)]) == count("sum", f(*x), out=(f(*result),))
    assert count("sum", f(*x)) == count("sum", f(*x), dim=None) == count("sum", f(*x), out=(f(),))


def test_the_same_work_counts_the_same_whether_it_is_taken_apart_or_not() -> None:
    x, w, stat = f(4, 8, 16), f(16), f(4, 8, 1)
    pieces = [
        count("var_mean", x), count("add", stat), count("rsqrt", stat), count("sub", x, stat), count("mul", x, stat),
        count("mul", x, w), count("add", x, w),
    ]  # fmt: skip
    assert sum(p.vector for p in pieces) == count("native_layer_norm", x, w, w, normalized_shape=[16]).vector
    pieces = [count("sub", x, stat), count("exp", x), count("sum", x, dim=[2]), count("div", x, stat)]
    assert sum(p.vector for p in pieces) == count("_softmax", x, dim=2).vector


def test_integers_do_no_floating_point_operations() -> None:
    n = f(4, dtype="long int")
    assert count("aten::add", n, n) == Operations()
    assert count("aten::div", n, n) == Operations(0, 4)  # gives floats
    assert count("add", n, f(4)) == Operations(0, 4)
    assert count("mul", f(3, dtype="c64"), f(3, dtype="c64")) == Operations(0, 18)
    assert operations("exp", [f(3, dtype="c64")], (), {}) is None


def test_lists_of_tensors() -> None:
    parameters, rest = [f(3, 4), f(5)], [f(3, 4), f(5)] * 3
    assert count("_fused_adamw_", *parameters, *rest, lists=[2, 2, 2, 2], weight_decay=0.0) == Operations(0, 17 * 13)
    assert count("aten::_foreach_add_", *parameters, *parameters, lists=[2, 2], alpha=1) == Operations(0, 17)
    assert operations("aten::_foreach_add_", [*parameters, *parameters], (), {}) is None
    assert operations("_fused_adam_", [*parameters, *rest], (), {"lists": [2, 2, 2, 2]}) is None


# ------------------------------------------------------------------------------------------------------------ number formats
@pytest.mark.parametrize(
    ("name", "width"),
    [
        ("f32", 32), ("float", 32), ("torch.float32", 32), ("c10::BFloat16", 16), ("bf16", 16), ("c10::Half", 16),
        ("f8e4m3fn", 8),
        ("c10::Float8_e5m2", 8), ("torch.float8_e4m3fnuz", 8), ("i4", 4), ("b8", 8), ("bool", 8), ("c64", 64),
        ("c10::complex<float>", 64),
        ("long int", 64), ("unsigned char", 8), ("f4e2m1fnx2", 8), ("double", 64), ("nonsense", None),
    ],
)  # fmt: skip
def test_widths_of_numbers(name: str, width: int | None) -> None:
    assert bits(name) == width


def test_kinds_of_numbers() -> None:
    assert [is_float(d) for d in ("f32", "c10::BFloat16", "long int", "b8", "c64", "u8")] == [
        True,
        True,
        False,
        False,
        True,
        False,
    ]
    assert is_complex("c10::complex<double>")
    assert short("torch.float16") == "f16"
