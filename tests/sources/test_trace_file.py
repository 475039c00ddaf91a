"""Files that hold what nobody expects: each ends in a sentence, and none in an exception, a wait or a memory without end."""

from __future__ import annotations

import gzip
import json
import os
import tracemalloc
import zlib
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.sources.reading import events_of
from tuimon import events as ev
from tuimon.sources import kineto, trace_file
from tuimon.sources.carried import checked
from tuimon.sources.trace_file import Text, Unreadable

OP = {"ph": "X", "cat": "cpu_op", "name": "aten::mm", "pid": 1, "tid": 1, "ts": 10.0, "dur": 50.0,
      "args": {"Input Dims": [[4, 8], [8, 2]], "Input type": ["float", "float"], "Concrete Inputs": ["", ""]}}  # fmt: skip


def trace(*events: Any, **header: Any) -> bytes:
    return json.dumps({"schemaVersion": 1, **header, "traceEvents": list(events)}).encode()


def refused(path: Path) -> str:
    with pytest.raises(Unreadable) as caught:
        events_of(path)
    return str(caught.value)


def written(folder: Path, data: bytes) -> Path:
    path = folder / "file"
    path.write_bytes(data)
    return path


@pytest.mark.parametrize(
    ("data", "sentence"),
    [
        (b"", "is empty"),
        (b"  \n\t ", "nothing but blanks"),
        (b"\x7fELF\x02\x01", "is a program"),
        (b"PK\x03\x04....", "zip archive"),
        (b"SQLite format 3\0...", "SQLite"),
        (b"\x28\xb5\x2f\xfd....", "zstd"),
        (b"\x80\x04\x95....", "pickle"),
        (b"abc\0def", "no text"),
        ("{}".encode("utf-16"), "UTF-16"),
        (b"hello world", "no kind of file that tuimon reads"),
        (b"{}", "no traceEvents"),
        (b"[]", "not of a trace's events"),
        (b"[1, 2]", "not of a trace's events"),
        (b"5", "no kind of file that tuimon reads"),
        (b'{"a": 1', "no traceEvents"),
        (b'{"traceEvents": 5}', "no traceEvents"),
        (b'{"traceEvents": []}', "neither operators nor kernels"),
        (b'{"traceEvents": [{}, {"ph": "X"}]}', "neither operators nor kernels"),
        (b'{"schema": "tuimon.report/1", "target": {}}', "a report that tuimon wrote"),
        (b'{"schema": "1.0.1", "nodes": []}', "execution trace"),
        (b'{"a": "' + b"x" * 100, "no traceEvents"),
        (b'{"traceEvents": [' + b"[" * 200_000, "damaged"),
        (b"[" * 200_000, "damaged"),
        (b'{"a":' * 100_000, "damaged"),
        (b'{"traceEvents": [{"ts": ' + b"9" * 6000 + b"}]}", "damaged"),
        (gzip.compress(b"hello", mtime=0), "no kind of file that tuimon reads"),
        (gzip.compress(b"", mtime=0), "nothing but blanks"),
        (b"\x1f\x8b", "ends in the middle"),
        (b"\x1f\x8bgarbage and more of it", "damaged"),
    ],
)
def test_what_is_no_trace_is_said_to_be_none(data: bytes, sentence: str, tmp_path: Path) -> None:
    said = refused(written(tmp_path, data))
    assert sentence in said or (sentence == "nothing but blanks" and said == "is empty")


def test_what_is_no_file(tmp_path: Path) -> None:
    assert "no such file" in refused(tmp_path / "none")
    (tmp_path / "folder").mkdir()
    assert "finds nothing to read: it has no files" in refused(tmp_path / "folder")
    os.mkfifo(tmp_path / "fifo")
    assert "is a fifo" in refused(tmp_path / "fifo")
    assert "is a device" in refused(Path("/dev/null"))
    assert "a name that none has" in refused(Path("a\0b"))
    assert "cannot be opened" in refused(Path("x" * 5000))
    loop = tmp_path / "loop"
    loop.symlink_to(loop)
    assert "cannot be opened" in refused(loop)


