"""The feed between a session and the model: ends of every kind, messages that cannot be read, a flood."""

from __future__ import annotations

import os
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from tests.support.command import until
from tuimon import events as ev
from tuimon.attach.connection import Report, Session
from tuimon.feed import LiveFeed
from tuimon.hook import wire
from tuimon.tail import MOST_LINES, Tail


class FakeSession:
    """A session without a socket: the test plays the hook."""

    def __init__(self, pid: int, goodbye: dict[str, Any] | None = None) -> None:
        self.pid, self.how, self.hello, self.report = pid, "run", {}, Report()
        self.goodbye = goodbye
        self.brings_sources = False
        self.clock = time.monotonic_ns
        self.detached = 0
        self.sink: Callable[[int, bytes], None] = lambda kind, body: None
        self.on_end: Callable[[str], None] = lambda reason: None

    def start(self, sink: Callable[[int, bytes], None], on_end: Callable[[str], None]) -> None:
        self.sink, self.on_end = sink, on_end

    def detach(self) -> dict[str, Any] | None:
        self.detached += 1
        return self.goodbye


@contextmanager
def feeding(session: FakeSession, **more: Any) -> Iterator[LiveFeed]:
    feed = LiveFeed(session, "python train.py", **more)  # type: ignore[arg-type]
    feed.start()
    try:
        yield feed
    finally:
        feed.detach()


def ended(feed: LiveFeed) -> bool:
    feed.pump()
    return feed.model.target.ended is not None


def program(text: str) -> subprocess.Popen[bytes]:
    return subprocess.Popen([sys.executable, "-c", text], stdin=subprocess.PIPE)


@pytest.mark.parametrize(
    ("text", "status", "detail"),
    [("import sys; sys.exit(3)", 3, "exit status 3"), ("import os; os.kill(os.getpid(), 9)", -9, "killed by SIGKILL")],
)
def test_a_program_of_ours_that_ends_tells_how(text: str, status: int, detail: str) -> None:
    process = program(text)
    session = FakeSession(process.pid)
    with feeding(session, process=process) as feed:
        session.on_end("connection closed")
        until(lambda: ended(feed), "the end")
        target = feed.model.target
        assert (target.ended, target.status) == ("exited", status)
        assert detail in target.ended_detail


