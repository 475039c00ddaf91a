"""Made up logs as events and as a model: what each version of torch wrote, times, ranks, what is said of what is not there."""

from __future__ import annotations

import gzip
import json
from pathlib import Path
from typing import Any

import pytest

from tests.sources.logs import BREAK, FILE, GRAPH, NAME, WALL, WHOLE, events, head, ids, line, metrics, model, phase, start
from tuimon import events as ev
from tuimon.report import build
from tuimon.sources.files import no_progress, open_any
from tuimon.sources.opened import Stopped
from tuimon.sources.torch_trace.dialects import COUNTED
from tuimon.sources.torch_trace.times import NO_DATE
from tuimon.sources.trace_file import Unreadable


def gaps(of: Any) -> dict[str, str]:
    found: dict[str, str] = of.coverage.not_available
    return found


def only(found: list[ev.Event], kind: type[Any]) -> Any:
    (one,) = [event for event in found if isinstance(event, kind)]
    return one


# ------------------------------------------------------------------------------------------ one compilation


def test_a_whole_log(tmp_path: Path) -> None:
    found = model(tmp_path, WHOLE)
    (compilation,) = found.compilations
    assert (compilation.compile_id, compilation.total_s, compilation.function) == ("0/0", 0.5, "f")
    (frame,) = found.frames.values()
    assert (frame.function, frame.file, frame.line, frame.limit) == ("f", "/w/model.py", 12, 8)
    (region,) = found.regions.values()
    assert (region.compile_id, region.direction, region.ops, region.calls) == ("0/0", "forward", 2, 0)
    target = found.target
    assert (target.how, target.python, target.command) == ("file", "3.12.11", "trace.log")
    assert dict(target.options) == {"suppress_errors": "True"}
    assert target.ended_detail == "read to its end: 5 records"
    assert gaps(found) == {}


def test_its_time_is_that_of_the_calendar(tmp_path: Path) -> None:
    found = model(tmp_path, WHOLE)
    assert found.target.attached_wall_s == pytest.approx(WALL + 36000, abs=0.01)
    report = build(found)
    assert report["compiles"][0]["at"] == pytest.approx(WALL + 36000.5, abs=0.01)


def test_without_a_calendar_the_year_is_that_of_the_file(tmp_path: Path) -> None:
    found = model(tmp_path, FILE + start())
    assert gaps(found)["target.attached_at"] == NO_DATE
    assert found.target.attached_wall_s is not None and found.target.attached_wall_s % 86400 == pytest.approx(36000)


def test_a_log_that_goes_on_past_midnight_and_new_year(tmp_path: Path) -> None:
    late = line({"dynamo_start": {"stack": []}, **ids()}, None, 86399.0, day="1231")
    early = line({"dynamo_start": {"stack": []}, **ids(0, 1)}, None, 1.0, day="0101")
    back = line({"dynamo_start": {"stack": []}, **ids(0, 2)}, None, 86399.5, day="1231")
    found = [event.t_ns for event in events(tmp_path, late + early + back) if isinstance(event, ev.CompileStarted)]
    assert found == [86399 * 10**9, 86401 * 10**9, int(86399.5e9)]


@pytest.mark.parametrize("day", ["0000", "0230", "9999"])
def test_a_day_that_no_calendar_has(tmp_path: Path, day: str) -> None:
    text = FILE + line({"dynamo_start": {"stack": []}, **ids()}, None, day=day) + metrics()
    assert [one.compile_id for one in model(tmp_path, text).compilations] == ["0/0"]
    first = line({"dynamo_start": {"stack": []}, **ids()}, None, day=day)
    assert events(tmp_path, first)


# ------------------------------------------------------------------------------------------ breaks, recompiles, caches


