"""What a job's hook, or what has got in its place, sends; and what the monitor sends to a hook."""

from __future__ import annotations

import contextlib
import copy
import socket
import sys
from collections.abc import Sequence
from typing import Any

from tests.fuzz.draws import Draw, changed
from tests.fuzz.seen import looked_at
from tests.sources.test_live_anything import MESSAGES, SAMPLES, T
from tuimon.hook import wire
from tuimon.hook.session import Session
from tuimon.model import Model
from tuimon.sources.live import LiveDecoder

MOST_FRAMES = 60


def stream(data: bytes, thorough: bool) -> None:
    """Bytes of the socket, in two pieces."""
    decoder, live, model = wire.Decoder(), LiveDecoder(1, "x", "run"), Model()
    cut = data[0] if data else 0
    with contextlib.suppress(wire.WireError):
        for part in (data[1:cut], data[max(1, cut) :]):
            for kind, body in decoder.feed(part):
                model.apply(live.frame(kind, body))
    looked_at(model, thorough=thorough)


def stream_seeds() -> list[bytes]:
    """Each message, and all with samples."""
    frames = [wire.json_frame(message) for message in MESSAGES]
    return [*(b"\x40" + one for one in frames), b"\x90" + b"".join(frames) + wire.samples_frame(SAMPLES)]


def bodies(data: bytes, thorough: bool) -> None:
    """The bodies of JSON frames, a line each, and the same bytes as samples."""
    live, model = LiveDecoder(1, "x", "run"), Model()
    for body in data.split(b"\n")[:MOST_FRAMES]:
        with contextlib.suppress(wire.WireError):
            model.apply(live.frame(wire.JSON_FRAME, body))
    with contextlib.suppress(wire.WireError):
        model.apply(live.frame(wire.SAMPLES_FRAME, data[: len(data) // wire.SAMPLE.size * wire.SAMPLE.size]))
    looked_at(model, thorough=thorough)


def bodies_seeds() -> list[bytes]:
    """Each message, and all."""
    lines = [wire.json_frame(message)[wire.HEADER.size :] for message in MESSAGES]
    return [*lines, b"\n".join(lines)]


def messages(data: bytes, thorough: bool) -> None:
    """Sound messages in which some values are others, some come twice and some not, with steps of samples between them."""
    draw = Draw(data)
    told = copy.deepcopy(MESSAGES)
    for _ in range(1 + draw.below(6)):
        changed(draw, told[draw.below(len(told))])
    for _ in range(draw.below(3)):
        told.insert(draw.below(len(told)), told[draw.below(len(told))])
    live, model = LiveDecoder(1, "x", "run"), Model()
    for message in told:
        try:
            model.apply(live.frame(wire.JSON_FRAME, wire.json_frame(message)[wire.HEADER.size :]))
        except (wire.WireError, ValueError) as error:
            if not isinstance(error, wire.WireError) and "integer string conversion" not in str(error):
                raise
    for rows in (SAMPLES, *(_rows(draw) for _ in range(draw.below(5)))):
        model.apply(live.frame(wire.SAMPLES_FRAME, wire.samples_frame(rows)[wire.HEADER.size :]))
    looked_at(model, thorough=thorough)


def _rows(draw: Draw) -> list[tuple[int, int, int, int, int]]:
    """Calls as they come, and now and then as none can be."""
    found, at = [], T + draw.below(1000) * 1_000_000
    for _ in range(draw.below(40)):
        begin = at if draw.below(8) else draw.number("<Q")
        end = begin + draw.below(65536) * 100 if draw.below(8) else draw.number("<Q")
        number = draw.below(7) if draw.below(16) else draw.number("<I")
        found.append((number, draw.pick((1, 1, 1, 0, 2, 2**64 - 1)), draw.below(4), begin, min(end, 2**64 - 1)))
        at += draw.below(256) * 100_000
    return found


def commands(data: bytes, thorough: bool) -> None:
    """What a hook hears from its socket: it may end the session by that, and nothing else."""
    del thorough
    ours, theirs = socket.socketpair()
    with ours, theirs:
        theirs.setblocking(False)
        session = Session(ours, {"life": None}, {})
        ours.settimeout(0.0)
        with contextlib.suppress(OSError):
            theirs.sendall(data[:32768])
            theirs.shutdown(socket.SHUT_WR)
        session.serve()
        assert not session._reason.startswith("hook failed") or "WireError" in session._reason, session._reason
        failed = {name: state for name, state in session.instruments.items() if state.startswith("failed")}
        assert not failed, failed
    assert "torch" not in sys.modules


def commands_seeds() -> list[bytes]:
    """What tuimon sends."""
    window = {"cmd": "window", "window": 1, "steps": 5, "most_s": 2.0, "dir": "/nowhere"}
    told: Sequence[dict[str, Any]] = ({"cmd": "detach"}, window, {"cmd": "window_cancel", "window": 1})
    return [b"".join(map(wire.json_frame, told)), *map(wire.json_frame, told)]


def ordered(data: bytes, thorough: bool) -> None:
    """The same, by commands in which some values are others."""
    draw = Draw(data)
    frames = []
    for _ in range(1 + draw.below(4)):
        message = draw.pick(
            (
                {"cmd": "window", "window": 1, "steps": 5, "most_s": 2.0, "dir": "/dev/shm"},
                {"cmd": "window_cancel", "window": 1},
                {"cmd": "detach"},
            )
        )
        message = dict(message)
        changed(draw, message)
        with contextlib.suppress(ValueError):
            frames.append(wire.json_frame(message))
    commands(b"".join(frames), thorough)
