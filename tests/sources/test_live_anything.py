"""Whatever a hook, or what has got in its place, sends: no exception leaves the decoder, the model, a report or a panel."""

from __future__ import annotations

import copy
import json
import unicodedata
from collections.abc import Iterator
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tuimon.app.panels import overview
from tuimon.app.panels import target as target_panel
from tuimon.app.panels.all import PANELS
from tuimon.app.scene import PanelView, Scene
from tuimon.commands.watch import progress
from tuimon.draw.glyphs import GLYPH_SETS
from tuimon.hook import wire
from tuimon.model import Model
from tuimon.report import build, render
from tuimon.sources.carried import LONGEST_NAME
from tuimon.sources.live import LiveDecoder

METRICS = {
    "compile_id": "0/1",
    "co_name": "f",
    "co_filename": "f.py",
    "co_firstlineno": 1,
    "start_time": 1.0,
    "duration_us": 1,
    "is_forward": True,
    "recompile_reason": "0/0: x == 1",
    "fail_type": None,
    "fail_reason": None,
    "guard_count": 1,
    "graph_op_count": 1,
    "cache_size": 1,
    "restart_reasons": ["x"],
    "inductor_cumulative_compile_time_us": 1,
}
IDS = {"frame_id": 0, "frame_compile_id": 1, "attempt": 0}
T = 2_000_000_000
MESSAGES: list[dict[str, Any]] = [
    {"k": "facts", "t": T, "wall": 1.7e9, "pid": 1, "python": "3", "torch": "2", "devices": ["cpu"], "rank": 0,
     "world_size": 1, "recompile_limit": 8, "options": [["stance", "default"]]},
    {"k": "thread", "t": T, "thread": 1, "name": "main"},
    {"k": "frame", "t": T, "function": "f", "file": "f.py", "line": 1, "entries": ["0/0"], "code": 1,
     "breaks": [["0/0", 3]]},
    {"k": "added", "t": T, "instrument": 1, "role": "forward", "compile_id": "0/1", "name": "n", "function": "f",
     "file": "f.py", "line": 1, "backend": "inductor", "before_attach": False},
    {"k": "added", "t": T, "instrument": 2, "role": "resume", "compile_id": "0/1", "name": "n", "function": "f",
     "file": "f.py", "line": 2, "backend": None, "before_attach": False},
    {"k": "added", "t": T, "instrument": 3, "role": "optimizer", "compile_id": None, "name": "n", "function": "step",
     "file": "f.py", "line": 1, "backend": None, "before_attach": False},
    {"k": "status", "t": T, "samples": 1, "dropped": 0, "hook_s": 0.1, "instruments": {"steps": "on", "x": "off"}},
    {"k": "past_compile", "t": T, "wall": 2.0, "metrics": METRICS},
    {"k": "past_break", "t": T, "reason": "r", "stack": [["f.py", 1, "f"]]},
    {"k": "counted", "t": T, "compiles": 1, "breaks": 1, "graphs": 1},
    {"k": "trace", "t": T, "thread": "main", "record": {"dynamo_start": {"stack": [["f.py", 1, "g"]]}, **IDS}, "payload": None,
     "code": 1, "owner": "C"},
    {"k": "trace", "t": T, "thread": "main", "record": {"phase": "build_guards", "begins": True, **IDS}, "payload": None},
    {"k": "trace", "t": T, "thread": "main", "record": {"artifact": {"name": "recompile_reasons"}, **IDS},
     "payload": '["0/0: x"]', "now": {"x": "2"}, "owner": "C"},
    {"k": "trace", "t": T, "thread": "main", "record": {"artifact": {"name": "dynamo_graph_break_reason"}, **IDS},
     "payload": 'Graph break in user code at f.py:3\nReason: r\n  File "f.py", line 3, in f\n', "at": {"code": 1, "offset": 8}},
    {"k": "trace", "t": T, "thread": "main", "record": {"compilation_metrics": METRICS, **IDS}, "payload": None},
    {"k": "code", "t": T, "code": 1, "function": "f", "qualname": "C.f", "file": "f.py", "line": 1},
    {"k": "compiling", "t": T, "thread": "main", "compile_id": "3/0", "direction": "forward", "code": 1, "function": "f",
     "file": "f.py", "line": 1, "owner": "C", "phase": "build kernels", "since_wall": 1.0, "wall": 2.0,
     "stack": [["f.py", 1, "f"]]},
    {"k": "added", "t": T, "instrument": 4, "role": "crossing", "compile_id": "4/0", "name": "n", "function": "f",
     "file": "f.py", "line": 2, "backend": None, "before_attach": False, "code": 1, "offset": 8, "counted": "by line"},
    {"k": "gap", "t": T, "what": "frames.eager_calls", "why": "no"},
    {"k": "device", "t": T, "rows": [[1, T, 5]]},
    {"k": "sync", "t": T, "rows": [[2, 5, 1]]},
    {"k": "pool", "t": T, "device": 0, "uuid": "GPU-1", "pci": "00000000:3B:00.0", "backend": "native", "allocated": 1,
     "reserved": 2, "active": 1, "inactive_split": 1, "peak": 2, "retries": 0, "ooms": 0},
    {"k": "event", "type": "GpuSampled", "t_ns": T, "index": 0, "name": "g", "utilization": 1.0, "memory_used_bytes": 1,
     "memory_total_bytes": 2, "throttle": ["x"], "missing": [["power_w", "y"]], "held": [[1, 2]]},
    {"k": "event", "type": "HostSampled", "t_ns": T, "cpu_percent": 1.0, "rss_bytes": 1, "threads": 1, "host_cpu_percent": 1.0,
     "host_memory_used_bytes": 1, "host_memory_total_bytes": 2},
    {"k": "event", "type": "TargetEnded", "t_ns": T, "how": "exited", "detail": "d", "status": 0},
]  # fmt: skip
SAMPLES = [(1, 1, 0, T, T + 9), (2, 1, 0, T + 20, T + 20), (3, 1, 0, T + 30, T + 40), (3, 1, 1, 0, 2**64 - 1)]
EVIL = "\x1b]0;x\x07\x9b31m\u202e"