def test_breaks_and_recompiles(tmp_path: Path) -> None:
    broke = line({"artifact": {"name": "dynamo_graph_break_reason", "encoding": "string"}, **ids()}, BREAK)
    why = line({"artifact": {"name": "recompile_reasons", "encoding": "json"}, **ids(0, 1)}, ["0/0: x size mismatch"])
    found = model(
        tmp_path, FILE + start() + broke + GRAPH + metrics() + start(36002, ids(0, 1)) + why + metrics(36003, ids(0, 1))
    )
    (boundary,) = found.boundaries.values()
    assert (boundary.user_file, boundary.user_line, boundary.crossings) == ("/w/model.py", 14, None)
    (recompile,) = found.recompiles
    assert (recompile.compilation.compile_id, recompile.reason) == ("0/1", "x size mismatch")


def test_the_id_of_the_record_counts(tmp_path: Path) -> None:
    stale = metrics(36004, ids(0, 2), compile_id="0/1")
    found = model(tmp_path, WHOLE + metrics(36003, ids(0, 1)) + stale)
    assert [one.compile_id for one in found.compilations] == ["0/0", "0/1", "0/2"]
    assert len(found.frames) == 1
    assert gaps(found)["compile ids"] == "the metrics of 1 compilation bear another id: its record's is shown"


@pytest.mark.parametrize("name", ["fx_graph_cache", "aotautograd_cache"])
def test_caches_of_all_versions(tmp_path: Path, name: str) -> None:
    def look(result: str, payload: Any) -> str:
        return line({"artifact": {"name": f"{name}_{result}", "encoding": "json"}, **ids()}, payload)

    new = look("hit", {"key": "x"}) + look("miss", {}) + look("bypass", {})
    old = look("hash", {"cache_state": "hit"}) + look("hash", {"key": "no result"})
    found = [one.result for one in events(tmp_path, FILE + start() + new + old) if isinstance(one, ev.CacheLooked)]
    assert found == ["hit", "miss", "bypass", "hit"]


# ------------------------------------------------------------------------------------------ versions


def test_the_stack_of_torch_24_ends_in_the_caller(tmp_path: Path) -> None:
    stack = [{"line": 30, "name": "main", "filename": 0}]
    begun = line({"dynamo_start": {"stack": stack}, **ids()})
    text = NAME + begun + GRAPH + metrics()
    found = only(events(tmp_path, text), ev.CompileStarted)
    assert found.stack[0] == ("/w/model.py", 30, "main") and found.function == "?"
    (frame,) = model(tmp_path, text).frames.values()
    assert (frame.function, frame.file, frame.line) == ("f", "/w/model.py", 12)
    stack.append({"line": 1116, "name": "__call__", "filename": 1})  # 2.4.1 on some Pythons
    begun = line({"dynamo_start": {"stack": stack}, **ids()})
    found = only(events(tmp_path, FILE + begun + GRAPH + metrics()), ev.CompileStarted)
    assert found.function == "?" and [name for _, _, name in found.stack] == ["main", "?"]


def test_torch_24(tmp_path: Path) -> None:
    old = {"duration_us": None, "entire_frame_compile_time_s": 0.25, "compile_id": None, "dynamo_config": None}
    old |= {"python_version": None, "restart_reasons": '["step graph break"]', "is_forward": None}
    text = FILE + start() + GRAPH.replace("dynamo_utils", "x") + metrics(36001, ids(attempt=1), **old)
    found = model(tmp_path, text)
    (compilation,) = found.compilations
    assert (compilation.total_s, compilation.restarts) == (0.25, 1)
    assert gaps(found)["boundaries"].startswith("not in this file: its torch wrote no record of graph breaks")
    assert found.target.python is None and found.target.recompile_limit is None


def test_torch_24_tells_of_breaks_and_recompiles_in_its_metrics_alone(tmp_path: Path) -> None:
    failed = {"fail_type": "Unsupported", "fail_reason": "call_method item", "graph_op_count": None}
    failed |= {"fail_user_frame_filename": "/w/model.py", "fail_user_frame_lineno": 14}
    text = FILE + start() + metrics(**failed) + start(36002, ids(1)) + metrics(36003, ids(1))
    found = model(tmp_path, text + start(36004, ids(1, 1)) + metrics(36005, ids(1, 1)))
    (boundary,) = found.boundaries.values()
    assert (boundary.user_file, boundary.user_line, boundary.kind) == ("/w/model.py", 14, "call_method item")
    assert boundary.skipped_frame and not boundary.before_attach
    assert [one.compilation.compile_id for one in found.recompiles] == ["1/1"]
    assert gaps(found)["recompiles.reason"].startswith("not in this file: its torch wrote no record of why")


