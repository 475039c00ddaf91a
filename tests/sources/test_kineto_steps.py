"""What a trace tells of steps, regions, waits, lookups and gaps; made up ones, and real ones."""

from __future__ import annotations

import gzip
import json
from pathlib import Path
from typing import Any

import pytest

from tests.sources.reading import events_of
from tests.sources.test_kineto import REAL, kernel, launch, op, read, real
from tuimon import events as ev
from tuimon.model import Model
from tuimon.model.steps.parts import CATEGORIES
from tuimon.sources.carried import checked
from tuimon.sources.files import no_progress, open_any
from tuimon.sources.kineto_calls import COUNTED_STEPS
from tuimon.sources.trace_file import Unreadable

RESNET = "kineto/tb_plugin/samples/resnet50_num_workers_"


def step(n: int, ts: float, dur: float, **more: Any) -> dict[str, Any]:
    return op(f"ProfilerStep#{n}", ts, dur, cat="user_annotation", **more)


def region(name: str, ts: float, dur: float, **more: Any) -> dict[str, Any]:
    return op(f"Torch-Compiled Region: {name}", ts, dur, **more)


def call(ts: float, dur: float, number: int | None = None, **more: Any) -> dict[str, Any]:
    args = {} if number is None else {"Sequence number": number}
    return op("CompiledFunction", ts, dur, **more, **args)


def lookup(ts: float, dur: float = 2, **more: Any) -> dict[str, Any]:
    return op("TorchDynamo Cache Lookup", ts, dur, **more)


def model_of(path: Path) -> Model:
    model = Model()
    for event in events_of(path):
        model.apply([checked(event)])
    return model


def folded(tmp_path: Path, *events: dict[str, Any], **header: Any) -> Model:
    path = tmp_path / "trace.json"
    path.write_text(json.dumps({**header, "traceEvents": list(events)}))
    return model_of(path)


def parts(model: Model) -> list[dict[str, float]]:
    """Of each step, us by category, without those that are zero."""
    return [{name: ns / 1e3 for name, ns in zip(CATEGORIES, one.parts, strict=True) if ns} for one in model.steps.accounts]


# a step with a graph break: region 1/0 runs within the frame of 0/0, behind the call of its graph
BROKEN = [
    lookup(100),
    region("0/0", 110, 400),
    call(120, 80, 1),
    op("aten::item", 220, 10),
    lookup(290),
    region("1/0", 300, 200),
    call(310, 90, 2),
]


def test_a_region_ends_with_its_graphs_call_and_not_with_its_frame(tmp_path: Path) -> None:
    trace = read(tmp_path, *BROKEN)
    assert trace.seen.regions == (("0/0", 1, 90_000), ("1/0", 1, 100_000))
    assert trace.spans.gaps == (("0/0", "1/0", 1, 100_000, None, 0),)
    assert trace.spans.lookups == (("0/0", 1, 2_000), ("1/0", 1, 2_000))
    assert trace.spans.spans == (("sync", "aten::item", None, 1, 10_000, 10_000, 10_000),), "it lies in the gap"


def test_without_its_graphs_call_a_region_ends_where_the_code_behind_the_break_is_looked_up(tmp_path: Path) -> None:
    trace = read(tmp_path, *[one for one in BROKEN if one["name"] != "CompiledFunction"])
    assert trace.seen.regions == (("0/0", 1, 180_000), ("1/0", 1, 200_000))


def test_several_graphs_of_one_region_are_one_call(tmp_path: Path) -> None:
    trace = read(tmp_path, region("0/0", 0, 100), call(10, 20, 1), call(50, 30, 2))
    assert trace.seen.regions == (("0/0", 1, 80_000),)


def test_steps_are_the_profilers_own(tmp_path: Path) -> None:
    events = []
    for n in range(4):
        at = n * 1000.0
        events += [
            step(7 + n, at, 990),
            op("enumerate(DataLoader)#_SingleProcessDataLoaderIter.__next__", at + 10, 300, cat="user_annotation"),
            region("0/0", at + 320, 100),
            op("nccl:all_reduce", at + 500, 50, cat="user_annotation"),
            op("record_param_comms", at + 510, 30),
            op("Optimizer.step#SGD.step", at + 600, 200, cat="user_annotation"),
        ]
    model = folded(tmp_path, *events)
    assert (model.steps.source, model.steps.how, model.steps.n) == ("marked", COUNTED_STEPS, 4)
    assert model.steps.durations.summary.median == pytest.approx(990e-6)
    of_one = {"forward regions": 100, "optimizer": 200, "data wait": 300, "communication": 50, "other python": 340}
    assert parts(model) == [of_one] * 4
    assert model.target.options == (("profiler_steps", "7..10"),)
    (found,) = model.regions.values()
    assert found.calls == 4 and found.steady.n == 4 and found.initial.n == 0, "no call in a trace is the first of the job"
    assert not any("anew" in line.text for line in model.log)


