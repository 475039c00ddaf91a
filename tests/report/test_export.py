"""Traces and tables: of a shape that other tools read, exact in what they say, the same whatever the file was."""

from __future__ import annotations

import csv
import gzip
import json
import os
from collections import Counter, defaultdict
from decimal import Decimal
from io import StringIO
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.report.jobs import MS, training
from tests.sources.recorded_streams import STREAMS, record, stream
from tuimon import cli
from tuimon import events as ev
from tuimon.model import Model
from tuimon.report.perfetto import Lanes, Perfetto
from tuimon.report.seen import begin_of
from tuimon.report.series import COLUMNS, Series

FILES = Path(os.environ.get("TUIMON_FILES", Path(__file__).parents[3] / "shared" / "files"))
Event = dict[str, Any]


def checked(text: str) -> list[Event]:
    """The events of a trace. Raises AssertionError for what is no Chrome trace, and for slices of a track that do not nest."""
    trace = json.loads(text, parse_float=Decimal)
    events: list[Event] = trace["traceEvents"]
    tracks: dict[tuple[int, int], list[tuple[int, int]]] = defaultdict(list)
    for event in events:
        assert event["ph"] in ("X", "i", "C", "M") and isinstance(event["pid"], int) and isinstance(event["name"], str)
        if event["ph"] == "M":
            continue
        assert event["ts"] >= 0 and event["ts"] * 1000 == int(event["ts"] * 1000)  # whole ns
        if event["ph"] == "X":
            assert event["dur"] >= 0 and isinstance(event["tid"], int)
            begin = int(event["ts"] * 1000)
            tracks[event["pid"], event["tid"]].append((begin, begin + int(event["dur"] * 1000)))
        elif event["ph"] == "i":
            assert event["s"] == "t" and isinstance(event["tid"], int)
        else:
            assert event["args"] and all(isinstance(value, (int, Decimal)) for value in event["args"].values())
    for slices in tracks.values():
        slices.sort(
            key=lambda one: one[0]
        )  # as readers do: by the begin alone, in the order of the file where that is the same
        open_until: list[int] = []
        for begin, end in slices:
            while open_until and open_until[-1] <= begin:
                open_until.pop()
            assert not open_until or end <= open_until[-1], "a slice cuts into another"
            open_until.append(end)
    named = {(event["pid"], event["tid"]) for event in events if event["name"] == "thread_name"}
    assert set(tracks) <= named
    return events


def trace_of(*jobs: list[ev.Event]) -> list[Event]:
    out = StringIO()
    trace = Perfetto(out)
    for number, events in enumerate(jobs):
        model = Model()
        _, zero, _ = begin_of([events])
        member = trace.member(number, f"job {number}", model, zero or 0)
        member.take(events)
        model.apply(events)
        member.fed()
        member.close()
    trace.close()
    return checked(out.getvalue())


def table_of(events: list[ev.Event]) -> list[dict[str, str]]:
    out = StringIO()
    model = Model()
    _, zero, wall = begin_of([events])
    member = Series(out).member("job", model, zero or 0, wall)
    for event in events:
        member.take([event])
        model.apply([event])
        member.fed()
    member.close()
    rows = list(csv.DictReader(StringIO(out.getvalue())))
    assert all(tuple(row) == COLUMNS and None not in row.values() for row in rows)
    assert all(float(row["t_s"]) >= 0 and float(row["value"]) == float(row["value"]) for row in rows)
    return rows


def of(events: list[Event], category: str) -> list[Event]:
    return [event for event in events if event.get("cat") == category]


def test_calls_boundaries_compilations_and_steps_are_in_the_trace() -> None:
    events = trace_of(training(20))
    regions, boundaries, steps = of(events, "forward region"), of(events, "boundary"), of(events, "step")
    assert len(regions) == 40 and {event["dur"] for event in regions} == {2000}
    assert len(boundaries) == 20 and {event["dur"] for event in boundaries} == {1000}
    assert {event["name"] for event in boundaries} == {"boundary before torch_dynamo_resume_in_forward_at_41 model.py:41"}
    assert len(of(events, "optimizer")) == 20
    assert len(steps) == 20 and [event["name"] for event in steps][1:3] == ["step 1", "step 2"]
    assert {event["dur"] for event in steps[1:]} == {10_000}
    assert steps[3]["args"]["forward regions ms"] == 4
    compiles = of(events, "forward compile")
    assert [(event["name"], event["dur"]) for event in compiles][:2] == [
        ("forward [0/0]", 2_000_000), ("resume [1/0]", 500_000),
    ]  # fmt: skip
    assert sum(event["name"].startswith("graph break: Tensor.item()") for event in events) == 1
    counters = Counter(event["name"] for event in events if event["ph"] == "C")
    assert counters["GPU 0 memory (bytes)"] == 1 and counters["resident memory (bytes)"] == 1