@pytest.mark.parametrize(("known", "took"), [("phase", 0.75), ("dynamo", 0.2), ("begin", 1.0)])
def test_torch_26_tells_no_duration(tmp_path: Path, known: str, took: float) -> None:
    none = {"duration_us": None, "entire_frame_compile_time_s": None, "start_time": None}
    none["dynamo_cumulative_compile_time_us"] = 200_000 if known == "dynamo" else None
    told = [phase("entire_frame_compile", way, at, **ids()) for way, at in (("B", 36000.1), ("E", 36000.85))]
    text = FILE + start() + GRAPH + ("".join(told) if known == "phase" else "") + metrics(**none)
    (compilation,) = model(tmp_path, text).compilations
    assert compilation.total_s == pytest.approx(took)


def test_newer_torch_tells_its_version(tmp_path: Path) -> None:
    first = line({"artifact": {"name": "torch_version", "encoding": "json"}}, {"pytorch_version": "2.13.0+cpu"})
    assert model(tmp_path, first + WHOLE).target.torch == "2.13.0+cpu"
    assert model(tmp_path, FILE + start() + metrics(pytorch_version="2.14.1")).target.torch == "2.14.1"
    assert model(tmp_path, WHOLE).target.torch is None


def test_devices(tmp_path: Path) -> None:
    key = ["[x] system_info[device]: {'name': 'NVIDIA H100'}"]
    miss = line({"artifact": {"name": "fx_graph_cache_miss", "encoding": "json"}, **ids()}, {"components": key})
    cpu = line({"describe_tensor": {"device": "device(type='cpu')"}, **ids()})
    assert model(tmp_path, WHOLE + miss + cpu).target.devices == ("NVIDIA H100",)
    assert model(tmp_path, WHOLE + cpu).target.devices == ("cpu",)
    assert model(tmp_path, WHOLE).target.devices == ()


def test_a_backward_that_is_compiled_late(tmp_path: Path) -> None:
    back = line({"aot_backward_graph": {}, **ids()}, "class GraphModule(torch.nn.Module):\n    pass")
    code = line({"inductor_output_code": {"filename": "x.py"}, **ids()}, "def call(args):\n    primals_1, = args\n")
    late = phase("entire_backward_compile", "B", 36002, **ids()) + metrics(36003, ids(), "bwd_compilation_metrics")
    forward = line({"aot_forward_graph": {}, **ids()}, "class GraphModule(torch.nn.Module):\n    pass")
    begun = FILE + start() + forward + back + code + metrics()
    assert [one.direction for one in model(tmp_path, begun).regions.values()] == ["forward"]
    found = model(tmp_path, begun + late)
    assert [one.direction for one in found.regions.values()] == ["forward", "backward"]
    assert [one.direction for one in found.compilations] == ["forward", "backward"]
    made = line({"inductor_output_code": {}, **ids()}, "def call(args):\n    primals_1, tangents_1 = args\n", 36002)
    assert [one.direction for one in model(tmp_path, begun + made).regions.values()] == ["forward", "backward"]  # torch 2.4
    now = line({"inductor_output_code": {}, **ids()}, "def call(args):\n    primals_1, tangents_1 = args\n")
    at_once = FILE + start() + forward + back + code + now + metrics()
    for text in (at_once, at_once + late):  # torch 2.6 writes metrics of it all the same
        assert [one.direction for one in model(tmp_path, text).regions.values()] == ["forward", "backward"]
    assert [one.direction for one in model(tmp_path, FILE + late).regions.values()] == ["backward"]


