"""Recordings: their blocks, what is in them, and what is made of them: comparisons, exports, a place in the middle."""

from __future__ import annotations

import contextlib
import csv
import io
import json
import struct
import time
import zlib
from functools import cache, partial
from pathlib import Path
from typing import Any

from tests.fuzz.draws import Draw, changed
from tests.fuzz.of_files import folder, of_file
from tests.fuzz.seen import harmless, looked_at
from tests.report.compared import Run
from tests.report.obeys import wrong
from tuimon import events as ev
from tuimon.commands import export
from tuimon.model import Model
from tuimon.playback.playing import Playback
from tuimon.playback.position import Place, place
from tuimon.report.compare.build import compare
from tuimon.report.compare.render import FORMATS, render
from tuimon.report.series import COLUMNS
from tuimon.sources import carried
from tuimon.sources.files import Opened, open_any
from tuimon.sources.recording import format as layout
from tuimon.sources.trace_file import Unreadable

STREAMS = Path(__file__).parents[1] / "model" / "streams"
SEPARATOR = b"\xfe\xfd"
PATIENT_S = 60.0


def blocks(data: bytes, thorough: bool) -> None:
    """Blocks whose sums fit, with four bytes of their heads and a body each from the bytes."""
    out = [layout.FileHead(b"s" * 16, 1, 1.7e9, 5, ev.SCHEMA, False).pack()]
    for piece in data.split(SEPARATOR)[:6]:
        if len(piece) < 4:
            continue
        head, body = piece[:4], piece[4:]
        codec, packed = layout.pack_body(body)
        kind = layout.DATA if head[0] < 200 else head[0] % 6
        sizes = (len(packed), len(body), head[1], head[2])
        out.append(layout.BlockHead(kind, codec, *sizes, 0, 0, head[3], 0, zlib.crc32(packed)).pack() + packed)
    of_file(b"".join(out), thorough)


def blocks_seeds() -> list[bytes]:
    """Some events of each stream in a block."""
    seeds = []
    for lines in encoded():
        some = [json.dumps(one).encode() for one in lines[:12]]
        seeds.append(b"\0\x0c\0\0" + b"".join(layout.ITEM.pack(layout.EVENT, len(one)) + one for one in some))
    return seeds


@cache
def encoded() -> tuple[list[dict[str, Any]], ...]:
    """Streams of events as they lie in a file."""
    run = Run(steps=12, boundary_us=300, phases=(("warm", 0), ("train", 6)))
    told = [[json.loads(line) for line in path.read_text().splitlines()] for path in sorted(STREAMS.glob("*.json"))]
    return ([json.loads(json.dumps(carried.encode(event))) for event in run.events()], *told)


def stream(draw: Draw) -> list[ev.Event]:
    """A sound stream in which some values are others; an event that cannot be any more is none."""
    told = json.loads(json.dumps(draw.pick(encoded())))
    for _ in range(draw.below(8)):
        changed(draw, told[draw.below(len(told))])
    for _ in range(draw.below(3)):
        told.insert(draw.below(len(told)), told.pop(draw.below(len(told))))
    found: list[ev.Event] = []
    for one in told:
        with contextlib.suppress(ValueError):
            found += carried.decode(one)
    return found


def folded(data: bytes, thorough: bool) -> None:
    """A stream of events, taken in."""
    model = Model()
    events = stream(Draw(data))
    for at in range(0, len(events), 9):
        model.apply(events[at : at + 9])
    looked_at(model, thorough=thorough)


def compared(data: bytes, thorough: bool) -> None:
    """Two streams beside each other."""
    del thorough
    draw = Draw(data)
    sides = []
    for _ in range(2):
        model = Model()
        model.apply(stream(draw))
        sides.append(model)
    names = (f"a{draw.text()}", f"b{draw.text()}")
    phase = draw.pick((None, "train", "x"))
    made = compare(sides[0], sides[1], names=names, ranks=(1, 1 + draw.below(3)), phase=phase)
    for form in FORMATS:
        text = render(made, form)
        if form != "json":
            harmless(text)
    found = [one for one in wrong(json.loads(render(made, "json"))) if "less than the minimum" not in one]
    assert not found, found[:5]


def exported(data: bytes, thorough: bool) -> None:
    """A stream, or two as the ranks of one job, in the forms of other tools."""
    del thorough
    draw = Draw(data)
    members = []
    for number in range(1 + draw.below(2)):
        events = stream(draw)
        batches = [events[at : at + 20] for at in range(0, len(events), 20)]
        opened = Opened("recording", Path("x"), f"rank {number}{draw.text()}", number, partial(_given, batches))
        members.append(opened)
    trace = io.StringIO()
    export._perfetto(trace, [export._begun(one, _ignored) for one in members])
    told = json.loads(trace.getvalue())
    for one in told["traceEvents"]:
        assert "ts" not in one or isinstance(one["ts"], (int, float))
        assert one.get("dur", 0) >= 0
    table = io.StringIO(newline="")
    export._csv(table, [export._begun(one, _ignored) for one in members])
    table.getvalue().encode()
    assert all(len(row) == len(COLUMNS) for row in csv.reader(io.StringIO(table.getvalue())))


