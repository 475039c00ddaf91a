"""The queue to the line: nobody waits, what does not fit is counted, what arrives is whole."""

from __future__ import annotations

import os
import threading
import time
from collections.abc import Iterator

import pytest

from tests.attach.conftest import until
from tuimon.hook import wire
from tuimon.relay import outgoing
from tuimon.relay.outgoing import Outgoing
from tuimon.relay.protocol import PASSED_ON

ROWS = 1000
SAMPLES = wire.samples_frame([(1, 2, 0, 3, 4)] * ROWS)[wire.HEADER.size :]
FACT = b'{"k":"status","fill":"' + b"x" * 200 + b'"}'


class Pipe:
    """A line of this process: what is written at one end is read at the other only when it is asked for."""

    def __init__(self) -> None:
        self.reading, self.writing = os.pipe()
        self.out = Outgoing(self.writing)
        self.decoder = wire.Decoder()
        self.frames: list[tuple[int, bytes]] = []
        self.taken = 0

    def take(self, most: int = 1 << 20) -> int:
        """Read once; gives how many bytes there were."""
        data = os.read(self.reading, most)
        self.taken += len(data)
        self.frames += self.decoder.feed(data)
        return len(data)

    def take_all(self) -> None:
        """Read, saying so, until nothing is left to come."""
        while not self.out.flush(0.0) or self.taken < self.out.sent:
            self.out.got(self.taken)
            if self.taken < self.out.sent:
                self.take()

    def of_session(self, session: int) -> list[tuple[int, bytes]]:
        """The frames of a session among those read."""
        found, current = [], 0
        for kind, body in self.frames:
            if kind == wire.JSON_FRAME and body.startswith(b'{"relay":"of"'):
                current = wire.read_json(body)["s"]
            elif (kind == wire.SAMPLES_FRAME or body.startswith(PASSED_ON)) and current == session:
                found.append((kind, body.removeprefix(PASSED_ON) if kind == wire.JSON_FRAME else body))
        return found


@pytest.fixture
def pipe() -> Iterator[Pipe]:
    """An Outgoing on a pipe."""
    made = Pipe()
    yield made
    os.close(made.reading)  # the writer's next write fails, and its thread ends