def test_a_frame_that_torch_26_skips_is_no_frame_with_nothing_in_it(tmp_path: Path) -> None:
    broke = line({"artifact": {"name": "dynamo_graph_break_reason", "encoding": "string"}, **ids()}, BREAK)
    none = {"guard_count": None, "graph_op_count": None}
    found = model(tmp_path, FILE + start() + broke + metrics(**none))
    (frame,), (boundary,) = found.frames.values(), found.boundaries.values()
    assert frame.skipped and boundary.skipped_frame and not found.regions
    (frame,) = model(tmp_path, FILE + start() + metrics(**none)).frames.values()
    assert not frame.skipped


def test_a_compilation_that_failed_has_no_region(tmp_path: Path) -> None:
    failed = {"fail_type": "BackendCompilerFailed", "fail_reason": "backend='x' raised:\nwhy", "graph_op_count": None}
    found = model(tmp_path, FILE + start() + GRAPH + metrics(**failed))
    assert found.compilations[0].failed == "BackendCompilerFailed: backend='x' raised" and not found.regions
    (frame,) = found.frames.values()
    assert frame.skipped  # suppress_errors


def test_export_and_what_is_compiled_ahead_of_time(tmp_path: Path) -> None:
    found = model(tmp_path, FILE + line({"expression_created": {}}) + line({"exported_program": {}}, "code"))
    assert found.recorded.missing("compiles").startswith("not in this file: torch.export and symbolic shapes only, ")
    assert model(tmp_path, FILE + start()).recorded.missing("compiles") == ""
    told = gaps(model(tmp_path, FILE + metrics(36001, {})))
    assert told["compile ids"] == "not in this file: 1 compilation ahead of time, outside Dynamo, which gives the ids"


def test_the_order_in_which_graphs_ran(tmp_path: Path) -> None:
    new = {"graph_execution_order": [{"compile_id": "0/1"}, {"compile_id": "0/0"}]}
    one = line({"artifact": {"name": "graph_execution", "encoding": "json"}}, new)
    assert model(tmp_path, WHOLE + one).recorded.executed == ("0/1", "0/0")
    old = "".join(
        line({"artifact": {"name": "inductor_graph_execution", "encoding": "json"}}, {"graph": name}) for name in ("b", "a")
    )
    assert model(tmp_path, WHOLE + old).recorded.executed == ("b", "a")


# ------------------------------------------------------------------------------------------ what is not there


def test_what_no_log_tells_is_said_and_never_zero(tmp_path: Path) -> None:
    broke = line({"artifact": {"name": "dynamo_graph_break_reason", "encoding": "string"}, **ids()}, BREAK)
    found = model(tmp_path, FILE + start() + broke + GRAPH + metrics())
    report = build(found)
    (region,), (boundary,), (frame,) = report["regions"], report["boundaries"], report["frames"]
    untold = dict.fromkeys(("n", "median", "p10", "p90", "total"))
    assert region["calls"] is None and region["steady"] == region["initial"] == region["after_guard_change"] == untold
    assert boundary["crossings"] is None and boundary["host"] == untold
    assert (frame["calls"], frame["compiled_calls"], frame["eager_calls"]) == (None, None, None)
    whys = {row["what"]: row["why"] for row in report["coverage"]["not_available"]}
    for what in ("regions.calls", "regions.steady", "boundaries.crossings", "frames.calls", "steps.source", "gpu", "host"):
        assert whys[what] == "not in this file: a TORCH_TRACE log tells what was compiled, not what ran"
    assert all(one.counted == COUNTED for one in events(tmp_path, WHOLE) if isinstance(one, ev.InstrumentAdded))


def test_a_log_that_is_cut_off(tmp_path: Path) -> None:
    text = WHOLE + start(36002, ids(1, 0)) + line({"aot_forward_graph": {}, **ids(1, 0)}, "class A:\n    x\n    y")
    found = model(tmp_path, text[:-5])
    assert gaps(found)["the end of the log"] == "the log ends while 1 compilation went on: [1/0]"
    assert gaps(found)["the whole file"].startswith("the text behind 1 of 7 records could not be read (line ")
    packed = gzip.compress(text.encode() * 50)
    assert "ends in the middle" in gaps(model(tmp_path, packed[:-20]))["the whole file"]


