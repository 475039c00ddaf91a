"""The events of a trace, decoded many at once: the same as one by one, whatever is in the file."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.sources.test_trace_file import ANYTHING, KERNEL, OP, written
from tuimon.sources import trace_entries, trace_file
from tuimon.sources.trace_entries import Entry, Events
from tuimon.sources.trace_file import Text, Unreadable


def values(entry: Entry) -> tuple[Any, ...]:
    return (
        entry.ph,
        entry.cat,
        entry.name,
        entry.ts,
        entry.dur,
        entry.pid,
        entry.tid,
        entry.arguments(),
        entry.launch(),
        entry.operands()[1],
    )


def read(path: Path, least: int) -> tuple[list[tuple[Any, ...]], dict[str, Any], str, list[int]]:
    """(events, header, note, sizes of the batches), decoded at once from so many characters on."""
    before, trace_entries.LEAST = trace_entries.LEAST, least
    try:
        events = Events(Text(path), lambda _: True)
        batches = list(events)
    except Unreadable as error:
        return [], {}, str(error), []
    finally:
        trace_entries.LEAST = before
    return [values(one) for batch in batches for one in batch], events.header, events.note, [len(one) for one in batches]


def both(path: Path) -> tuple[list[tuple[Any, ...]], list[int]]:
    """What is in a file, and how it came: the same in either way."""
    plain = read(path, 2**60)
    found = read(path, 1)
    assert repr(found[:3]) == repr(plain[:3])  # NaN is not equal to itself
    return found[0], found[3]


def text(*events: str, before: str = "", behind: str = "") -> bytes:
    return ('{"schemaVersion": 1, ' + before + '"traceEvents": [' + ", ".join(events) + "]" + behind + "}").encode()


ONE = json.dumps(OP)


@pytest.mark.parametrize(
    "odd",
    [
        '{"ph": "X", "dur": NaN, "args": {"a": 1}}',
        '{"ph": "X", "args": {"a": Infinity}}',
        '{"name": "a\x01b"}',
        '{"name": "\\ud800"}',
        '{"args": {"name": "\\ud800", "b": NaN, "c": "\x01"}}',
        '{"args": 5}',
        '{"args": {"correlation": 7, "device": 1e999, "b": NaN}}',
        '{"args": {"correlation": {}, "x": "\\ud800"}}',
        '{"args": {"Sequence number": 4, "Input Dims": [[1], [2]], "x": "\\ud800"}}',
        '{"args": null}', '{"args": []}', '{"ts": "12"}', '{"ts": 1e999}',
        '{"ts": 123456789012345678901234567890}',
        "5", "null", '"}, {"', "[]", '[{"a": 1}, {"b": 2}]',
        '{"name": "}, {"}', '{"args": {"x": [{"a": 1}, {"b": 2}]}}', '{"ph": "X", "ph": "Y"}', '{"nothing": {}}', "{}", "{},",
    ],
)  # fmt: skip
def test_odd_events_are_what_they_are(odd: str, tmp_path: Path) -> None:
    found, _ = both(written(tmp_path, text(ONE, odd, ONE)))
    assert len(found) == 2 + odd.startswith("{")
    assert found[0] == found[-1] and found[0][2] == "aten::mm"


def test_what_stands_behind_the_list_is_no_event(tmp_path: Path) -> None:
    devices = json.dumps([{"id": n, "name": "a device"} for n in range(20)])
    path = written(tmp_path, text(ONE, ONE, behind=f', "deviceProperties": {devices}, "last": 1'))
    found, _ = both(path)
    assert len(found) == 2 and read(path, 1)[1]["last"] == 1 and len(read(path, 1)[1]["deviceProperties"]) == 20


def test_most_come_many_at_once(tmp_path: Path) -> None:
    path = written(tmp_path, text(*[ONE] * 20_000))
    _, _, note, sizes = read(path, trace_entries.LEAST)
    assert sum(sizes) == 20_000 and max(sizes) > 3000 and len(sizes) < 50 and not note


@pytest.mark.parametrize("size", [1, 7, 100, 1000])
def test_chunks_may_end_anywhere(size: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(trace_file, "CHUNK", size)
    events = [json.dumps({**OP, "name": f"é{n}", "ts": n}) for n in range(40)]
    found, _ = both(written(tmp_path, text(*events, before='"x": [1, 2], ', behind=', "y": {"z": [3]}')))
    assert [one[2] for one in found] == [f"é{n}" for n in range(40)]


def test_a_cut_file_gives_all_up_to_the_cut(tmp_path: Path) -> None:
    whole = text(*[json.dumps({**OP, "ts": n}) for n in range(200)])
    for share in (0.1, 0.37, 0.5, 0.99):
        cut = whole[: int(len(whole) * share)]
        found, _ = both(written(tmp_path, cut))
        assert len(found) == cut.count(b'"ph"') - (not cut.rstrip(b", ").endswith(b"}}"))


IN_A_LIST = ANYTHING | st.just(OP) | st.just(KERNEL) | st.dictionaries(st.sampled_from(["args", "name", "ts"]), ANYTHING)


@settings(max_examples=60, deadline=None)
@given(st.lists(IN_A_LIST, max_size=8), st.binary(max_size=3), st.integers(0, 2000))
def test_anything_in_the_list(tmp_path_factory: pytest.TempPathFactory, events: list[Any], put: bytes, at: int) -> None:
    path = tmp_path_factory.mktemp("trace") / "t"
    data = json.dumps({"traceEvents": events}).encode()
    path.write_bytes(data)
    both(path)
    at %= len(data)
    path.write_bytes(data[:at] + put + data[at:])
    both(path)


def test_a_host_without_msgspec_reads_the_same(tmp_path: Path) -> None:
    launch = {"ph": "X", "cat": "cuda_runtime", "name": "cudaLaunchKernel", "pid": 1, "tid": 1, "ts": 20.0, "dur": 5.0,
              "args": {"correlation": 7, "device": 0}}  # fmt: skip
    path = written(tmp_path, text(*[ONE, json.dumps(launch), json.dumps(KERNEL)] * 3000, '{"ph": "X", "ts": NaN}'))
    script = f"""import sys
if sys.argv[1] == "without":
    sys.modules["msgspec"] = None
from pathlib import Path
from tuimon.sources.files import no_progress, open_any
(opened,), _ = open_any(Path({str(path)!r}))
print([event for batch in opened.events(no_progress) for event in batch])
assert ("tuimon.sources.entry_plain" in sys.modules) == (sys.argv[1] == "without")"""
    told = [subprocess.run([sys.executable, "-c", script, how], capture_output=True, text=True) for how in ("with", "without")]
    assert [one.stderr for one in told] == ["", ""]
    assert told[0].stdout == told[1].stdout and len(told[0].stdout) > 500