def rows(frames: list[tuple[int, bytes]]) -> int:
    """How many samples there are in the frames."""
    return sum(len(body) // wire.SAMPLE.size for kind, body in frames if kind == wire.SAMPLES_FRAME)


def test_frames_arrive_as_they_were_each_at_its_session(pipe: Pipe) -> None:
    for number in range(50):
        pipe.out.frame(1 + number % 2, wire.JSON_FRAME, b'{"k":"n","n":%d}' % number)
        if number % 10 == 0:
            pipe.out.control("beat", t=number)
    pipe.out.frame(1, wire.SAMPLES_FRAME, SAMPLES)
    pipe.take_all()
    assert [wire.read_json(body)["n"] for kind, body in pipe.of_session(1) if kind == 1] == list(range(0, 50, 2))
    assert [wire.read_json(body)["n"] for kind, body in pipe.of_session(2) if kind == 1] == list(range(1, 50, 2))
    assert pipe.of_session(1)[-1] == (wire.SAMPLES_FRAME, SAMPLES)


def test_a_line_that_takes_nothing_holds_nobody_up(pipe: Pipe) -> None:
    put = 400
    began = time.monotonic()
    for _ in range(put):
        pipe.out.frame(1, wire.SAMPLES_FRAME, SAMPLES)
        pipe.out.frame(1, wire.JSON_FRAME, FACT)
    assert time.monotonic() - began < 60.0  # it would be for ever
    dropped = pipe.out.dropped(1)
    assert dropped > 0
    pipe.take_all()
    # every fact is there although samples were dropped, and every sample is either there or counted
    assert sum(body == FACT for _, body in pipe.of_session(1)) == put
    assert rows(pipe.of_session(1)) + dropped == put * ROWS


def test_facts_are_bounded_too(pipe: Pipe, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(outgoing, "FACTS_LIMIT", 100_000)
    for _ in range(5000):
        pipe.out.frame(3, wire.JSON_FRAME, FACT)
    pipe.out.control("beat", t=1)
    pipe.take_all()
    arrived = sum(body == FACT for _, body in pipe.of_session(3))
    assert arrived + pipe.out.dropped(3) == 5000 and pipe.out.dropped(3) > 4000
    assert pipe.frames[-1][1].startswith(b'{"relay":"beat"')


def test_no_more_than_a_window_is_on_its_way(pipe: Pipe) -> None:
    for _ in range(100):
        pipe.out.frame(1, wire.JSON_FRAME, b'"' + b"x" * 100_000 + b'"')
    while pipe.out.sent < pipe.out.window:
        pipe.take()
    until(lambda: pipe.taken == pipe.out.sent or pipe.take() is None)
    # all that was sent has been read, and without a word from the reader no more comes
    assert pipe.out.window <= pipe.out.sent < pipe.out.window + 110_000
    assert not pipe.out.flush(0.05)
    pipe.take_all()
    assert len(pipe.of_session(1)) == 100


def test_the_window_follows_what_the_line_carries(pipe: Pipe, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(outgoing, "MEASURED_S", 0.05)
    stop = threading.Event()

    def fill() -> None:
        while not stop.is_set():
            pipe.out.frame(1, wire.SAMPLES_FRAME, SAMPLES)
            stop.wait(0.001)

    def swallow() -> None:  # ssh and TCP take megabytes at once, whatever arrives at the other end
        while os.read(pipe.reading, 1 << 20):
            pass

    feeders = [threading.Thread(target=work, daemon=True) for work in (fill, swallow)]
    for feeder in feeders:
        feeder.start()
    arrived = 0
    deadline = time.monotonic() + 60
    slow = outgoing.SMALLEST * 2
    while (pipe.out.window > slow or pipe.out.room > 2 * slow) and time.monotonic() < deadline:
        arrived = min(arrived + 500, pipe.out.sent)
        pipe.out.got(arrived)
        stop.wait(0.01)  # 50 kB a second or less
    narrow = pipe.out.window
    assert narrow <= slow and pipe.out.room <= 2 * slow
    while pipe.out.window < 4 * narrow and time.monotonic() < deadline + 60:
        pipe.out.got(pipe.out.sent)
        stop.wait(0.001)
    assert pipe.out.window >= 4 * narrow
    stop.set()
    feeders[0].join()
    until(lambda: pipe.out.got(pipe.out.sent) or pipe.out.flush(0.01))
    os.close(pipe.writing)
    feeders[1].join(60)


def test_the_end_of_a_session_does_not_wait_behind_its_samples(pipe: Pipe) -> None:
    for _ in range(40):
        pipe.out.frame(1, wire.SAMPLES_FRAME, SAMPLES)
        pipe.out.frame(2, wire.SAMPLES_FRAME, SAMPLES)
    pipe.out.frame(1, wire.JSON_FRAME, FACT)
    while pipe.out.sent < pipe.out.window:
        pipe.take()
    until(lambda: pipe.out.held_up)
    pipe.out.hurry(1)
    pipe.out.control("over", s=1)
    pipe.take_all()
    assert rows(pipe.of_session(2)) + pipe.out.dropped(2) == 40 * ROWS
    assert pipe.out.dropped(1) > 0 and rows(pipe.of_session(1)) + pipe.out.dropped(1) == 40 * ROWS
    assert (wire.JSON_FRAME, FACT) in pipe.of_session(1)


def test_a_broken_line_is_over_and_takes_anything_without_a_word() -> None:
    reading, writing = os.pipe()
    out = Outgoing(writing)
    os.close(reading)
    out.control("beat")
    assert out.over.wait(60.0)
    out.frame(1, wire.JSON_FRAME, FACT)
    out.control("beat")
    assert out.flush(1.0)
    os.close(writing)