@pytest.mark.skipif(os.geteuid() == 0, reason="root may read every file")
def test_no_permission(tmp_path: Path) -> None:
    path = written(tmp_path, b"{}")
    path.chmod(0)
    assert "permission denied" in refused(path)


def test_no_permission_of_the_system(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def denied(*_: Any) -> int:
        raise PermissionError(13, "Permission denied")

    monkeypatch.setattr("tuimon.sources.trace_file.os.open", denied)
    assert refused(tmp_path / "x") == "cannot be opened: permission denied"


@pytest.mark.parametrize("pack", [bytes, gzip.compress])
def test_a_file_that_is_cut_off_is_read_up_to_there(pack: Any, tmp_path: Path) -> None:
    whole = pack(trace(*[{**OP, "ts": float(n * 100)} for n in range(3000)]))
    path = tmp_path / "t.json"
    counts = []
    for share in (0.3, 0.6, 0.9):
        path.write_bytes(whole[: int(len(whole) * share)])
        found = kineto.read(path)
        assert "read up to there" in found.note
        counts.append(found.seen.rows[0][6])
    assert 0 < counts[0] < counts[1] < counts[2] < 3000
    noted = [one.why for one in events_of(path) if isinstance(one, ev.NotAvailable)]
    assert any("read up to there" in why for why in noted)


def test_a_bomb_is_not_unpacked(tmp_path: Path) -> None:
    deflate = zlib.compressobj(9, zlib.DEFLATED, 31)
    path = tmp_path / "bomb"
    with path.open("wb") as file:
        file.write(deflate.compress(b'{"traceEvents": [' + json.dumps(OP).encode() + b","))
        for _ in range(64):
            file.write(deflate.compress(b" " * 2**20))
        file.write(deflate.flush())
    assert path.stat().st_size < 100_000
    tracemalloc.start()
    found = kineto.read(path, most=2**24)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert "unpacks to more than 16 MB" in found.note and found.seen.rows
    assert peak < 16 * 2**20


def test_an_event_without_an_end_is_not_kept_whole(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(trace_file, "LONGEST_VALUE", 2**21)
    path = written(tmp_path, trace(OP)[:-2] + b', {"name": "' + b"x" * 2**23)
    assert "damaged" in kineto.read(path).note


def test_members_one_behind_the_other(tmp_path: Path) -> None:
    data = trace(OP)
    path = written(tmp_path, gzip.compress(data[:20]) + gzip.compress(data[20:]) + b"\0" * 50)
    assert kineto.read(path).seen.rows and not kineto.read(path).note


def test_bytes_that_are_no_utf8(tmp_path: Path) -> None:
    path = written(tmp_path, trace(OP).replace(b"aten::mm", b"aten::\xff\xfe\x01m"))
    assert "\ufffd" in kineto.read(path).seen.rows[0][1]


def test_chunks_may_end_anywhere(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = written(tmp_path, trace(OP, {**OP, "name": "aten::ü"}, host_name="é", baseTimeNanoseconds=12345))
    whole = kineto.read(path)
    for size in (1, 2, 3, 7, 50):
        monkeypatch.setattr(trace_file, "CHUNK", size)
        assert kineto.read(path) == whole
    assert whole.seen.rows and not whole.note


ANYTHING = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=8),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(max_size=6), inner, max_size=4),
    max_leaves=8,
)
FIELDS = st.sampled_from(["ph", "cat", "name", "pid", "tid", "ts", "dur", "args"])
ARGS = st.sampled_from(["Input Dims", "Input type", "Concrete Inputs", "correlation", "device", "Sequence number"])
KERNEL = {"ph": "X", "cat": "kernel", "name": "k", "pid": 0, "tid": 7, "ts": 30.0, "dur": 5.0,
          "args": {"correlation": 5, "device": 0}}  # fmt: skip
LAUNCH = {"ph": "X", "cat": "cuda_runtime", "name": "cudaLaunchKernel", "pid": 1, "tid": 1, "ts": 20.0, "dur": 1.0,
          "args": {"correlation": 5}}  # fmt: skip
