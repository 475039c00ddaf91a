"""What each message of the hook means: the words of the protocol one by one."""

from __future__ import annotations

from typing import Any

import pytest

from tuimon import events as ev
from tuimon.hook import wire
from tuimon.sources.live import LiveDecoder

T = 5_000_000_000


def told(message: dict[str, Any], decoder: LiveDecoder | None = None) -> list[ev.Event]:
    return (decoder or LiveDecoder(1, "", "run")).frame(wire.JSON_FRAME, wire.json_frame(message)[wire.HEADER.size :])


def record(record: dict[str, Any], payload: str | None = None, **more: Any) -> dict[str, Any]:
    ids = {"frame_id": 2, "frame_compile_id": 1, "attempt": 0}
    return {"k": "trace", "t": T, "thread": "main", "record": {**ids, **record}, "payload": payload, **more}


def test_code_objects() -> None:
    message = {"k": "code", "t": T, "code": 3, "function": "f", "qualname": "B.f", "file": "/w/a.py", "line": 7}
    assert told(message) == [ev.CodeSeen(T, 3, "f", "B.f", "/w/a.py", 7)]


def test_what_the_hook_saw_goes_with_the_records() -> None:
    (start,) = told(record({"dynamo_start": {"stack": [["/w/a.py", 7, "f"]]}}, code=3, owner="Block"))
    assert isinstance(start, ev.CompileStarted) and (start.code, start.owner) == (3, "Block")
    (broke,) = told(
        record({"artifact": {"name": "dynamo_graph_break_reason"}}, "Reason: x", code=3, at={"code": 4, "offset": 30})
    )
    assert isinstance(broke, ev.GraphBroke) and (broke.code, broke.offset) == (4, 30)
    name = {"artifact": {"name": "recompile_reasons"}}
    (failed,) = told(record(name, "2/0: x == 1", owner="Block", now={f"x{n}": str(n) for n in range(20)}))
    assert isinstance(failed, ev.GuardsFailed) and failed.owner == "Block" and failed.now[:2] == (("x0", "0"), ("x1", "1"))
    assert len(failed.now) == 8
    (end,) = told(record({"compilation_metrics": {"compile_id": "2/1"}}, code=3))
    assert isinstance(end, ev.CompileFinished) and end.code == 3


def test_metrics_of_a_failure_and_of_caches() -> None:
    metrics = {
        "compile_id": "2/1", "fail_type": "Unsupported", "fail_reason": "\n  item()\nlong", "gc_time_us": 5_000,
        "fail_user_frame_filename": "/w/a.py", "fail_user_frame_lineno": 22, "num_graph_breaks": 1,
        "compile_time_autotune_time_us": 2_000_000, "inductor_fx_local_cache_hit_count": 2,
        "aotautograd_local_cache_miss_count": 1, "inductor_fx_local_cache_miss_count": 0,
        "restart_reasons": ["first\nmore", ""],
    }  # fmt: skip
    (end,) = told(record({"compilation_metrics": metrics}))
    assert isinstance(end, ev.CompileFinished)
    assert (end.failed, end.fail_file, end.fail_line, end.breaks) == ("Unsupported: item()", "/w/a.py", 22, 1)
    assert (end.gc_s, end.autotune_s, end.restart_reasons) == (0.005, 2.0, ("first", ""))
    assert end.caches == (("fx_graph", "hit", 2), ("aot_autograd", "miss", 1))


REFUSED = "Dynamo recompile limit exceeded\n  Explanation: ..\n  Developer debug context: Limit type: {}\n"


@pytest.mark.parametrize(
    ("failed", "reason", "limit"),
    [
        ("Unsupported", REFUSED.format("recompile_limit"), "recompile_limit"),
        ("Unsupported", REFUSED.format("accumulated_recompile_limit"), "accumulated_recompile_limit"),
        ("RecompileLimitExceeded", "recompile_limit reached", "recompile_limit"),
        ("FailOnRecompileLimitHit", "Hard failure due to fullgraph=True", ""),
    ],
)
def test_a_refusal_and_its_limit(failed: str, reason: str, limit: str) -> None:
    (end,) = told(record({"compilation_metrics": {"compile_id": "2/1", "fail_type": failed, "fail_reason": reason}}))
    assert isinstance(end, ev.CompileFinished) and (end.refused, end.failed, end.limit) == (True, None, limit)


def test_a_frame_with_nothing_to_compile_is_told_by_its_metrics() -> None:
    for metrics, empty in (
        ({"cache_size": 0}, True),
        ({"cache_size": 0, "guard_count": 9, "graph_op_count": 0}, False),
        ({}, False),
    ):
        (end,) = told(record({"compilation_metrics": {"compile_id": "2/1", **metrics}}))
        assert isinstance(end, ev.CompileFinished) and end.empty is empty


def test_a_skipped_frame_of_the_past_brings_its_break() -> None:
    metrics = {
        "compile_id": "0/0", "co_name": "f", "co_filename": "/w/a.py", "co_firstlineno": 5, "is_forward": True,
        "fail_type": "Unsupported", "fail_reason": "Tensor.item()\n  Explanation: no", "start_time": 1.0, "duration_us": 10,
        "fail_user_frame_filename": "/w/a.py", "fail_user_frame_lineno": 22,
    }  # fmt: skip
    broke, end = told({"k": "past_compile", "t": T, "wall": 2.0, "metrics": metrics})
    assert isinstance(broke, ev.GraphBroke) and isinstance(end, ev.CompileFinished)
    assert (broke.compile_id, broke.file, broke.line, broke.kind) == ("0/0", "/w/a.py", 22, "Tensor.item()")
    assert broke.skipped_frame and broke.before_attach and end.failed is not None
    assert len(told({"k": "past_compile", "t": T, "wall": 2.0, "metrics": {**metrics, "fail_type": None}})) == 1