def test_what_a_recompile_made_is_no_steady_call(tmp_path: Path) -> None:
    model = folded(tmp_path, region("0/0", 0, 10), region("0/1", 20, 10), region("0/0_1", 40, 10))
    found = {one.compile_id: (one.steady.n, one.after_guard_change.n) for one in model.regions.values()}
    assert found == {"0/0": (1, 0), "0/1": (0, 1), "0/0_1": (1, 0)}


def test_the_optimizer_tells_steps_where_the_profiler_does_not(tmp_path: Path) -> None:
    events = [op("Optimizer.step#Adam.step", n * 100.0, 20, cat="user_annotation") for n in range(5)]
    model = folded(tmp_path, *events)
    assert model.steps.source == "optimizer" and model.steps.durations.summary.median == pytest.approx(100e-6)
    assert "steps" not in model.recorded.absent


def test_a_backward_that_the_engines_thread_ran_is_the_waiting_threads(tmp_path: Path) -> None:
    events = [
        step(1, 0, 1000),
        region("0/0", 10, 100),
        call(20, 80, 5),
        op("CompiledFunctionBackward", 200, 300, tid=9, **{"Sequence number": 5}),
        op("aten::mul", 600, 10),
    ]
    model = folded(tmp_path, *events)
    assert parts(model) == [{"forward regions": 90, "backward regions": 300, "other python": 610}]
    assert [(one[0], one[1]) for one in model.recorded.spans[0].gaps] == [("0/0", "0/0<")]
    beside = folded(tmp_path, *events, op("aten::add", 300, 10))
    assert parts(beside) == [{"forward regions": 90, "other python": 910}], "the thread of the steps did something else"


def test_the_devices_gap_is_without_kernels_of_any_stream(tmp_path: Path) -> None:
    events = [
        *BROKEN,
        launch(130, 1),
        launch(140, 2),
        launch(230, 3),
        launch(320, 4),
        kernel("a", 150, 30, 1),
        kernel("b", 180, 20, 2),
        kernel("between", 240, 15, 3),
        kernel("c", 330, 10, 4),
        op("cudaStreamSynchronize", 225, 5, cat="cuda_runtime", correlation=90),
    ]
    trace = read(tmp_path, *events)
    # the last kernel of 0/0 ends at 200, the first of 1/0 begins at 330; 15 of the 130 are another's
    assert trace.spans.gaps == (("0/0", "1/0", 1, 100_000, 115_000, 1),)
    assert {(one[1], one[2], one[3]) for one in trace.spans.spans} == {
        ("aten::item", None, 1),
        ("cudaStreamSynchronize", None, 1),
    }
    assert {row[4] for row in trace.seen.rows} == {"0/0", "1/0", None}, "a kernel of the eager stretch is no region's"
    assert [(n, ns) for n, _, ns in trace.device_rows] == [(1, 50_000), (2, 10_000)]


def test_a_region_without_kernels_leaves_the_devices_gap_unknown(tmp_path: Path) -> None:
    trace = read(tmp_path, *BROKEN, launch(130, 1), kernel("a", 150, 30, 1))
    assert trace.spans.gaps[0][4] is None


def test_there_is_no_gap_from_one_step_to_the_next(tmp_path: Path) -> None:
    events = [step(1, 0, 100), region("0/0", 10, 20), region("1/0", 50, 20), step(2, 100, 100), region("0/0", 110, 20)]
    trace = read(tmp_path, *events)
    assert [one[:3] for one in trace.spans.gaps] == [("0/0", "1/0", 1)]


def test_waits_of_the_profiler_itself_are_left_out(tmp_path: Path) -> None:
    events = [
        step(1, 0, 100),
        op("aten::mm", 5, 10, dims=[[2, 2], [2, 2]]),
        op("cudaDeviceSynchronize", 50, 7, cat="cuda_runtime"),
        op("cudaDeviceSynchronize", 150, 9, cat="cuda_runtime"),
        op("cudaStreamWaitEvent", 60, 3, cat="cuda_runtime"),
        op("hipMemcpy", 70, 4, cat="cuda_runtime"),
        op("cudaMemcpyAsync", 80, 4, cat="cuda_runtime"),
    ]
    found = {one[1]: one[3:5] for one in read(tmp_path, *events).spans.spans}
    assert found == {"cudaDeviceSynchronize": (1, 7_000), "hipMemcpy": (1, 4_000)}


def test_a_value_is_counted_once_however_deep(tmp_path: Path) -> None:
    inner = [op("aten::item", 0, 0), op("aten::_local_scalar_dense", 0, 0), op("aten::_local_scalar_dense", 50, 5)]
    found = {one[1]: one[3] for one in read(tmp_path, *inner, op("aten::mm", 90, 1)).spans.spans}
    assert found == {"aten::item": 1, "aten::_local_scalar_dense": 1}


