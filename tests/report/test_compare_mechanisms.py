"""Mechanisms that are not a boundary of a single line: a frame that fell back, a skipped one, waits of a trace, other load."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from tests.report.compared import Run, compared
from tests.report.jobs import FILE, MS, model_of
from tuimon import events as ev
from tuimon.model import Model


def rows(found: dict[str, Any], kind: str) -> list[dict[str, Any]]:
    return [row for row in found["mechanisms"] if row["kind"] == kind]


def refused() -> Model:
    """Its frame is past its limit: one attempt was refused."""
    run = Run(graphs=False)
    events = run.events()
    at = 10_000 * MS
    past = [
        ev.CompileStarted(at, "0/8", 0, "forward", FILE, 12, "MainThread"),
        ev.CompileFinished(at + MS, "0/8", "forward", None, None, None, "MainThread", at, 0.001, refused=True),
    ]
    first = next(number for number, event in enumerate(events) if isinstance(event, ev.Samples))
    return model_of([*events[:first], *past, *events[first:]])


def test_a_frame_past_its_limit_is_named_without_a_time_of_its_own() -> None:
    found = compared(refused(), Run(graphs=False, seed=2))
    (row,) = rows(found, "fell back")
    assert "forward model.py:12 no longer runs in eager past the limit of recompiles (0/8)" in row["sentence"]
    assert row["seconds_per_step"] is row["interval"] is row["share"] is None and row["where"] == f"{FILE}:12"
    (row,) = rows(compared(Run(graphs=False), refused()), "fell back")
    assert "forward model.py:12 runs in eager" in row["sentence"]


def test_operations_are_not_held_against_each_other_where_a_part_runs_in_eager() -> None:
    checks = {row["what"]: row for row in compared(refused(), Run())["checks"]}
    assert checks["operations per step"]["verdict"] == "not known"
    assert "runs in eager" in checks["operations per step"]["why"]


def skipping() -> Model:
    """Dynamo gave a whole function up at line 90, and it is called once a step."""
    events = Run(graphs=False).events()
    first = next(number for number, event in enumerate(events) if isinstance(event, ev.Samples))
    told = [
        ev.CodeSeen(10_000 * MS, 5, "helper", "helper", FILE, 80),
        ev.GraphBroke(
            10_000 * MS, "7/0", 0, "a loop", "break in a loop", None, "helper", FILE, 90, skipped_frame=True,
            stack=((FILE, 90, "helper"),), code=5, offset=12,
        ),
        ev.InstrumentAdded(10_000 * MS, 21, "crossing", None, "", "helper", FILE, 90, code=5, offset=12),
    ]  # fmt: skip
    for number in range(first, len(events)):
        event = events[number]
        if isinstance(event, ev.Samples):
            at = event.rows[0][4]
            events[number] = ev.Samples(event.t_ns, (event.rows[0], (21, 0, 0, at, at), *event.rows[1:]))
    return model_of([*events[:first], *told, *events[first:]])


def test_a_function_that_is_no_longer_skipped_whole_is_named() -> None:
    found = compared(skipping(), Run(graphs=False, seed=2))
    (row,) = rows(found, "boundary gone")
    assert "the graph break at model.py:90 is gone" in row["sentence"]
    assert "helper no longer runs in eager as a whole; its own time is not told" in row["sentence"]
    assert row["interval"] is None and not row["explains"]


def traced(waits: int) -> Model:
    """A trace in which so many values are taken from the device in each of its steps."""
    run = Run(steps=10, graphs=False)
    events = run.events()[:-2]
    span = ("sync", "aten::item", None, waits * 10, waits * 10 * 400_000, 300_000, 900_000)
    return model_of([*events, ev.SpansSeen(run.end_ns, 0, (span,) if waits else (), ())])


def test_a_sync_that_is_gone_is_named_as_the_trace_has_it() -> None:
    found = compared(traced(3), traced(0), kinds=("kineto", "kineto"))
    (row,) = rows(found, "sync gone")
    assert row["sentence"].startswith("aten::item: ") and row["interval"] is None
    assert row["seconds_per_step"] < -1e-3
    assert rows(compared(traced(0), traced(3), kinds=("kineto", "kineto")), "sync new")


def loaded(share: float, by: float, phases: tuple[tuple[str, int], ...] = ()) -> Model:
    """Other programs have its core for that part of the time, and its steps are longer by so much."""
    run = Run(steps=200, other_us=int(2_500 * by), graphs=False, phases=phases)
    events = run.events()
    begin = next(event for event in events if isinstance(event, ev.Samples)).t_ns
    readings = [
        ev.ThreadSampled(at, 77, share * (at - begin) / 1e9, (1 - share) * (at - begin) / 1e9)
        for at in range(begin, run.end_ns, 100 * MS)
    ]
    merged = sorted(enumerate([*events, *readings]), key=lambda one: (one[1].t_ns, one[0]))
    return model_of([event for _, event in merged])


def test_a_machine_that_was_busier_is_named_and_not_the_code() -> None:
    found = compared(loaded(0.02, 1.0), loaded(0.5, 3.0))
    (row,) = rows(found, "other load")
    assert row["explains"] and "waiting for a core" in found["verdict"] and "2% and 50% of the time" in row["sentence"]
    assert found["steps"]["verdict"] == "not known" and "it tells nothing of the code" in found["verdict"]
    check = next(row for row in found["checks"] if row["what"] == "waiting for a core")
    assert check["verdict"] == "differs" and (check["a"], check["b"]) == ("2% of the time", "50% of the time")


def test_what_is_faster_beside_a_machine_that_was_less_busy_is_not_told_of_the_code() -> None:
    found = compared(loaded(0.5, 3.0), loaded(0.02, 1.0))
    assert found["steps"]["verdict"] == "not known" and found["steps"]["difference"] < 0
    assert "it tells nothing of the code" in found["verdict"]


def test_times_that_got_worse_on_a_busy_machine_say_so() -> None:
    sentences = [row["sentence"] for row in compared(loaded(0.5, 1.0), loaded(0.5, 3.0))["worse"]]
    assert sentences and all("other programs kept the machine busy" in one for one in sentences if " a step in A" in one)


def test_of_a_short_phase_the_readings_beside_it_tell_the_load() -> None:
    plan = (("short", 100), ("rest", 124))  # a quarter of a second: two readings or three
    found = compared(loaded(0.02, 1.0, plan), loaded(0.5, 3.0, plan), phase="short")
    check = next(row for row in found["checks"] if row["what"] == "waiting for a core")
    assert (check["a"], check["b"]) == ("2% of the time", "50% of the time")


def test_boundaries_at_one_line_are_one_place() -> None:
    model = Run(boundary_us=2_000).model()
    (one,) = model.boundaries.values()
    model.boundaries["compiled anew"] = replace(one, key="compiled anew")
    found = compared(model, Run(graphs=False))
    (row,) = rows(found, "boundary gone")
    assert "2 host round trips less per step" in row["sentence"] and len(found["boundaries"]) == 1
    assert found["boundaries"][0]["per_step"] == {"a": 2.0, "b": 0.0}
    assert found["boundaries"][0]["host_per_step"]["a"] == pytest.approx(4e-3, rel=0.1)
