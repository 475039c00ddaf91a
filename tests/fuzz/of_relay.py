"""What the two ends of a relay hear from each other, and the shell that answers before either runs."""

from __future__ import annotations

import contextlib
import copy
import os
import threading
from typing import Any
from unittest import mock

from tests.fuzz.draws import Draw, changed
from tests.fuzz.seen import harmless
from tests.sources.test_live_anything import MESSAGES, SAMPLES
from tuimon.attach.refusal import Refused
from tuimon.hook import wire
from tuimon.model import Model
from tuimon.relay import attachment, far, near, sent
from tuimon.relay.answers import Answers
from tuimon.relay.line import Contact, Line
from tuimon.relay.place import Place
from tuimon.relay.protocol import PASSED_ON
from tuimon.sources.live import LiveDecoder

PLACE = Place("gpu7", ("true",), True)
MARK = b"@@"
"""Stands for the mark of the line in what a shell says."""
WORDS: list[dict[str, Any]] = [
    {"relay": "hello", "tuimon": "0", "python": "3.11", "host": "h", "user": "u", "os": "linux", "t": 5, "wall": 1.7e9},
    {"relay": "beat", "t": 7, "echo": 3},
    {"relay": "attached", "s": 1, "pid": 4, "hello": {"argv": ["python", "a.py"], "cwd": "/"}, "how": "injected",
     "report": {"mechanism": "thread", "kicks": 1, "stops": [0.1], "left": ["x"]}},
    {"relay": "of", "s": 1},
    {"relay": "progress", "s": 1, "sentence": "looking"},
    {"relay": "waiting", "s": 2, "sentence": "waiting", "since": 1.5},
    {"relay": "settled", "s": 1, "report": {"stops": [0.1], "left": []}},
    {"relay": "refused", "s": 2, "code": "x", "sentence": "no"},
    {"relay": "answer", "n": 3, "targets": []},
    {"relay": "over", "s": 1, "reason": "detached", "goodbye": {"left": [], "reason": "detached"}, "gone": True, "report": {}},
]  # fmt: skip
REQUESTS: list[dict[str, Any]] = [
    {"beat": 5, "got": 10},
    {"list": 1, "everything": True},
    {"choose": 2, "pids": [1, 2], "everybody": False},
    {"attach": 3, "pid": 1, "options": {}, "patience": 1.0, "fold": True, "over": 5, "pcie": True},
    {"start": 3},
    {"hook": 3, "message": {"cmd": "window"}},
    {"whole": 3, "on": True},
    {"cancel": 3},
    {"detach": 3, "seconds": 1.0},
]


class _Quiet:
    """A line on which nothing comes by itself."""

    place = PLACE

    def __init__(self) -> None:
        self.over = threading.Event()

    def read(self, seconds: float) -> bytes | None:
        del seconds
        self.over.wait()
        return b""

    def write(self, data: bytes, seconds: float) -> bool:
        del data, seconds
        return not self.over.is_set()

    def hurry(self) -> None:
        self.over.set()

    shut = end = close = hurry

    def says(self) -> str:
        return ""


def heard(data: bytes, thorough: bool) -> None:
    """Bytes of a far end, while a session and two answers are waited for."""
    del thorough
    line = _Quiet()
    first = wire.json_frame({**WORDS[0], "t": 1}) + wire.json_frame({"relay": "beat", "t": 1})
    link = near.Link(line, first)  # type: ignore[arg-type]
    waiting = {1: Answers("attached", "refused"), 2: Answers("attached", "refused"), 3: Answers("answer")}
    link._waiting.update(waiting)
    model, live = Model(), LiveDecoder(1, "x", "run")

    def sink(kind: int, body: bytes) -> None:
        model.apply(live.frame(kind, body))

    try:
        with contextlib.suppress(wire.WireError):
            for at in range(0, len(data), 1000):
                link._feed(data[at : at + 1000])
                session = waiting[1].take_session()
                if session is not None:
                    session.start(sink, harmless)
        _answered(link, waiting)
        link.clock()
    finally:
        link.close()
        for thread in threading.enumerate():
            if thread.name.startswith("tuimon link"):
                thread.join(10.0)
    harmless(link._why, "")
    for note in link.notes:
        harmless(note, "")


def _answered(link: near.Link, waiting: dict[int, Answers]) -> None:
    """What whoever asked makes of it."""
    while (message := waiting[3].next(0.0)) is not None:
        if message["relay"] != "answer":
            continue
        given = mock.patch.object(near, "Answers", lambda *_, message=message: _Given(message))
        with given, mock.patch.object(link, "_must_send"), contextlib.suppress(Refused):
            for target in link.find_targets():
                str(target)
    for number in (1, 2):
        while (message := waiting[number].next(0.0)) is not None:
            if message["relay"] == "refused":
                str(link._refusal(message.get("code"), message.get("sentence")))


class _Given:
    """An answer that is there."""

    def __init__(self, message: dict[str, Any]) -> None:
        self._message = message

    def next(self, seconds: float) -> dict[str, Any]:
        del seconds
        return self._message


def heard_seeds() -> list[bytes]:
    """All words, with frames of a job between them."""
    job = [wire.HEADER.pack(1, 1 + len(body)) + PASSED_ON + body for body in (wire.json_frame(m)[5:] for m in MESSAGES[:6])]
    words = [wire.json_frame(word) for word in WORDS]
    return [*words, b"".join([*words[:4], *job, wire.samples_frame(SAMPLES), *words[4:]])]