def test_two_ranks_are_two_processes() -> None:
    events = trace_of(training(3), training(4))
    assert Counter(event["pid"] for event in of(events, "step")) == {1: 3, 2: 4}


def test_phases_of_a_compilation_and_one_that_is_not_over() -> None:
    began = [
        ev.TargetSeen(0, 1, "python x.py", "3.11", "2.13", "run", 1_700_000_000.0),
        ev.CompileStarted(10, "0/0", 0, "f", "x.py", 1, "MainThread"),
        ev.PhaseBegan(10, "0/0", "entire_frame_compile", "MainThread"),
        ev.PhaseBegan(10, "0/0", "bytecode_tracing", "MainThread"),
        ev.PhaseEnded(30, "0/0", "bytecode_tracing", "MainThread"),
    ]
    events = trace_of([*began, ev.HostSampled(50, 1.0, 1, 1, 1.0, 1, 1)])
    assert [(event["name"], event["dur"] * 1000) for event in events if event["ph"] == "X"] == [
        ("f [0/0]", 40), ("bytecode_tracing", 20),
    ]  # fmt: skip
    over = [
        ev.PhaseEnded(90, "0/0", "entire_frame_compile", "MainThread"),
        ev.CompileFinished(95, "0/0", "forward", "f", "x.py", 1, "MainThread", 12, 1e-7),
    ]
    assert len(of(trace_of([*began, *over]), "compile phase")) == 2


@pytest.mark.parametrize("path", STREAMS, ids=lambda path: path.stem)
def test_every_stream_of_a_real_job_nests(path: Path) -> None:
    events = list(stream(path))
    assert trace_of(events)
    table_of(events)


@given(st.lists(st.tuples(st.integers(0, 60), st.integers(0, 20)), max_size=60))
@settings(max_examples=200, deadline=None)
def test_slices_of_a_lane_nest_whatever_comes(found: list[tuple[int, int]]) -> None:
    lanes = Lanes()
    tracks: dict[int, list[tuple[int, int]]] = defaultdict(list)
    for begin, took in sorted(found, key=lambda one: one[0] + one[1])[::-1][::-1]:
        tracks[lanes.of(begin, begin + took)].append((begin, begin + took))
    for slices in tracks.values():
        for a in slices:
            for b in slices:
                assert not a[0] < b[0] < a[1] < b[1]


def test_the_table_has_steps_with_their_parts_and_readings_with_units() -> None:
    rows = table_of(training(20))
    by_what = defaultdict(list)
    for row in rows:
        by_what[row["what"]].append(row)
    assert [row["key"] for row in by_what["step"]][-1] == "19" and len(by_what["step"]) == 20
    assert [float(row["value"]) for row in by_what["step.forward regions"]][1:] == [0.004] * 19
    assert {(row["unit"], row["key"]) for row in by_what["gpu.memory_used_bytes"]} == {("B", "0")}
    assert by_what["gpu.utilization"][0]["unit"] == "%" and "gpu.power_w" not in by_what
    assert by_what["host.rss_bytes"][0]["value"] == str(1 << 30)
    assert sum(int(row["value"]) for row in by_what["region.calls"]) == 40
    assert sum(float(row["value"]) for row in by_what["region.host"]) == pytest.approx(0.08)
    step = by_what["step"][-1]
    zero = 1_700_000_000.0 - 1e-3  # the target is seen at 1 ms; the first compilation began later
    assert float(step["wall"]) - zero == pytest.approx(float(step["t_s"]) + 1e-3 + 1e-3, abs=2.5)


def test_steps_that_were_only_inferred_are_void_once_an_optimizer_tells_them() -> None:
    events = training(12)
    rows = [row for event in events if isinstance(event, ev.Samples) for row in event.rows]
    optimizer = next(event for event in events if isinstance(event, ev.InstrumentAdded) and event.role == "optimizer")
    others = [event for event in events if event is not optimizer and not isinstance(event, ev.Samples)]
    first = [ev.Samples(row[4], (row,)) for row in rows if row[0] != optimizer.instrument][: 3 * 9]
    later = [ev.Samples(row[4], (row,)) for row in rows[4 * 9 :]]
    found = [*others[:7], *first, optimizer, *later]
    model = Model()
    model.apply(found)
    assert len([row for row in table_of(found) if row["what"] == "step"]) == len(model.steps.accounts)
    assert len(of(trace_of(found), "step")) == len(model.steps.accounts)