REGION = {
    "ph": "X",
    "cat": "cpu_op",
    "name": "Torch-Compiled Region: 0/0",
    "pid": 1,
    "tid": 1,
    "ts": 5.0,
    "dur": 90.0,
    "args": {},
}


MORE = [
    {**OP, "name": "ProfilerStep#4", "cat": "user_annotation", "ts": 1.0, "dur": 95.0, "args": {}},
    {**OP, "name": "TorchDynamo Cache Lookup", "ts": 3.0, "dur": 1.0, "args": {}},
    {**OP, "name": "CompiledFunction", "ts": 6.0, "dur": 30.0, "args": {"Sequence number": 3}},
    {**OP, "name": "CompiledFunctionBackward", "tid": 2, "ts": 60.0, "dur": 30.0, "args": {"Sequence number": 3}},
    {**OP, "name": "aten::item", "ts": 50.0, "dur": 4.0, "args": {}},
    {**LAUNCH, "name": "cudaStreamSynchronize", "ts": 51.0},
    {**OP, "name": "enumerate(DataLoader)#x.__next__", "cat": "user_annotation", "ts": 52.0, "dur": 4.0, "args": {}},
]


def check(found: list[ev.Event]) -> None:
    for event in found:
        checked(event)


HEADERS = st.sampled_from(["deviceProperties", "distributedInfo", "baseTimeNanoseconds", "schema", "nodes"])


@settings(max_examples=100, deadline=None)
@given(
    st.lists(st.tuples(st.integers(0, 3 + len(MORE)), FIELDS | ARGS, ANYTHING), max_size=4),
    st.dictionaries(HEADERS, ANYTHING, max_size=3),
)
def test_any_value_anywhere(changes: list[tuple[int, str, Any]], header: dict[str, Any]) -> None:
    events: list[dict[str, Any]] = [json.loads(json.dumps(one)) for one in (OP, KERNEL, LAUNCH, REGION, *MORE)]
    for at, name, value in changes:
        place = events[at] if name in events[at] else events[at].get("args")
        if isinstance(place, dict):
            place[name] = value
    check(told(trace(*events, **header)))


def test_what_is_put_in_there_is_all_told() -> None:
    found = told(trace(OP, KERNEL, LAUNCH, REGION, *MORE))
    (spans,) = [one for one in found if isinstance(one, ev.SpansSeen)]
    assert spans.spans and spans.lookups and spans.gaps
    assert {one.role for one in found if isinstance(one, ev.InstrumentAdded)} == {"mark", "forward", "backward", "data"}


@settings(max_examples=80, deadline=None)
@given(st.binary(max_size=200) | ANYTHING.map(lambda value: json.dumps(value).encode()) | st.text(max_size=80).map(str.encode))
def test_any_bytes(data: bytes) -> None:
    check(told(data))
    check(told(gzip.compress(data)))


@settings(max_examples=100, deadline=None)
@given(st.integers(0, 2000), st.binary(max_size=6), st.integers(0, 40))
def test_a_damaged_trace(at: int, put: bytes, gone: int) -> None:
    whole = trace(OP, KERNEL, LAUNCH, REGION, *MORE)
    at %= len(whole)
    check(told(whole[:at] + put + whole[at + gone :]))
    packed = gzip.compress(whole)
    at %= len(packed)
    check(told(packed[:at] + put + packed[at + gone :]))


def told(data: bytes) -> list[ev.Event]:
    number = os.memfd_create("trace")
    try:
        os.write(number, data)
        return events_of(Path(f"/proc/self/fd/{number}"))
    except Unreadable as error:
        assert str(error) and "\n" not in str(error)
        return []
    finally:
        os.close(number)


def test_a_text_closes_its_file(tmp_path: Path) -> None:
    before = len(os.listdir("/proc/self/fd"))
    for data in (b"", b"{}", b"abc", trace(OP), b"\x7fELF", b"a,b,c,d\n1,2,3,4\n"):
        told(data)
    Text(written(tmp_path, b"{}")).close()
    assert len(os.listdir("/proc/self/fd")) <= before