def test_a_connection_that_is_lost_while_the_program_goes_on_is_no_end_of_the_program(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("tuimon.feed.END_GRACE_S", 0.05)
    process = program("import sys; sys.stdin.read()")
    session = FakeSession(process.pid)
    try:
        with feeding(session, process=process) as feed:
            session.on_end("connection closed")
            until(lambda: ended(feed), "the end of the connection")
            assert feed.model.target.ended == "lost"
            assert "goes on" in feed.model.target.ended_detail
    finally:
        process.kill()
        process.wait()


def test_a_process_that_is_not_ours_and_ends() -> None:
    process = program("pass")
    session = FakeSession(process.pid)
    with feeding(session) as feed:
        session.on_end("connection closed")  # the process is a zombie of ours by now, or soon
        until(lambda: ended(feed), "the end")
        assert feed.model.target.ended == "exited"
    process.wait()


def test_detach_is_said_once_and_what_is_left_is_known() -> None:
    session = FakeSession(os.getpid(), {"detached": True, "left": ["a log handler"]})
    with feeding(session) as feed:
        feed.detach()
        session.on_end("detached")
        feed.pump()
        assert feed.model.target.ended == "detached"
        assert feed.left == ["a log handler"]
    assert session.detached == 1


def test_a_message_that_cannot_be_read_is_a_gap_and_no_crash() -> None:
    session = FakeSession(os.getpid())
    with feeding(session) as feed:
        session.sink(wire.JSON_FRAME, b'{"k": "facts"}')
        feed.pump()
        assert "could not be read" in feed.model.coverage.not_available["some events"]


def test_what_does_not_fit_is_counted_and_said() -> None:
    session = FakeSession(os.getpid())
    with feeding(session) as feed:
        rows = tuple((1, 0, 0, 1, 2) for _ in range(200_000))
        for _ in range(2):
            feed._inbox.put(ev.Samples(2, rows))
        feed.pump()
        # a few more than the second batch: readings of GPU and host take places too
        assert int(feed.model.coverage.not_available["some events"].split()[0]) >= len(rows)


def test_the_jobs_output_becomes_lines(tmp_path: Path) -> None:
    path = tmp_path / "out.log"
    path.write_bytes(b"one\nprogress 1\rprogress 2\r\n\xff\n" + b"".join(b"%d\n" % number for number in range(500)) + b"half")
    lines: list[ev.Event] = []
    tail = Tail(path, lines.append)
    tail.start()
    until(lambda: lines, "the first lines")
    with path.open("ab") as file:
        file.write(b" a line\n")
    tail.stop()
    texts = [line.text for line in lines if isinstance(line, ev.Line)]
    assert "left out here" in texts[0]
    assert texts[-1] == "half a line"
    assert len(texts) == 1 + MOST_LINES + 1


def test_a_progress_bar_is_one_line(tmp_path: Path) -> None:
    path = tmp_path / "out.log"
    path.write_bytes(b"10%\r20%\r100%\r\nnext\n")
    lines: list[ev.Event] = []
    tail = Tail(path, lines.append)
    tail.start()
    tail.stop()
    assert [line.text for line in lines if isinstance(line, ev.Line)] == ["100%", "next"]


@pytest.mark.parametrize("start", [float("inf"), 10**400, "x", [], {}])
def test_messages_that_cannot_be_read_are_counted_and_the_reading_goes_on(start: object) -> None:
    session = FakeSession(os.getpid(), {"detached": True})
    with feeding(session) as feed:
        message = {"k": "past_compile", "t": 1, "wall": 1.0, "metrics": {"start_time": start, "compile_id": "0/0"}}
        for _ in range(3):
            session.sink(wire.JSON_FRAME, wire.json_frame(message)[wire.HEADER.size :])
        facts = {"k": "facts", "t": 1, "wall": 1.0, "python": "3.12"}
        session.sink(wire.JSON_FRAME, wire.json_frame(facts)[wire.HEADER.size :])
        feed.pump()
        assert feed.model.coverage.not_available["some events"].startswith("3 messages of the hook could not be read")
        assert feed.model.target.python == "3.12"


def test_whatever_the_decoder_raises_the_reader_goes_on() -> None:
    session = FakeSession(os.getpid(), {"detached": True})
    with feeding(session) as feed:
        feed._decoder.frame = None  # type: ignore[method-assign, assignment]
        session.sink(wire.JSON_FRAME, b"{}")
        feed.pump()
        assert "TypeError" in feed.model.coverage.not_available["some events"]


@pytest.mark.parametrize("odd", [5, "word", {"a": 1}, None, [1, None]])
def test_an_odd_hello_and_an_odd_goodbye_hold_nothing_up(odd: object) -> None:
    session = FakeSession(os.getpid(), {"detached": True, "left": odd})
    session.hello = {"argv": odd}
    feed = LiveFeed(session)  # type: ignore[arg-type]
    feed.start()
    feed.detach()
    assert ended(feed) and feed.model.target.ended == "detached"
    assert feed._around is not None and not feed._around.host.alive
    assert feed.left == ([] if not isinstance(odd, list) else ["1", "None"])


def test_a_reader_that_fails_lets_go_of_the_connection() -> None:
    """The hook takes itself out when the connection is shut; a reader that dies must not leave it open and unread."""
    ours, theirs = socket.socketpair()
    reasons: list[str] = []
    over = threading.Event()

    def sink(kind: int, body: bytes) -> None:
        raise OverflowError("too much")

    def on_end(reason: str) -> None:
        reasons.append(reason)
        over.set()

    # early frames that claim to be what they are not are no reason to fail either
    session = Session(ours, wire.Decoder(), [(wire.JSON_FRAME, b'"offers"')], pid=1, hello={}, how="run")
    with ours, theirs:
        theirs.settimeout(10)
        session.start(sink, on_end)
        assert over.wait(60)
        assert session.over and "OverflowError: too much" in reasons[0]
        assert b'"detach"' in theirs.recv(1000)
        assert theirs.recv(1000) == b""
