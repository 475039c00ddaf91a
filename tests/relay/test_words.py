"""The words between the ends: a job cannot put any in, a far end that says wrong ones is refused by name, none is lost."""

from __future__ import annotations

import json
import os
import select
import threading
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.attach.conftest import until
from tests.relay.conftest import Talk, script
from tuimon.attach.connection import Report
from tuimon.attach.refusal import Refused
from tuimon.hook import wire
from tuimon.relay import attachment, near, place
from tuimon.relay.answers import KEPT, Answers
from tuimon.relay.line import Line
from tuimon.relay.outgoing import Outgoing
from tuimon.relay.place import Place
from tuimon.relay.remote import FarSession

HELLO = {"tuimon": "0", "t": 1}


class Wire:
    """A line to a far end that says what the test has it say. It answers beats and, unless told otherwise, attaches."""

    place = Place("gpu7", ("ssh",), True)

    def __init__(self) -> None:
        self.requests: list[dict[str, Any]] = []
        self.answering = True
        self.stalled = False
        self.hurried = threading.Event()
        self.ended = threading.Event()
        self._reading, self._writing = os.pipe()
        self.out = Outgoing(self._writing)

    def read(self, seconds: float) -> bytes | None:
        """As a `Line`."""
        return os.read(self._reading, 1 << 16) if select.select([self._reading], [], [], seconds)[0] else None

    def write(self, data: bytes, seconds: float) -> bool:
        """As a `Line`; one that is stalled takes nothing until it is hurried."""
        message = wire.read_json(data[wire.HEADER.size :])
        self.requests.append(message)
        if self.stalled:
            self.hurried.wait(seconds)
            return False
        if "beat" in message:
            self.out.control("beat", echo=message["beat"], t=1)
        elif "attach" in message and self.answering:
            self.attached(message["attach"])
        return True

    def attached(self, number: int) -> None:
        """Say that a session is there."""
        self.out.control("attached", s=number, pid=100 + number, hello={}, how="x", report={})

    def hurry(self) -> None:
        """As a `Line`."""
        self.hurried.set()

    def shut(self) -> None:
        """As a `Line`."""

    def end(self) -> None:
        """As a `Line`."""
        self.ended.set()

    close = end

    def says(self) -> str:
        """As a `Line`."""
        return ""

    def close_pipe(self) -> None:
        """See the writer's thread end."""
        os.close(self._reading)
        self.out.control("beat")
        assert self.out.over.wait(60.0)
        os.close(self._writing)


class Kept:
    """What a session has given."""

    def __init__(self, session: FarSession) -> None:
        self.session = session
        self.frames: list[bytes] = []
        self.ends: list[str] = []
        session.start(lambda _kind, body: self.frames.append(body), self.ends.append)


@pytest.fixture
def line() -> Iterator[Wire]:
    """A line."""
    made = Wire()
    yield made
    made.close_pipe()


def linked(line: Wire) -> near.Link:
    """A connection over it."""
    line.out.control("hello", **HELLO)
    return near.Link(line, b"")  # type: ignore[arg-type]


def test_a_job_cannot_speak_as_the_relay(line: Wire) -> None:
    words = [
        b'{"relay":"of","s":2}',
        b'{"k":"x"}',
        b'{"relay":"over","s":2,"gone":true}',
        b'>{"relay":"over","s":1}',
        b">",
        b"",
    ]
    with linked(line) as link:
        first, second = (Kept(link.open_session(pid, {})) for pid in (1, 2))
        for word in words:
            line.out.frame(1, wire.JSON_FRAME, word)
        line.out.frame(2, wire.JSON_FRAME, b'{"k":"last"}')
        until(lambda: second.frames)
        assert first.frames == words and second.frames == [b'{"k":"last"}']
        assert first.ends == second.ends == []


def test_a_frame_that_cannot_be_read_is_the_end_of_its_session_only(line: Wire) -> None:
    with linked(line) as link:
        first, second = (Kept(link.open_session(pid, {})) for pid in (1, 2))
        line.out.frame(1, wire.JSON_FRAME, b'{"offers"')
        line.out.frame(2, wire.JSON_FRAME, b'{"k":"last"}')
        until(lambda: second.frames)
        assert len(first.ends) == 1 and "cannot be read" in first.ends[0] and first.session.over
        assert {"detach": 1, "seconds": 1.0} in line.requests
        assert second.ends == [] and not link.over