def body(message: dict[str, Any]) -> bytes:
    return wire.json_frame(message)[wire.HEADER.size :]


def paths(value: Any, path: tuple[Any, ...] = ()) -> Iterator[tuple[Any, ...]]:
    """The way to every value in a message, but to the word that says what kind it is."""
    if path and path not in (("k",), ("type",)):
        yield path
    below = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    for key, inner in below:
        yield from paths(inner, (*path, key))


PLACES = [(number, path) for number, message in enumerate(MESSAGES) for path in paths(message)]


def with_value(at: int, path: tuple[Any, ...], value: Any) -> list[dict[str, Any]]:
    """All messages, one of them with another value at that place."""
    messages = copy.deepcopy(MESSAGES)
    inner: Any = messages[at]
    for step in path[:-1]:
        inner = inner[step]
    inner[path[-1]] = value
    return messages


def fold(messages: list[dict[str, Any]]) -> tuple[Model, list[str]]:
    """A model with all messages that can be read in it, and what was said of the others."""
    decoder, model, unread = LiveDecoder(1, "train.py", "run"), Model(), []
    samples = wire.samples_frame(SAMPLES)
    for frame in [*map(body, messages), None]:
        try:
            if frame is None:
                events = decoder.frame(wire.SAMPLES_FRAME, samples[wire.HEADER.size :])
            else:
                events = decoder.frame(wire.JSON_FRAME, frame)
        except wire.WireError as error:
            unread.append(str(error))
            continue
        model.apply(events)
    return model, unread


def looked_at(model: Model) -> list[str]:
    """What a person may get to see of it."""
    scene = Scene(model, GLYPH_SETS["braille"], model.now_ns)
    for panel in PANELS:
        panel.draw(scene, PanelView(), 120, 30, True)
    target_panel.draw(scene, target_panel.Status(), overview.answer(scene), 120, 2)
    report = build(model)
    return [*(render(report, form) for form in ("text", "md", "json")), progress(model)]


def test_the_messages_are_sound() -> None:
    model, unread = fold(MESSAGES)
    assert unread == []
    assert model.steps.n and model.regions and model.boundaries and model.recompiles and model.surroundings.gpus
    looked_at(model)


ODD = [None, [], {}, "x", 1e400, 10**400, 2**64 - 1, -(2**63), [1], {"a": 1}, "\ud800"]


@pytest.mark.parametrize("value", ODD, ids=lambda value: repr(value)[:12])
def test_any_odd_value_at_any_place(value: Any) -> None:
    refused = set()
    for at, path in PLACES:
        model, unread = fold(with_value(at, path, value))
        if not unread or at not in refused:  # without its message, a model is the same for each place in it
            looked_at(model)
        if unread:
            refused.add(at)


ANYTHING = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner, max_size=3),
    max_leaves=5,
)


@settings(max_examples=100, deadline=None)
@given(st.sampled_from(PLACES), ANYTHING)
def test_any_value_at_any_place(place: tuple[int, tuple[Any, ...]], value: Any) -> None:
    looked_at(fold(with_value(*place, value))[0])


def test_nothing_in_any_text_acts_on_a_terminal() -> None:
    for at, path in PLACES:
        messages = with_value(at, path, EVIL)
        inner: Any = MESSAGES[at]
        for step in path:
            inner = inner[step]
        if not isinstance(inner, str):
            continue
        for written in looked_at(fold(messages)[0]):
            bad = [one for one in written if unicodedata.category(one) in ("Cc", "Cf") and one != "\n"]
            assert bad == [], (at, path)


def test_json_reports_say_what_the_job_said() -> None:
    model, _ = fold(with_value(0, ("torch",), f"漢 {EVIL} \ud800"))
    written = render(build(model), "json")
    assert json.loads(written)["target"]["torch"] == f"漢 {EVIL} \ud800"
    assert "漢" in written and r"\u009b31m\u202e \ud800" in written


def test_what_cannot_be_read_is_said_by_field() -> None:
    model, (why,) = fold(with_value(1, ("name",), []))
    assert "ThreadSeen.name" in why
    assert model.steps.n


def test_a_flood_of_long_names_stays_small(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("tuimon.model.adding.MOST_INSTRUMENTS", 50)
    decoder, model = LiveDecoder(1, "", "run"), Model()
    for number in range(70):
        message = {**MESSAGES[3], "instrument": number, "compile_id": f"{number}/0", "function": f"{number}" + "x" * 2000}
        model.apply(decoder.frame(wire.JSON_FRAME, body(message)))
    assert len(model.regions) == 50
    assert all(len(region.function) <= LONGEST_NAME for region in model.regions.values())
    assert "20 more were left out" in model.coverage.not_available["more regions and other timed calls"]


def test_an_event_larger_than_any_is_refused() -> None:
    huge = {**MESSAGES[2], "entries": ["0/0"] * 10_000}
    with pytest.raises(wire.WireError, match="larger than any"):
        LiveDecoder(1, "", "run").frame(wire.JSON_FRAME, body(huge))


def test_a_compile_id_that_is_none_is_refused_and_not_cut() -> None:
    with pytest.raises(wire.WireError, match="compile_id"):
        LiveDecoder(1, "", "run").frame(wire.JSON_FRAME, body({**MESSAGES[3], "compile_id": "0/" + "1" * 100}))