def words(data: bytes, thorough: bool) -> None:
    """Sound words in which some values are others."""
    draw = Draw(data)
    told = copy.deepcopy(WORDS)
    for _ in range(1 + draw.below(4)):
        changed(draw, told[draw.below(len(told))])
    for _ in range(draw.below(4)):
        told.insert(draw.below(len(told)), told.pop(draw.below(len(told))))
    frames = []
    for one in told:
        with contextlib.suppress(ValueError):  # a number of more digits than Python writes
            frames.append(wire.json_frame(one))
        if draw.below(4) == 0:
            sound = wire.json_frame(draw.pick(MESSAGES))[wire.HEADER.size :]
            body = sound if draw.below(4) else draw.text().encode("utf-8", "replace")
            frames.append(wire.HEADER.pack(1, 1 + len(body)) + PASSED_ON + body)
    heard(b"".join(frames), thorough)


# ------------------------------------------------------------------------------------------------- the far end


class _Attached(attachment.Attachment):
    """One that attaches to nothing."""

    def _attach(self) -> None:
        self.sent: list[dict[str, Any]] = []
        self._session = mock.Mock(pid=1, how="injected")

    def begin(self) -> None:
        """It has nothing to pass on."""

    def leave(self, seconds: float) -> None:
        """There is nothing to take out."""
        assert 0 <= seconds < threading.TIMEOUT_MAX
        self.done.set()


def asked(data: bytes, thorough: bool) -> None:
    """Bytes of a near end."""
    del thorough
    reading, writing = os.pipe()
    taking, giving = os.pipe()
    os.write(writing, data[:60000])
    os.close(writing)
    drained = threading.Thread(target=_drained, args=(taking,))
    drained.start()
    patched = (
        mock.patch.object(far, "Attachment", _Attached),
        mock.patch.object(far, "_list", lambda _: []),
        mock.patch.object(far, "_choose", lambda *_: []),
        mock.patch.object(far, "FLUSH_S", 0.0),
        mock.patch.object(far, "LEAVE_S", 0.0),
    )
    before = set(threading.enumerate())
    fault: list[object] = []
    with contextlib.ExitStack() as stack:
        for one in (*patched, mock.patch.object(threading, "excepthook", lambda told: fault.append(told.exc_value))):
            stack.enter_context(one)
        end = far.Far(reading, giving)
        try:
            with contextlib.suppress(wire.WireError):
                end._serve()
            end._leave()
        finally:
            with end._out._changed:  # its thread ends by itself when nobody reads
                end._out._queue.clear()
                end._out.window = 1 << 62
            os.close(giving)
            end._out.control("beat")
            for number in (reading, end._wake, end._woken):
                os.close(number)
            for thread in set(threading.enumerate()) - before:
                thread.join(10.0)
            drained.join(10.0)
            os.close(taking)
    assert not fault, fault


def _drained(number: int) -> None:
    while os.read(number, 1 << 16):
        pass


def asked_seeds() -> list[bytes]:
    """Each request, and all."""
    frames = [wire.json_frame(request) for request in REQUESTS]
    return [*frames, b"".join(frames)]


def requests(data: bytes, thorough: bool) -> None:
    """Sound requests in which some values are others."""
    draw = Draw(data)
    told = copy.deepcopy(REQUESTS)
    for _ in range(1 + draw.below(4)):
        changed(draw, told[draw.below(len(told))])
    frames = []
    for one in told:
        with contextlib.suppress(ValueError):
            frames.append(wire.json_frame(one))
    asked(b"".join(frames), thorough)


# ------------------------------------------------------------------------------------------------- the shell


class _Shell(Line):
    """A line to a shell that says what the test has it say, and then ends."""

    def __init__(self, says: bytes, size: int) -> None:
        self.place = PLACE
        self._contact = Contact()
        self._mark = "tuimon-0123456789abcdef"
        self._held, self._noise = b"", 0
        self._says, self._size = says.replace(MARK, self._mark.encode()), max(1, size)

    def read(self, seconds: float) -> bytes | None:
        del seconds
        taken, self._says = self._says[: self._size], self._says[self._size :]
        return taken

    def write(self, data: bytes, seconds: float = 60.0) -> bool:
        del data, seconds
        return True

    def says(self) -> str:
        return ""

    def _ended(self) -> Refused:
        return Refused("connect", "ended")


def login(data: bytes, thorough: bool) -> None:
    """What comes from a shell: the noise of its login, answers, what is none."""
    del thorough
    size = data[0] if data else 1
    questions: list[str] = []
    try:
        with mock.patch.object(sent, "pack", lambda: b"x" * 2048):
            _Shell(data[1:], size).begin(lambda question: questions.append(question) or True)  # type: ignore[func-returns-value]
    except Refused as refused:
        harmless(refused.sentence, "")
    for question in questions:
        harmless(question, "")


def login_seeds() -> list[bytes]:
    """A tuimon there, an older one, none but a Python."""
    good = b'@@ tuimon 0 {"tuimon": "1", "protocol": "1.2", "python": "3.11"}\n@@ asked\n\n@@ relay\n\1\0'
    along = b"motd\n@@ asked\n@@ python python3 3.11\n@@ asked\n\n@@ ready\n@@ relay\n"
    return [b"\x40" + good, b"\7" + good.replace(b'"1.2"', b'"0.9"') + along, b"\xff" + along]