@pytest.mark.parametrize(
    ("told_as", "restarts"), [("set()", 0), ("[]", 0), ("", 0), ("{'x\\nmore', 'y'}", 1), (None, 0), (["x"], 1)]
)
def test_restarts_of_the_past_are_one_text(told_as: Any, restarts: int) -> None:
    metrics = {"compile_id": "0/0", "restart_reasons": told_as}
    (end,) = told({"k": "past_compile", "t": T, "wall": 2.0, "metrics": metrics})
    assert isinstance(end, ev.CompileFinished) and end.restarts == restarts


def test_frames_of_the_past() -> None:
    message = {"k": "frame", "t": T, "function": "f", "file": "a.py", "line": 5, "entries": ["0/0"], "code": 3,
               "breaks": [["0/0", 13], ["0/1", None]]}  # fmt: skip
    assert told(message) == [ev.FrameSeen(T, "f", "a.py", 5, ("0/0",), True, 3, (("0/0", 13), ("0/1", None)))]
    del message["code"], message["breaks"]
    assert told({**message, "entries": []}) == [ev.FrameSeen(T, "f", "a.py", 5, ())]


def test_what_counts_eager_calls() -> None:
    message = {"k": "added", "t": T, "instrument": 9, "role": "crossing", "compile_id": "0/0", "name": "n", "function": "f",
               "file": "a.py", "line": 5, "backend": None, "before_attach": False, "code": 3, "offset": 30,
               "counted": "by line"}  # fmt: skip
    (added,) = told(message)
    assert isinstance(added, ev.InstrumentAdded) and (added.role, added.code, added.offset) == ("crossing", 3, 30)
    assert (added.why, added.counted) == ("", "by line")
    (added,) = told({**message, "role": "eager", "why": "limit", "offset": None})
    assert isinstance(added, ev.InstrumentAdded) and (added.role, added.why) == ("eager", "limit")


def test_facts_gaps_device_times_and_waits() -> None:
    facts = {"k": "facts", "t": T, "wall": 1.0, "options": [["stance", "eager_on_recompile"]]}
    (seen,) = told(facts)
    assert isinstance(seen, ev.TargetSeen) and seen.options == (("stance", "eager_on_recompile"),)
    assert told({"k": "gap", "t": T, "what": "frames.eager_calls", "why": "no"}) == [
        ev.NotAvailable(T, "frames.eager_calls", "no")
    ]
    assert told({"k": "device", "t": T, "rows": [[1, 5, 9]]}) == [ev.DeviceSamples(T, ((1, 5, 9),))]
    assert told({"k": "sync", "t": T, "rows": [[1, 5, 2], [2, 0, 0]]}) == [ev.SyncLooked(T, 1, 5, 2), ev.SyncLooked(T, 2, 0, 0)]


def cold(phase: str, at: int = T, **more: Any) -> dict[str, Any]:
    return {"k": "compiling", "t": at, "thread": "main", "compile_id": "3/0", "direction": "forward", "code": None,
            "function": "f", "file": "a.py", "line": 5, "owner": "Block", "phase": phase, "since_wall": 98.0, "wall": 100.0,
            "stack": [["a.py", 5, "f"]], **more}  # fmt: skip


def test_a_compilation_that_was_under_way() -> None:
    decoder = LiveDecoder(1, "", "injected")
    start, phase = told(cold("trace the code"), decoder)
    assert isinstance(start, ev.CompileStarted) and (start.t_ns, start.since_known) == (T - 2_000_000_000, True)
    assert start.before_attach and start.owner == "Block" and phase == ev.PhaseBegan(T, "3/0", "trace the code", "main")
    assert told(cold("build kernels", T + 1), decoder) == [
        ev.PhaseEnded(T + 1, "3/0", "trace the code", "main"),
        ev.PhaseBegan(T + 1, "3/0", "build kernels", "main"),
    ]
    # a record of its own takes over
    live = record({"phase": "code_gen", "begins": True})
    assert told({**live, "record": {**live["record"], "frame_id": 3, "frame_compile_id": 0}}, decoder) == [
        ev.PhaseEnded(T, "3/0", "build kernels", "main"),
        ev.PhaseBegan(T, "3/0", "code_gen", "main"),
    ]
    assert len(told({**live, "record": {**live["record"], "begins": False}}, decoder)) == 1


def test_a_compilation_whose_begin_and_id_are_not_known() -> None:
    start, _ = told(cold("build kernels", since_wall=None, compile_id=None, function=None, line=None))
    assert isinstance(start, ev.CompileStarted)
    assert (start.t_ns, start.since_known, start.compile_id, start.function) == (T, False, "?", "?")
    start, _ = told(cold("build kernels", since_wall=200.0))
    assert start.t_ns == T  # a calendar that was set back


def test_an_unknown_word_is_no_event_and_a_payload_of_any_size_no_trouble() -> None:
    assert told({"k": "invented later", "t": T}) == []
    big = "x" * 30_000_000
    (broke,) = told(record({"artifact": {"name": "dynamo_graph_break_reason"}}, big))
    assert isinstance(broke, ev.GraphBroke) and len(broke.kind) <= 4000
    (failed,) = told(record({"artifact": {"name": "recompile_reasons"}}, big))
    assert isinstance(failed, ev.GuardsFailed) and len(failed.failed[0][1]) <= 4000
    (broke,) = told(record({"artifact": {"name": "dynamo_graph_break_reason"}}, None))
    assert isinstance(broke, ev.GraphBroke) and broke.kind == "unknown"