def _given(batches: list[list[ev.Event]], _progress: object) -> Any:
    return iter(batches)


def _ignored(_read: int, _of: int) -> None:
    pass


def typed(data: bytes, thorough: bool) -> None:
    """A place that somebody types."""
    del thorough
    draw = Draw(data)
    at_s, of_s = abs(draw.number("<i")) / 1e3, abs(draw.number("<i")) / 1e3
    began_s = draw.pick((1.7e9, None, 0.0, layout.LATEST_S))
    text = draw.rest().decode("utf-8", "replace")
    if draw.over and text.startswith("*"):
        text = text[1:2] * 500 + text[2:]
    found = place(text, at_s=at_s, of_s=draw.pick((None, of_s)), began_s=began_s, utc_offset_s=3600)
    assert found if isinstance(found, str) else (found.at_ns >= 0 and (found.step is None or found.step >= 0))


def typed_seeds() -> list[bytes]:
    """One of each form."""
    words = (b"1204", b"step 7", b"50%", b"03:12", b"3:12:59", b"90s", b"2m30s", b"+30s", b"-1m", b"1h2m3.5s", b"*9h", b"+*9s")
    return [bytes(9) + word for word in words]


def recording(draw: Draw) -> bytes:
    """A recording of a stream, some numbers of whose heads are others."""
    events = stream(draw)
    wall_s = draw.pick((1.7e9, 1.7e9, 1.7e9, draw.number("<d"), float("nan"), float("inf"), -1.0, 1e300))
    with contextlib.suppress(struct.error):
        out = [layout.FileHead(b"s" * 16, 1, wall_s, 5, ev.SCHEMA, False).pack()]
        at = 0
        for start in range(0, len(events), 16):
            items = [json.dumps(carried.encode(one)).encode() for one in events[start : start + 16]]
            at += draw.pick((10**9, 0, 10**15, 10**18))
            when = min(at, 2**64 - 1) if draw.below(8) else draw.number("<Q")
            beat = layout.ITEM.pack(layout.BEAT, 8) + layout.BEAT_ITEM.pack(when)
            body = b"".join(layout.ITEM.pack(layout.EVENT, len(one)) + one for one in items) + beat
            codec, packed = layout.pack_body(body)
            times = [draw.pick((start, -start, draw.number("<q"))) for _ in range(2)]
            sizes = (len(packed), len(body), len(items) + 1, 0)
            head = layout.BlockHead(layout.DATA, codec, *sizes, *times, min(at, 2**63), start, zlib.crc32(packed))
            out.append(head.pack() + packed)
        if draw.below(4):
            out.append(layout.BlockHead(layout.END, layout.PLAIN, 0, 0, 0, 0, 0, 0, 0, 0, 0).pack())
        return b"".join(out)
    return b""


def played(data: bytes, thorough: bool) -> None:
    """A recording that is played, gone through and stepped through."""
    draw = Draw(data)
    content = recording(draw)
    of_file(content, thorough=False)
    path = folder() / "file"
    try:
        (opened,), _ = open_any(path)
    except Unreadable:
        return
    clock = [0]
    playing = Playback(opened, paused=bool(draw.below(2)), clock=lambda: clock[0])
    playing.start()
    assert playing.wait(PATIENT_S)
    try:
        for _ in range(draw.below(12)):
            said = _asked(draw, playing)
            assert said is None or (isinstance(said, (str, float)) and said)
            clock[0] += draw.below(4) * 10**9
            deadline = time.monotonic() + PATIENT_S
            while True:
                events = playing.drain()
                playing.model.apply(events)
                _judged(playing, events)
                if not playing.position().going:
                    break
                assert time.monotonic() < deadline, playing.position()
                clock[0] += 10**8
                time.sleep(0.0005)
    finally:
        playing.detach()
        playing._thread.join(PATIENT_S)
    looked_at(playing.model, thorough=thorough)


def _asked(draw: Draw, playing: Playback) -> object:
    how = draw.below(7)
    if how == 0:
        return playing.go(draw.pick(("0", "3", "99999999", "50%", "100%", "03:12", "1h", "+3s", "-2s", "0.5s", draw.text())))
    if how == 1:
        return playing.step(draw.pick((1, -1, 5, -5)))
    if how == 2:
        return playing.play(bool(draw.below(2)))
    if how == 3:
        return playing.speed(draw.pick((1, -1)))
    if how == 4:
        return playing.finding(draw.pick((1, -1)))
    if how == 5:
        return playing.follow(draw.number("<q"))
    return playing.seek(Place("here", at_ns=abs(draw.number("<q")) >> 1))


def _judged(playing: Playback, events: list[ev.Event]) -> None:
    assert playing.refused is None or "fault of tuimon" not in playing.refused, playing.refused
    for event in events:
        if isinstance(event, ev.NotAvailable):
            assert "could not be read on" not in event.why, event