def test_broken_records_are_counted(tmp_path: Path) -> None:
    broken = f'{head()} {{"dynamo_start": \n' + line({"dynamo_start": [], **ids(3)}) + line({"str": 5})
    missing = f'{head()} {{"artifact": {{"name": "recompile_reasons"}}, "frame_id": 0, "has_payload": "x"}}\n'
    found = model(tmp_path, FILE + broken + missing + start() + GRAPH + metrics())
    assert len(found.compilations) == 1
    told = gaps(found)["the whole file"]
    assert told == "3 of 9 records could not be read; the text behind 1 of 9 records could not be read (lines 3, 4, 5, 6)"


def test_bytes_that_are_no_text(tmp_path: Path) -> None:
    found = model(tmp_path, WHOLE.replace("model.py", "m\udcff.py").encode("utf-8", "surrogateescape"))
    assert [one.compile_id for one in found.compilations] == ["0/0"]


# ------------------------------------------------------------------------------------------ ranks, folders


@pytest.mark.parametrize(
    ("name", "told", "rank", "why"),
    [
        ("dedicated_log_torch_trace_rank_3_x7.log", {}, 3, ""),
        ("rank-12.log", {"rank": 12}, 12, ""),
        ("log.txt", {"rank": 5}, 5, ""),
        ("x_rank_5.log", {"rank": 1}, 5, "the file's name says 5, its records say 1"),
        ("log.txt", {}, None, ""),
    ],
)
def test_the_rank(tmp_path: Path, name: str, told: dict[str, int], rank: int | None, why: str) -> None:
    found = model(tmp_path, WHOLE + line({"describe_storage": {}, **told}), name)
    assert found.target.rank == rank and gaps(found).get("target.rank", "") == why


def test_several_ranks_in_one_file(tmp_path: Path) -> None:
    path = tmp_path / "all.log"
    path.write_text("".join(WHOLE.replace("V1130", f"[rank{rank}]:V1130") for rank in range(3)))
    found, _ = open_any(path)
    assert [(one.label, one.rank) for one in found] == [("rank 0", 0), ("rank 1", 1), ("rank 2", 2)]
    for one in found:
        told = [event for batch in one.events(no_progress) for event in batch]
        assert only(told, ev.CompileFinished).compile_id == "0/0"
        assert all(event.rank == one.rank for event in told if isinstance(event, ev.TargetSeen))


def test_a_folder_of_ranks(tmp_path: Path) -> None:
    for rank in (1, 0):
        (tmp_path / f"trace_rank_{rank}.log").write_text(WHOLE)
    (tmp_path / "empty.log").touch()
    (tmp_path / "index.html").write_text("<html></html>")
    found, left = open_any(tmp_path)
    assert [one.label for one in found] == ["rank 0", "rank 1"]
    assert left[0] == "1 file is empty and was left out" and "index.html" in left[1]


def test_reading_tells_how_far_it_is_and_can_be_stopped(tmp_path: Path) -> None:
    path = tmp_path / "long.log"
    path.write_text(WHOLE + line({"describe_storage": {}}) * 30_000)
    told: list[tuple[int, int]] = []
    (opened,), _ = open_any(path)
    assert sum(len(batch) for batch in opened.events(lambda read, of: told.append((read, of)))) > 5
    assert told and told == sorted(told) and told[-1][0] <= told[-1][1] == path.stat().st_size

    def stop(_read: int, _of: int) -> None:
        raise Stopped

    with pytest.raises(Stopped):
        list(opened.events(stop))


def test_a_log_whose_records_are_all_broken(tmp_path: Path) -> None:
    path = tmp_path / "x.log"
    path.write_text(f"{head()} {{broken\n" * 3)
    (opened,), _ = open_any(path)
    with pytest.raises(Unreadable, match="holds no record that can be read"):
        next(iter(opened.events(no_progress)))


def test_what_torch_logs_prints_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "x.log"
    path.write_text(f"{head()} [0/0] [__graph_breaks] Graph break\n" + json.dumps({}))
    with pytest.raises(Unreadable, match="is what TORCH_LOGS prints; TORCH_TRACE=DIR"):
        open_any(path)