# ------------------------------------------------------------------------------------------ the command


@pytest.fixture
def recording(tmp_path: Path) -> Path:
    path = tmp_path / "run.tuimon"
    record(path, [[event] for event in training(20)])
    return path


def test_a_recording_becomes_a_trace_packed_or_not(recording: Path, tmp_path: Path) -> None:
    plain, packed = tmp_path / "trace.json", tmp_path / "trace.json.gz"
    assert cli.main(["export", str(recording), "--to", "perfetto", "-o", str(plain)]) == 0
    assert cli.main(["export", str(recording), "--to", "perfetto", "-o", str(packed)]) == 0
    assert gzip.decompress(packed.read_bytes()) == plain.read_bytes()
    assert len(of(checked(plain.read_text()), "step")) == 20
    assert sorted(os.listdir(tmp_path)) == ["run.tuimon", "trace.json", "trace.json.gz"]


def test_to_stdout(recording: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert cli.main(["export", str(recording), "--to", "csv", "-o", "-"]) == 0
    rows = list(csv.DictReader(StringIO(capsys.readouterr().out)))
    assert sum(row["what"] == "step" for row in rows) == 20


def test_what_cannot_be_done_is_said_and_leaves_nothing(
    recording: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    other = tmp_path / "no.csv"
    assert cli.main(["export", str(tmp_path / "none"), "--to", "csv", "-o", str(other)]) == 1
    assert cli.main(["export", str(Path(__file__)), "--to", "csv", "-o", str(other)]) == 1
    assert cli.main(["export", str(recording), "--to", "csv", "-o", str(tmp_path)]) == 2
    assert cli.main(["export", str(recording), "--to", "csv", "-o", str(tmp_path / "no" / "x.csv")]) == 2
    before = recording.read_bytes()
    assert cli.main(["export", str(recording), "--to", "csv", "-o", str(recording)]) == 2
    assert recording.read_bytes() == before
    assert os.listdir(tmp_path) == ["run.tuimon"]
    assert "no kind of file" in capsys.readouterr().err


@pytest.mark.parametrize(
    "name", ["samples/resnet50_num_workers_0/worker0.pt.trace.json.gz", "inputs/chromium_events.log", "inputs/artifacts.log"]
)
def test_files_of_other_profilers(name: str, tmp_path: Path) -> None:
    path = next(iter(FILES.glob(f"*/*/{name}")), None)
    if path is None:
        pytest.skip(f"{name} is not below {FILES} (TUIMON_FILES)")
    out = tmp_path / "trace.json"
    assert cli.main(["export", str(path), "--to", "perfetto", "-o", str(out)]) == 0
    slices = Counter(event["cat"] for event in checked(out.read_text()) if event["ph"] == "X")
    if "resnet50" in name:
        assert slices["step"] == 6 and slices["optimizer"] >= 5 and slices["data wait"] >= 5
    else:
        assert slices["forward compile"] >= 1


def test_nothing_that_is_not_known_becomes_a_number() -> None:
    events: list[ev.Event] = [
        ev.TargetSeen(1 * MS, 1, "python x.py", "3.11", "2.13", "run", 1.0),
        ev.GpuSampled(2 * MS, 0, "H200", None, None, None),
        ev.HostSampled(2 * MS, None, None, None, None, None, None),
        ev.TargetEnded(3 * MS, "exited", "over", 0),
    ]
    assert table_of(events) == []
    assert not any(event["ph"] in ("C", "X") for event in trace_of(events))


def test_no_cell_of_the_csv_is_a_formula() -> None:
    out = StringIO()
    member = Series(out).member("=HYPERLINK(A1)", Model(), 0, None)
    names = ("@SUM(A1)", "+1", "-1+1", "\t=1", "  =1", "\r=1", "train", "0/0")
    member.take([ev.PhaseMarked(number, name, number) for number, name in enumerate(names, 1)])
    member.close()
    rows = list(csv.DictReader(StringIO(out.getvalue(), newline="")))
    assert [row["key"] for row in rows] == ["'@SUM(A1)", "'+1", "'-1+1", "' =1", "'  =1", "' =1", "train", "0/0"]
    assert {row["process"] for row in rows} == {"'=HYPERLINK(A1)"}
    assert [row["value"] for row in rows] == [str(number) for number in range(1, 9)]
