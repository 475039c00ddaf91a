"""What a compiled graph's text says: rows, arguments and edges, of texts that torch 2.13 wrote, and of no texts at all."""

from __future__ import annotations

import json
import math
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tuimon.roofline.counts.operations import operations
from tuimon.sources import graph_text, output_code

TEXTS: dict[str, list[list[str]]] = json.loads((Path(__file__).parent / "graph_texts.json").read_text(encoding="utf-8"))
ITEM = {"f32": 4, "i64": 8, "i8": 1, "i32": 4}


def read(program: str, kind: str) -> graph_text.Content:
    (text,) = [text for what, text in TEXTS[program] if what == kind]
    return graph_text.read(text, "torch" if kind == "dynamo_output_graph" else "aten")


def operators(content: graph_text.Content) -> dict[str, int]:
    found: dict[str, int] = {}
    for row in content.rows:
        found[row[0]] = found.get(row[0], 0) + row[4]
    return found


def size(edges: Any) -> int:
    return sum(ITEM[dtype] * math.prod(map(int, sizes)) * times for dtype, sizes, times in edges)


def test_every_text_is_read_whole() -> None:
    for program, texts in TEXTS.items():
        for kind, text in texts:
            if kind != "inductor_output_code":
                content = graph_text.read(text, "aten")
                assert not content.cut and not content.why, (program, kind)
                assert content.rows and content.reads and content.writes, (program, kind)


def test_a_linear_and_its_backward() -> None:
    forward, backward = read("linear", "aot_forward_graph"), read("linear", "aot_backward_graph")
    operands = (("f32", ("32",)), ("f32", ("16", "64")), ("f32", ("64", "32")))
    assert forward.rows == (("addmm", operands, (("f32", ("16", "32")),), "", 1),)
    # weight, bias and x once each; the output; what is saved for the backward is an input
    assert size(forward.reads) == 4 * (32 * 64 + 32 + 16 * 64)
    assert size(forward.writes) == 4 * 16 * 32
    assert operators(backward) == {"mm": 1, "sum": 1}
    assert size(backward.reads) == 4 * (16 * 64 + 16 * 32)


def test_what_is_used_twice_is_read_once() -> None:
    content = read("bmm_einsum", "aot_inference_graph")
    assert operators(content) == {"bmm": 2, "add": 1}
    assert size(content.reads) == 4 * (6 * 32 * 48 + 6 * 48 * 20)


def test_a_table_counts_as_what_is_gathered() -> None:
    forward, dynamo = read("embed", "aot_forward_graph"), read("embed", "dynamo_output_graph")
    assert size(forward.reads) == 8 * 40 + 4 * 40 * 32
    assert size(dynamo.reads) == size(forward.reads)  # the ids stand first there
    backward = read("embed", "aot_backward_graph")
    assert size(backward.writes) == 4 * 100 * 32


def test_several_results_are_the_items_that_are_taken() -> None:
    row = read("conv2d", "aot_backward_graph").rows[0]
    assert row[0] == "convolution_backward"
    assert row[2] == (("f32", ("16", "4", "3", "3")), ("f32", ("16",)))
    assert json.loads(row[3]) == {"output_mask": [False, True, True], "transposed": False}


@pytest.mark.parametrize(
    ("program", "kind", "operator", "flag"),
    [
        ("causal", "aot_forward_graph", "_scaled_dot_product_flash_attention_for_cpu", True),
        ("causal", "aot_backward_graph", "_scaled_dot_product_flash_attention_for_cpu_backward", True),
        ("causal", "dynamo_output_graph", "torch.scaled_dot_product_attention", True),
        ("sdpa", "aot_forward_graph", "_scaled_dot_product_flash_attention_for_cpu", None),
        ("sdpa", "aot_backward_graph", "_scaled_dot_product_flash_attention_for_cpu_backward", False),
    ],
)
def test_the_causal_flag_is_found_wherever_it_stands(program: str, kind: str, operator: str, flag: bool | None) -> None:
    (row,) = read(program, kind).rows
    assert row[0] == operator
    assert (json.loads(row[3]) if row[3] else {}).get("is_causal") is flag


def test_a_mask_is_told() -> None:
    text = """class G(torch.nn.Module):
    def forward(self, q: "f32[2, 4, 8, 16][512, 128, 16, 1]cpu", m: "f32[8, 8][8, 1]cpu"):
        a: "f32[2, 4, 8, 16][512, 128, 16, 1]cpu" = torch._C._nn.scaled_dot_product_attention(q, q, q, attn_mask = m)
        b: "f32[2, 4, 8, 16][512, 128, 16, 1]cpu" = torch._C._nn.scaled_dot_product_attention(a, q, q, None)
        return (b,)
"""
    masked, plain = graph_text.read(text, "torch").rows
    assert json.loads(masked[3]) == {"mask": True} and len(masked[1]) == 4
    assert plain[3] == "" and len(plain[1]) == 3