@pytest.mark.parametrize(
    "word",
    [
        {"relay": "beat", "echo": 1, "t": 2**80},
        {"relay": "beat", "echo": -(2**80), "t": 1},
        {"relay": "hello", **HELLO, "t": 10**30},
        {"relay": "hello", **HELLO, "t": "now"},
        {"relay": "settled", "s": 1, "report": {"stops": 5}},
        {"relay": "settled", "s": 1, "report": {"stops": [10**400]}},
        {"relay": "settled", "s": 1, "report": {"left": 5}},
        {"relay": "over", "s": 1, "reason": "x", "goodbye": {"left": 5}},
        {"relay": "over", "s": [1]},
        {"relay": "waiting", "s": 1, "since": float("inf")},
        {"relay": "attached", "s": 2, "pid": "x", "hello": {}},
        {"relay": "attached", "s": 2, "pid": 1, "hello": {"argv": 5}},
        {"relay": "attached", "s": 1, "pid": 1, "hello": {}},
    ],
    ids=lambda word: json.dumps(word)[:60],
)
def test_a_wrong_word_is_the_end_by_name_and_every_session_hears_of_it(line: Wire, word: dict[str, Any]) -> None:
    with linked(line) as link:
        kept = Kept(link.open_session(1, {}))
        line.out.control(word.pop("relay"), **word)
        until(lambda: kept.ends)
        assert "not in the protocol" in kept.ends[0]
        assert line.ended.wait(60.0)
        with pytest.raises(Refused, match="not in the protocol"):
            link.find_targets()


def test_a_fault_in_the_reader_is_told_too(line: Wire, monkeypatch: pytest.MonkeyPatch) -> None:
    def fails(*_: object) -> None:
        raise RuntimeError("unforeseen")

    monkeypatch.setattr(FarSession, "settle", fails)
    with linked(line) as link:
        kept = Kept(link.open_session(1, {}))
        line.out.control("settled", s=1)
        until(lambda: kept.ends)
        assert "unforeseen" in kept.ends[0] and line.ended.wait(60.0)


