"""Traces of PyTorch's profiler: kernels and their operators, regions, a CPU's own times; made up ones and real ones."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from tests.sources.reading import events_of
from tuimon import events as ev
from tuimon.model import Model
from tuimon.sources import kineto
from tuimon.sources.carried import checked
from tuimon.sources.inbox import weight
from tuimon.sources.live import MOST_ROWS_WEIGHT
from tuimon.sources.trace_file import Unreadable

REAL = next(
    (one / "files" for one in (Path(__file__).parents[3] / "shared", Path("/work/shared")) if (one / "files").is_dir()), None
)
LENS = "TraceLens/tests/traces"
real = pytest.mark.skipif(REAL is None, reason="the folder of real traces is not there")


def op(name: str, ts: float, dur: float, *, tid: Any = 1, cat: str = "cpu_op", dims: Any = None, types: Any = None,
       concrete: Any = None, **args: Any) -> dict[str, Any]:  # fmt: skip
    if dims is not None:
        args["Input Dims"], args["Input type"] = dims, types or ["float"] * len(dims)
        args["Concrete Inputs"] = concrete or [""] * len(dims)
    return {"ph": "X", "cat": cat, "name": name, "pid": 1, "tid": tid, "ts": ts, "dur": dur, "args": args}


def launch(
    ts: float, correlation: int, name: str = "cudaLaunchKernel", tid: Any = 1, cat: str = "cuda_runtime"
) -> dict[str, Any]:
    return op(name, ts, 1.0, tid=tid, cat=cat, correlation=correlation)


def kernel(name: str, ts: float, dur: float, correlation: int, device: int = 0, cat: str = "kernel") -> dict[str, Any]:
    return op(name, ts, dur, tid=7, cat=cat, correlation=correlation, device=device, stream=7)


def read(tmp_path: Path, *events: dict[str, Any], **header: Any) -> kineto.Trace:
    path = tmp_path / "trace.json"
    path.write_text(json.dumps({**header, "traceEvents": list(events)}))
    return kineto.read(path)


MM = {"dims": [[4, 8], [8, 2]]}


def test_a_kernel_belongs_to_the_innermost_operator(tmp_path: Path) -> None:
    trace = read(
        tmp_path,
        op("aten::matmul", 0, 100, dims=[[4, 8], [8, 2]]),
        op("aten::mm", 10, 50, **MM),
        launch(20, 1),
        kernel("gemm", 200, 30, 1),
        kernel("alone", 240, 10, 99),
    )
    rows = {row[0]: row for row in trace.seen.rows}
    assert rows["gemm"][1:] == ("aten::mm", (("float", (4, 8)), ("float", (8, 2))), "", None, 0, 1, 30_000, 30_000, 30_000)
    assert rows["alone"][1] == "" and rows["alone"][2] == ()
    assert trace.seen.linked == 0.75
    assert trace.seen.busy == ((0, 40_000),)


STEPS = [
    event
    for n in range(4)
    for at in [n * 1000.0]
    for event in (op("aten::mm", at, 100, **MM), launch(at + 10, n), kernel("gemm", at + 960, 200, n))
]
"""Four steps of 1 ms: in each a product, the kernel of which runs into the next step."""


@pytest.mark.parametrize("base", [0, 1_700_000_000_000_000_000])
def test_a_trace_is_cut_to_whole_steps_a_kernel_by_its_launch(tmp_path: Path, base: int) -> None:
    path = tmp_path / "trace.json"
    path.write_text(json.dumps({"traceEvents": STEPS, "baseTimeNanoseconds": base}))
    trace = kineto.read(path, span=(base + 1_000_000, base + 3_000_000))
    (row,) = trace.seen.rows
    assert trace.cut and row[:2] == ("gemm", "aten::mm") and row[6:8] == (2, 400_000)
    assert trace.seen.begin_ns == 1_000_000 and trace.seen.busy == ((0, 400_000),)
    elsewhere = kineto.read(path, span=(base + 9_000_000, base + 9_500_000))
    assert not elsewhere.cut and elsewhere.seen.rows[0][6] == 4, "another clock than it says: nothing is left out"


def test_a_backward_in_the_steps_keeps_the_region_of_a_forward_before_them(tmp_path: Path) -> None:
    path = tmp_path / "trace.json"
    region = {"name": "Torch-Compiled Region: 3/0", "ts": 0, "dur": 50}
    other = {"name": "Torch-Compiled Region: 4/0", "ts": 60, "dur": 30}
    events = [
        op(**region),
        op("CompiledFunction", 10, 20, **{"Sequence number": 7}),
        op(**other),
        op("CompiledFunction", 70, 10, **{"Sequence number": 8}),
        op("CompiledFunctionBackward", 200, 50, tid=2, **{"Sequence number": 7}),
        op("aten::mm", 210, 30, tid=2, **MM),
    ]
    path.write_text(json.dumps({"traceEvents": events}))
    trace = kineto.read(path, span=(100_000, 300_000))
    assert trace.cut and trace.seen.regions == (("3/0<", 1, 50_000),)
    assert [(row[1], row[4]) for row in trace.seen.rows] == [("aten::mm", "3/0<")]


def test_a_call_with_several_kernels_is_one(tmp_path: Path) -> None:
    events = []
    for n in range(3):
        at = n * 1000.0
        events += [
            op("aten::addmm", at, 100, dims=[[2], [4, 8], [8, 2]]),
            launch(at + 10, 2 * n + 1),
            launch(at + 20, 2 * n + 2),
        ]
        events += [kernel("splitk", at + 300, 30 + n, 2 * n + 1), kernel("reduce", at + 340, 5, 2 * n + 2)]
    (row,) = read(tmp_path, *events).seen.rows
    assert row[0] == "splitk" and row[6:] == (3, 108_000, 35_000, 37_000)


def test_overlapping_kernels_are_busy_once(tmp_path: Path) -> None:
    trace = read(tmp_path, kernel("a", 0, 10, 1), kernel("b", 5, 10, 2), kernel("c", 100, 1, 3), kernel("d", 0, 7, 4, device=1))
    assert trace.seen.busy == ((0, 16_000), (1, 7_000))


def test_graph_launches_have_no_operator(tmp_path: Path) -> None:
    trace = read(
        tmp_path,
        op("Torch-Compiled Region: 1/0", 0, 100),
        op("aten::something", 1, 90),
        launch(10, 5, "cudaGraphLaunch"),
        kernel("k", 50, 10, 5),
        kernel("l", 70, 10, 5),
    )
    assert [row[:2] for row in trace.seen.rows] == [("k", ""), ("l", "")]
    assert {row[4] for row in trace.seen.rows} == {"1/0"} and trace.from_graphs == 1.0 and trace.seen.linked == 0.0


def test_regions_forward_and_backward(tmp_path: Path) -> None:
    sequence = {"Sequence number": 7}
    trace = read(
        tmp_path,
        op("Torch-Compiled Region: 0/1", 0, 50),
        op("CompiledFunction", 2, 40, **sequence),
        op("aten::mm", 5, 10, **MM),
        op("Torch-Compiled Region: 3/0", 60, 20),
        op("CompiledFunction", 61, 10, **{"Sequence number": 8}),
        op("CompiledFunctionBackward", 100, 30, tid=2, **sequence),
        op("aten::mm", 105, 20, tid=2, **MM),
        op("aten::mm", 200, 20, **MM),
    )
    assert trace.seen.regions == (("0/1", 1, 42_000), ("0/1<", 1, 30_000), ("3/0", 1, 11_000)), "up to the graph's return"
    assert {(row[4], row[7]) for row in trace.seen.rows} == {("0/1", 10_000), ("0/1<", 20_000), (None, 20_000)}


def test_a_backward_whose_forward_is_not_in_the_file(tmp_path: Path) -> None:
    backward = op("CompiledFunctionBackward", 100, 30, **{"Sequence number": 1})
    alone = read(tmp_path, backward, op("aten::mm", 105, 20, **MM))
    assert alone.seen.regions == () and alone.seen.rows[0][4] is None


def test_on_a_cpu_each_moment_stands_once(tmp_path: Path) -> None:
    trace = read(
        tmp_path,
        op("aten::linear", 0, 100, dims=[[4, 8], [2, 8], [2]]),
        op("aten::t", 2, 6, dims=[[2, 8]]),
        op("aten::addmm", 10, 80, dims=[[2], [4, 8], [8, 2]]),
        op("aten::copy_", 12, 60, dims=[[4, 2], [4, 2]]),
        op("aten::sum", 200, 50, dims=[[4, 2]]),
        op("aten::fill_", 201, 4, dims=[[4]]),
        op("MyFunction", 300, 100),
        op("aten::relu", 310, 20, dims=[[4]]),
    )
    times = {row[1]: row[7] for row in trace.seen.rows}
    # addmm counts whole, with linear's own time in it; sum with its fill_; of MyFunction only what it calls
    assert times == {"aten::addmm": 94_000, "aten::t": 6_000, "aten::sum": 50_000, "aten::relu": 20_000}
    assert trace.seen.device == "" and trace.seen.linked == 1.0 and trace.seen.rows[0][0] == ""


def test_arguments_that_count_come_with_the_operator(tmp_path: Path) -> None:
    q = [2, 4, 64, 32]
    trace = read(
        tmp_path,
        op("aten::_scaled_dot_product_flash_attention", 0, 10, dims=[q, q, q, [], [], [], []],
           types=["c10::BFloat16"] * 3 + ["Scalar"] * 3 + [""], concrete=["", "", "", "0.", "True", "False", ""]),
        op("aten::cat", 20, 10, dims=[[[4, 2], [4, 3]], []], types=["TensorList", "Scalar"], concrete=["", "1"]),
        op("aten::convolution", 40, 10, dims=[[1, 8, 4], [8, 8, 3]], types=["float", "float"]),
    )  # fmt: skip
    rows = {row[1]: row for row in trace.seen.rows}
    assert json.loads(rows["aten::_scaled_dot_product_flash_attention"][3]) == {"dropout_p": 0.0, "is_causal": True}
    assert rows["aten::cat"][2] == (("TensorList", (4, 2)), ("TensorList", (4, 3)))
    old = op("aten::convolution", 0, 10)
    old["args"]["Input dims"] = [[1, 8, 4], [8, 8, 3]]
    (row,) = read(tmp_path, old).seen.rows
    assert json.loads(row[3]) == {"known": False} and row[2] == (("", (1, 8, 4)), ("", (8, 8, 3)))


def test_the_old_schema(tmp_path: Path) -> None:
    events = [
        op("aten::mm", 0, 100, tid="25", cat="Operator", **MM),
        launch(10, 3, tid="25", cat="Runtime"),
        kernel("volta_sgemm", 20, 10, 3, cat="Kernel"),
    ]
    trace = read(tmp_path, *events)
    assert trace.seen.rows[0][:2] == ("volta_sgemm", "aten::mm") and trace.seen.device == ""
    told = events_of(tmp_path / "trace.json")
    assert isinstance(told[0], ev.TargetSeen) and told[0].devices == ()
    assert "device" in [one.what for one in told if isinstance(one, ev.NotAvailable)]


def test_many_rows_are_added_up(tmp_path: Path) -> None:
    events = [kernel(f"k{n}", n * 10.0, 1 + (n < 5), 100 + n) for n in range(1000)]
    seen = read(tmp_path, *events).seen
    assert len(seen.rows) == kineto.MOST_ROWS and seen.rows[-1][0] == kineto.OTHERS
    assert sum(row[6] for row in seen.rows) == 1000 and sum(row[7] for row in seen.rows) == 1005_000


def test_operands_without_number_are_left_out_whole(tmp_path: Path) -> None:
    many = [[8, 8]] * 300
    adam = op("aten::_fused_adam_", 0, 90, dims=[many, many, []], types=["TensorList", "TensorList", "Scalar"])
    huge = op("aten::_foreach_add_", 100, 80, dims=[[[4]] * 3000, []], types=["TensorList", "Scalar"])
    rows = {row[1]: row for row in read(tmp_path, adam, huge).seen.rows}
    assert len(rows["aten::_fused_adam_"][2]) == 600 and json.loads(rows["aten::_fused_adam_"][3])["lists"] == [300, 300]
    assert rows["aten::_foreach_add_"][2:4] == ((), '{"known": false}')
    lists = [op(f"aten::cat{n}", n * 10, 9 - n * 0.01, dims=[many], types=["TensorList"]) for n in range(40)]
    seen = read(tmp_path, *lists).seen
    assert weight(checked(seen)) < MOST_ROWS_WEIGHT and sum(len(row[2]) for row in seen.rows) == 6000


def test_the_device_and_the_rank(tmp_path: Path) -> None:
    devices = [
        {"id": 0, "name": "one", "totalGlobalMem": 2**34},
        {"id": 3, "name": "other", "computeMajor": 9, "computeMinor": 0},
    ]
    trace = read(
        tmp_path, kernel("k", 5e9, 1, 1, device=3), deviceProperties=devices, baseTimeNanoseconds=1751410836000000000,
        distributedInfo={"rank": 2, "world_size": 8},
    )  # fmt: skip
    assert trace.seen.device == "other" and (trace.rank, trace.world_size) == (2, 8)
    assert trace.wall_s == pytest.approx(1751410836 + 5000)
    seen = events_of(tmp_path / "trace.json")[0]
    assert isinstance(seen, ev.TargetSeen) and ("device_compute_capability", "9.0") in seen.options


def test_a_list_of_events_is_a_trace_too(tmp_path: Path) -> None:
    path = tmp_path / "t"
    path.write_text(json.dumps([op("aten::mm", 0, 10, **MM)]))
    assert kineto.read(path).seen.rows


def real_traces() -> list[Path]:
    if REAL is None:
        return []
    return sorted(path for path in REAL.rglob("*.json*") if path.is_file())


@real
@pytest.mark.parametrize(
    ("path", "device", "linked", "operator", "kernels"),
    [
        (f"{LENS}/h100/Qwen_Qwen1.5-0.5B-Chat__1016005.json.gz", "NVIDIA H100 80GB HBM3", 0.69, "aten::mm", True),
        ("TraceLens/tests/traces/h100/facebook_timesformer-base-finetuned-k400__1016002.json.gz", "NVIDIA H100 80GB HBM3", 0.99,
         "aten::_softmax", True),
        (f"{LENS}/mi300/Qwen_Qwen1.5-0.5B-Chat__1016005.json.gz", "AMD Instinct MI300X VF", 0.68, "aten::mm", True),
        ("HolisticTraceAnalysis/tests/data/negative_queue_length_values_check/rank0.json.gz", None, 0.5, None, True),
    ],
)  # fmt: skip
def test_real_traces(path: str, device: str | None, linked: float, operator: str | None, kernels: bool) -> None:
    assert REAL is not None
    trace = kineto.read(REAL / path)
    assert (device is None or trace.seen.device == device) and trace.seen.linked >= linked and not trace.note
    assert any(row[0] for row in trace.seen.rows) == kernels
    assert operator is None or trace.seen.rows[0][1] == operator
    assert weight(checked(trace.seen)) < MOST_ROWS_WEIGHT


@real
def test_every_small_real_file_opens_or_is_refused_with_a_sentence() -> None:
    opened = 0
    for path in real_traces():
        if path.stat().st_size > 150_000:
            continue
        try:
            found = events_of(path)
        except Unreadable as error:
            assert str(error).startswith("is "), (path, str(error))
            continue
        opened += 1
        model = Model()
        model.apply(checked(event) for event in found)
        assert model.kernels[0].rows
    assert opened >= 10