BY_HAND = {
    ("mm", "aot_inference_graph"): 2 * 256 * 512 * 128,
    ("linear", "aot_forward_graph"): 2 * 16 * 64 * 32,
    ("linear", "aot_backward_graph"): 2 * 16 * 64 * 32,
    ("mlp", "aot_forward_graph"): 2 * 16 * (64 * 128 + 128 * 10),
    ("mlp", "aot_backward_graph"): 2 * 16 * (64 * 128 + 2 * 128 * 10),
    ("conv2d", "aot_forward_graph"): 2 * 4 * 16 * 16 * 16 * 4 * 9,
    ("conv2d", "aot_backward_graph"): 2 * 4 * 16 * 16 * 16 * 4 * 9,
    ("conv1d", "aot_forward_graph"): 2 * 4 * 16 * 96 * 8 * 5 + 2 * 4 * 4 * 94 * 16 * 3,
    ("conv1d", "aot_backward_graph"): 2 * 4 * 16 * 96 * 8 * 5 + 2 * (2 * 4 * 4 * 94 * 16 * 3),
    ("convT", "aot_forward_graph"): 2 * 2 * 8 * 16 * 16 * 4 * 16,
    ("convT", "aot_backward_graph"): 2 * 2 * 8 * 16 * 16 * 4 * 16,
    ("sdpa", "aot_forward_graph"): 4 * 2 * 4 * 64 * 64 * 32,
    ("sdpa", "aot_backward_graph"): 10 * 2 * 4 * 64 * 64 * 32,
    ("causal", "aot_forward_graph"): 4 * 2 * 4 * (64 * 65 // 2) * 32,
    ("causal", "aot_backward_graph"): 10 * 2 * 4 * (64 * 65 // 2) * 32,
    ("causal", "dynamo_output_graph"): 4 * 2 * 4 * (64 * 65 // 2) * 32,
    ("bmm_einsum", "aot_inference_graph"): 2 * 2 * 6 * 32 * 48 * 20,
    ("bmm_einsum", "dynamo_output_graph"): 2 * 2 * 6 * 32 * 48 * 20,
    ("mv", "aot_inference_graph"): 2 * 100 * 200 + 2 * 200,
    ("int_mm", "aot_inference_graph"): 2 * 32 * 64 * 16,
    ("embed", "aot_forward_graph"): 0,
    ("block", "aot_forward_graph"): 52_461_568,
    ("block", "aot_backward_graph"): 105_988_096,
    ("ckpt", "dynamo_output_graph"): 2 * 16 * (64 * 128 + 128 * 10),
    # dW and db of both layers, and the first layer once more
    ("ckpt", "aot_backward_graph"): 2 * 16 * (64 * 128 + 2 * 128 * 10) + 2 * 16 * 64 * 128,
}


@pytest.mark.parametrize(("program", "kind"), BY_HAND)
def test_the_rows_hold_what_was_counted_by_hand(program: str, kind: str) -> None:
    total = 0
    for operator, inputs, outputs, told, times in read(program, kind).rows:
        shapes = [[(dtype, tuple(map(int, sizes))) for dtype, sizes in some] for some in (inputs, outputs)]
        found = operations(operator, shapes[0], shapes[1], json.loads(told) if told else {})
        assert found is not None, operator
        total += found.matrix * times
    assert total == BY_HAND[program, kind]


def test_dynamos_own_level() -> None:
    assert operators(read("mm", "dynamo_output_graph")) == {"torch.matmul": 1}  # a @ b
    einsum = next(row for row in read("bmm_einsum", "dynamo_output_graph").rows if row[0] == "torch.einsum")
    assert json.loads(einsum[3]) == {"equation": "bik,bkj->bij"}
    block = read("block", "dynamo_output_graph")
    assert operators(block)["torch.linear"] == 4 and "torch.chunk" not in operators(block)


def test_a_checkpointed_subgraph_is_counted_as_often_as_it_is_called() -> None:
    content = read("ckpt", "dynamo_output_graph")
    assert operators(content) == {"torch.linear": 2, "torch.relu": 1}
    assert size(content.writes) == 4 * 160
    assert operators(read("ckpt", "aot_backward_graph"))["addmm"] == 1  # computed again


def test_symbols_stay_symbols() -> None:
    rows = {row[0]: row for row in read("dynamic", "aot_forward_graph").rows}
    assert rows["mm"][1] == (("f32", ("s77", "32")), ("f32", ("32", "64")))
    assert ("f32", ("s77", "32"), 1) in read("dynamic", "aot_forward_graph").writes


GRAPH = """class GraphModule(torch.nn.Module):
    def forward(
        self,
        arg0_1: "f32[512, 512][512, 1]cuda:0",
        arg1_1: "f32[8, 512][0, 1]cuda:0",
        arg2_1: "Sym(s3)",
        arg3_1: "f32[s3, 64][64, 1]cuda:0",
        arg4_1: "i64[s3][1]cuda:0",
        arg5_1: "f32[4][1]cuda:0",
    ):
        slice_1: "f32[8, 512][512, 1]cuda:0" = torch.ops.aten.slice.Tensor(arg0_1, 0, 0, 8);  arg0_1 = None
        mul: "f32[8, 512][512, 1]cuda:0" = torch.ops.aten.mul.Tensor(slice_1, arg1_1);  slice_1 = arg1_1 = None
        index: "f32[s3, 64][64, 1]cuda:0" = torch.ops.aten.index.Tensor(arg3_1, [arg4_1])
        sym_size: "Sym(s3)" = torch.ops.aten.sym_size.int(arg3_1, 0)
        cat: "f32[16, 512][512, 1]cuda:0" = torch.ops.aten.cat.default([mul, mul])
        add: "f32[4][1]cuda:0" = torch.ops.aten.add.Tensor(arg5_1, 1)
        copy_: "f32[4][1]cuda:0" = torch.ops.aten.copy_.default(arg5_1, add);  arg5_1 = add = copy_ = None
        view: "f32[8192][1]cuda:0" = torch.ops.aten.view.default(cat, [8192])
        cond = torch.ops.higher_order.cond(arg2_1, true_graph_0, false_graph_0, (arg3_1,))
        getitem: "f32[3][1]cuda:0" = cond[0]
        return (view, cat, index, getitem, None)
    class true_graph_0(torch.nn.Module):
        def forward(self, arg0_1: "f32[4][1]cuda:0"):
            mm: "f32[2, 2][2, 1]cuda:0" = torch.ops.aten.mm.default(arg0_1, arg0_1)
            return (mm,)
"""


CACHE = """class <lambda>(torch.nn.Module):
    def forward(self, arg0_1: "f32[4096, 512][512, 1]cpu", arg1_1: "i64[2][1]cpu", arg2_1: "f32[2, 512][512, 1]cpu"):
        index_put: "f32[4096, 512][512, 1]cpu" = torch.ops.aten.index_put.default(arg0_1, [arg1_1], arg2_1)
        slice_2: "f32[16, 512][512, 1]cpu" = torch.ops.aten.slice.Tensor(index_put, 0, 0, 16)
        sum_1: "f32[][]cpu" = torch.ops.aten.sum.default(slice_2);  slice_2 = None
        copy_: "f32[4096, 512][512, 1]cpu" = torch.ops.aten.copy_.default(arg0_1, index_put);  arg0_1 = index_put = copy_ = None
        return (sum_1,)
"""


def test_a_cache_that_is_written_in_part_moves_that_part_alone() -> None:
    """Two rows are put into 4096, and 16 of them are read: 8 MiB each way would be no lower bound."""
    content = graph_text.read(CACHE, "aten")
    assert set(content.reads) == {("f32", ("8192",), 1), ("i64", ("2",), 1), ("f32", ("2", "512"), 1)}
    assert set(content.writes) == {("f32", ("1024",), 1), ("f32", (), 1)}
    in_place = CACHE.replace("index_put.default", "index_put_.default")
    in_place = "\n".join(line for line in in_place.split("\n") if "copy_:" not in line)
    assert set(graph_text.read(in_place, "aten").writes) == set(content.writes)
    # where it does not go back to where it is from, all of it is made anew
    other = graph_text.read(CACHE.replace("return (sum_1,)", "return (sum_1, index_put)").replace("copy_", "add"), "aten")
    assert ("f32", ("4096", "512"), 1) in other.reads
    assert ("f32", ("4096", "512"), 1) in other.writes


def test_edges_by_hand() -> None:
    content = graph_text.read(GRAPH, "aten")
    assert ("f32", ("4096",), 1) in content.reads  # of arg0_1 the slice alone
    assert ("f32", ("1", "512"), 1) in content.reads  # expanded: there are 512 elements
    assert ("f32", ("s3", "64"), 1) in content.reads  # gathered from, and then read whole by cond
    assert sorted(content.writes) == sorted(
        [("f32", ("4",), 1), ("f32", ("16", "512"), 1), ("f32", ("s3", "64"), 1), ("f32", ("3",), 1)]
    )
    assert operators(content) == {"mul": 1, "index": 1, "cat": 1, "add": 1, "copy_": 1, "higher_order.cond": 1}
    gathered = graph_text.read(GRAPH.replace(", (arg3_1,)", ""), "aten")
    assert ("f32", ("Min(64*(s3), 64*(s3))",), 1) in gathered.reads


def test_a_graph_of_too_many_different_rows_is_cut() -> None:
    lines = [f'        a{n}: "f32[{n}][1]cpu" = torch.ops.aten.neg.default(x);' for n in range(1, 1600)]
    text = (
        'class G(torch.nn.Module):\n    def forward(self, x: "f32[4][1]cpu"):\n' + "\n".join(lines) + "\n        return (a1,)\n"
    )
    content = graph_text.read(text, "aten")
    assert content.cut and content.rows == () and "1500" in content.why


@pytest.mark.parametrize(
    "text", ["", "\0", "class", "class \n  def forward(", "return", "x = 1", "def forward(self, x", "((((" * 9999]
)
def test_no_graph(text: str) -> None:
    graph_text.read(text, "aten")
    output_code.read(text)


PIECES = st.sampled_from(
    ["class A(B):", "def forward(self,", 'x: "f32[2, s0]', '[1, 2]cpu"', " = ", "torch.ops.aten.mm.default(", "a", ")", "[",
     "]", "(", ";  ", "return", "(x,)", "\n", "{", "'", '"', "#", " @ ", "x[0]", "self.y", "x.z(", ", ", "=", "copy_", ": ",
     "empty_strided_cpu((", "call(", "torch.ops.higher_order.wrap(A, x)", "= args", "1" * 30]
)  # fmt: skip


@settings(max_examples=300, deadline=None)
@given(st.lists(PIECES | st.text(max_size=5), max_size=60).map("".join))
def test_any_text(text: str) -> None:
    for level in ("aten", "torch"):
        content = graph_text.read(text, level)  # type: ignore[arg-type]
        assert all(times > 0 for *_, times in content.rows)
    output_code.read(text)


@settings(max_examples=150, deadline=None)
@given(st.data())
def test_any_text_with_holes(data: st.DataObject) -> None:
    kind, text = data.draw(st.sampled_from([tuple(row) for rows in TEXTS.values() for row in rows if len(row[1]) < 4000]))
    at = data.draw(st.integers(0, len(text)))
    to = data.draw(st.integers(at, min(len(text), at + 300)))
    broken = text[:at] + data.draw(st.text(max_size=3)) + text[to:]
    (output_code.read if kind == "inductor_output_code" else lambda one: graph_text.read(one, "aten"))(broken)


def test_the_kernels_of_inductors_code() -> None:
    forward, backward = (output_code.read(text) for kind, text in TEXTS["dynamic"] if kind == "inductor_output_code")
    assert (forward.direction, backward.direction) == ("forward", "backward")
    assert forward.symbols == (("s77", 16),)
    assert [name for name, _, _ in forward.kernels] == ["extern_kernels.addmm", "cpp_fused_relu_0", "extern_kernels.mm"]
    assert forward.kernels[1][1] == (("f32", ("s77", "32")),)
    assert [name for name, _, _ in backward.kernels][:2] == ["extern_kernels.mm", "extern_kernels.mm"]


def test_a_triton_kernel_is_called_by_its_name() -> None:
    code = """
    def call(self, args):
        arg0_1, = args
        args.clear()
        assert_size_stride(arg0_1, (8, 16), (16, 1))
        with torch.cuda._DeviceGuard(0):
            buf0 = empty_strided_cuda((8, 16), (16, 1), torch.bfloat16)
            triton_poi_fused_relu_0.run(arg0_1, buf0, 128, stream=stream0)
            triton_poi_fused_relu_0.run(arg0_1, buf0, 128, stream=stream0)
        return (buf0, )
def get_args():
    from torch._dynamo.testing import rand_strided
    arg0_1 = rand_strided((8, 16), (16, 1), device='cuda:0', dtype=torch.bfloat16)
    """
    kernels = output_code.read(code).kernels
    assert kernels == (("triton_poi_fused_relu_0", (("bf16", ("8", "16")), ("bf16", ("8", "16"))), 2),)


def test_a_statement_that_changes_a_value_in_place_is_counted() -> None:
    """Dynamo's own graphs have them, with the value's new name behind."""
    text = (
        "class GraphModule(torch.nn.Module):\n"
        '    def forward(self, L_x_: "f32[4, 2][2, 1]cpu"):\n'
        "        l_x_ = L_x_\n"
        '        y: "f32[4, 2][2, 1]cpu" = l_x_ * 2;  l_x_ = None\n'
        '        y += 1;  iadd: "f32[4, 2][2, 1]cpu" = y;  y = None\n'
        "        return (iadd,)\n"
    )
    content = graph_text.read(text, "torch")
    assert [row[0] for row in content.rows] == ["torch.mul", "torch.add_"] and not content.cut