def test_a_folder_of_ranks(tmp_path: Path) -> None:
    for rank, name in ((1, "a.json"), (0, "b.json.gz")):
        text = json.dumps(
            {"distributedInfo": {"rank": rank, "world_size": 2}, "baseTimeNanoseconds": 1_751_410_836_000_000_000 + rank,
             "traceEvents": [step(1, 0, 100), op("aten::mm", 5, 10, dims=[[2, 2], [2, 2]])]}
        )  # fmt: skip
        (tmp_path / name).write_bytes(gzip.compress(text.encode()) if name.endswith("gz") else text.encode())
    (tmp_path / "rank-7.trace.json").write_text(json.dumps({"traceEvents": [step(1, 0, 100), op("aten::mm", 5, 10)]}))
    (tmp_path / "notes.json").write_text('{"schema": "tuimon.report/1"}')
    (tmp_path / "empty").touch()
    members, left = open_any(tmp_path)
    assert [(one.label, one.rank, one.path.name) for one in members] == [
        ("rank 0", 0, "b.json.gz"), ("rank 1", 1, "a.json"), ("rank 7", 7, "rank-7.trace.json"),
    ]  # fmt: skip
    assert sorted(left) == [
        "1 file is empty and was left out",
        "left out: notes.json, which is a report that tuimon wrote, not a trace",
    ]
    begins = [next(one.events(no_progress))[0].t_ns for one in members]
    assert begins[1] == begins[0] + 1, "one clock for all that tell theirs"


def test_files_of_one_rank_go_by_their_names(tmp_path: Path) -> None:
    for name in ("x.json", "y.json"):
        (tmp_path / name).write_text(
            json.dumps({"distributedInfo": {"rank": 3}, "traceEvents": [op("aten::mm", 5, 10, dims=[[2, 2], [2, 2]])]})
        )
    members, left = open_any(tmp_path)
    assert [(one.label, one.rank) for one in members] == [("x.json", None), ("y.json", None)]
    assert left == ["2 files tell that they are rank 3: they are told apart by their names"]


def test_reading_can_be_watched_and_given_up(tmp_path: Path) -> None:
    path = tmp_path / "t.json"
    path.write_text(json.dumps({"traceEvents": [op("aten::mm", n, 1, dims=[[2, 2], [2, 2]]) for n in range(30_000)]}))
    told: list[tuple[int, int]] = []
    (opened,), _ = open_any(path)
    list(opened.events(lambda read, of: told.append((read, of))))
    assert told == sorted(told) and told[-1] == (path.stat().st_size,) * 2 and len(told) > 2

    class Enough(Exception):
        pass

    def stop(_read: int, _of: int) -> None:
        raise Enough

    with pytest.raises(Enough):
        list(opened.events(stop))


@real
@pytest.mark.parametrize(
    ("folder", "steps_ms", "loader_ms"), [("0/worker0.1623143089861", 176.3, 70.8), ("4/worker0.1623212756351", 126.6, 1.4)]
)
def test_a_starved_job_and_a_fed_one(folder: str, steps_ms: float, loader_ms: float) -> None:
    assert REAL is not None
    model = model_of(REAL / f"{RESNET}{folder}.pt.trace.json.gz")
    steps = model.steps
    assert (steps.source, steps.n) == ("marked", 6) and ("profiler_steps", "5..10") in model.target.options
    assert steps.durations.summary.median == pytest.approx(steps_ms / 1e3, abs=1e-3)
    loaded = sorted(one.get("data wait", 0.0) for one in parts(model))
    assert loaded[3] == pytest.approx(loader_ms * 1e3, abs=200)
    assert sum(one[3] for one in model.recorded.spans[0].spans if one[1] == "cudaStreamSynchronize") == 12


@real
def test_real_regions_lookups_and_waits() -> None:
    assert REAL is not None
    triton = model_of(REAL / "HolisticTraceAnalysis/tests/data/triton_example/triton_example.json.gz")
    (region_,) = triton.regions.values()
    assert (region_.compile_id, region_.calls, region_.device.n) == ("0/0", 1, 1)
    assert region_.steady.summary.median == pytest.approx(1353e-6, rel=0.001)
    assert triton.recorded.spans[0].lookups == (("0/0", 1, 35_591),)
    compiled = model_of(REAL / "TraceLens/tests/traces/torch_compile_triton/trace.json.gz")
    assert compiled.recorded.spans[0].lookups == (("0/0", 1, 22_534),)
    assert compiled.steps.n == 0 and compiled.steps.source is None
    items = model_of(REAL / "HolisticTraceAnalysis/tests/data/negative_queue_length_values_check/rank0.json.gz")
    assert {one[1]: one[3] for one in items.recorded.spans[0].spans} == {"cudaStreamSynchronize": 75, "aten::item": 945}
    assert items.steps.n == 5


@real
def test_a_memory_timeline_is_named() -> None:
    assert REAL is not None
    with pytest.raises(Unreadable, match="is a memory timeline of torch"):
        events_of(REAL / "HolisticTraceAnalysis/tests/data/memory_analysis/memory_timeline.raw.gz")


def test_what_a_trace_does_not_tell(tmp_path: Path) -> None:
    model = folded(tmp_path, op("aten::mm", 5, 10, dims=[[2, 2], [2, 2]]))
    assert {"steps", "compiles", "crossings", "graphs", "gpu", "host"} <= set(model.recorded.absent)
    assert "ProfilerStep#n" in model.recorded.missing("steps")
    assert isinstance(events_of(tmp_path / "trace.json")[-1], ev.TargetEnded)