def test_a_session_that_comes_too_late_is_taken_out(line: Wire, talk: Talk, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(near, "CANCEL_S", 0.0)
    line.answering = False
    talk.cancelled.set()
    with linked(line) as link:
        with pytest.raises(Refused, match="cancelled"):
            link.open_session(1, {}, talk)
        line.attached(1)
        until(lambda: any(request.get("detach") == 1 for request in line.requests))


def test_a_session_is_handed_over_or_nobody_has_it() -> None:
    session: Any = object()
    came: dict[str, Any] = {"relay": "attached"}
    late, untaken, taken = (Answers("attached", "refused") for _ in range(3))
    assert late.leave() is None and not late.put(came, session)
    assert untaken.put(came, session) and untaken.leave() is session
    assert taken.put(came, session) and taken.next(0) == came and taken.take_session() is session and taken.leave() is None
    assert not Answers("answer").put(came, session)


def test_what_an_attach_says_does_not_pile_up() -> None:
    answers = Answers("attached")
    for n in range(5 * KEPT):
        answers.put({"relay": "progress", "n": n}, None)
    answers.put({"relay": "attached"}, None)
    assert not answers.put({"relay": "progress"}, None)
    found = list(iter(lambda: answers.next(0), None))
    assert len(found) == KEPT and found[-1] == {"relay": "attached"}


class Hook:
    """A session as `attach` gives it, with a hook that says too much."""

    pid = os.getpid()
    how = "injected"
    report = Report()
    deep: Any = None

    def __init__(self) -> None:
        for _ in range(500):
            self.deep = [self.deep]
        self.hello = {"argv": ["python", "train.py"], "deep": self.deep, "commas": [","] * (wire.MAX_PARTS + 1)}

    def settled(self, _seconds: float) -> bool:
        """At once."""
        return True

    def detach(self, _seconds: float) -> dict[str, Any]:
        """A goodbye."""
        return {"left": [], "deep": self.deep, "long": "," * (wire.MAX_PARTS + 1)}

    def close(self) -> None:
        """Nothing to close."""


class Queue:
    """Keeps what an attachment puts; with `attached`, somebody leaves at that very moment."""

    def __init__(self) -> None:
        self.put: list[dict[str, Any]] = []
        self.leave: Callable[[], None] = lambda: None

    def control(self, word: str, **more: Any) -> None:
        """Keep it."""
        if word == "attached":
            self.leave()
        self.put.append(wire.read_json(wire.json_frame({"relay": word, **more})[wire.HEADER.size :]))

    def hurry(self, _session: int) -> None:
        """Nothing waits."""

    def dropped(self, _session: int) -> int:
        """Nothing."""
        return 0


def test_attached_comes_before_over_and_neither_is_too_long_to_read(monkeypatch: pytest.MonkeyPatch) -> None:
    queue = Queue()
    ready = threading.Event()

    def attach(*_: object, **__: object) -> Hook:
        assert ready.wait(60.0)
        return Hook()

    def leave() -> None:
        threading.Thread(target=one.leave, args=(1.0,), daemon=True).start()
        one.done.wait(0.3)

    monkeypatch.setattr(attachment, "attach", attach)
    one = attachment.Attachment(5, queue, {"pid": 1, "options": {}})  # type: ignore[arg-type]
    queue.leave = leave
    ready.set()
    assert one.done.wait(60.0)
    said = {message["relay"]: message for message in queue.put}
    order = [message["relay"] for message in queue.put if message["relay"] != "settled"]
    assert order == ["attached", "over"]
    assert said["attached"]["hello"] == {"argv": ["python", "train.py"]} and said["over"]["goodbye"] == {"left": []}


def test_a_stalled_line_does_not_hold_up_the_end(line: Wire) -> None:
    link = linked(line)
    line.stalled = True
    stuck = threading.Thread(target=link.request, args=({"cancel": 9},), daemon=True)
    stuck.start()
    until(lambda: {"cancel": 9} in line.requests)
    link.close()
    assert line.hurried.is_set()
    stuck.join(60.0)
    assert not stuck.is_alive()


def test_a_stalled_write_gives_up_when_it_is_hurried(talk: Talk) -> None:
    real = Line(place.via("sh -c 'exec sleep 600'"), talk)
    wrote: list[bool] = []
    writer = threading.Thread(target=lambda: wrote.append(real.write(b"x" * (1 << 22))), daemon=True)
    writer.start()
    real.hurry()
    writer.join(20.0)
    assert wrote == [False]
    real.process.kill()
    real.close()


@pytest.mark.parametrize(
    ("says", "code"),
    [("$m tuimon x {}", "protocol"), ("$m tuimon 9 {}", "protocol"), ("$m tuimon ² {}", "protocol"), ("$m ", "no-python")],
)
def test_a_shell_that_answers_nonsense_is_refused(tmp_path: Path, says: str, code: str) -> None:
    mark = """read -r line; m=$(printf '%s' "$line" | sed -E "s/.*M=([^']*)''([^;]*);.*/\\1\\2/")"""
    answer = f"""printf '\\n%s\\n%s asked\\n' "{says}" "$m\""""
    directory = script(tmp_path / "bin", "evil", f"{mark}\n{answer}\nread -r line\n{answer}\nread -r line")
    with pytest.raises(Refused) as caught:
        near.connect(Place("evil", (str(directory / "evil"),), ssh=False), send=lambda _question: True)
    assert caught.value.code == code


@pytest.mark.parametrize("more", [{}, {"fold": True}, {"pcie": True}])
def test_what_is_wanted_of_the_far_end_goes_over_the_line(line: Wire, more: dict[str, bool]) -> None:
    with linked(line) as link:
        link.open_session(1, {}, **more)
    asked = next(message for message in line.requests if "attach" in message)
    assert {word: asked.get(word) for word in ("fold", "pcie") if word in asked} == more
