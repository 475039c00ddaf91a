"""The near end: a connection to a far end of tuimon, and what can be asked of it.

One connection carries as many sessions as wanted: the ranks of a host cost one ssh and one password. It is not made again by
itself: a line that is cut is the end of its sessions, told as what it is, and an attach can be run again at once.
"""

from __future__ import annotations

import itertools
import threading
import time
from collections.abc import Callable, Sequence
from typing import Any

from tuimon import __version__
from tuimon.attach.find.process import Target
from tuimon.attach.refusal import Refused
from tuimon.draw.text import clean
from tuimon.hook import wire
from tuimon.relay.answers import Answers
from tuimon.relay.line import Contact, Line
from tuimon.relay.place import Place
from tuimon.relay.protocol import BEAT_S, LOST_S, PASSED_ON, number, seconds
from tuimon.relay.remote import FarSession
from tuimon.sources import carried

__all__ = ["Contact", "Link", "connect", "find_targets", "open_session"]

Send = Callable[[str], bool]
ANSWER_S = 60.0
"""What an answer may take that is found by looking at every process over there."""
HELLO_S = 30.0
CANCEL_S = 3.0
"""After a cancel, so long the far end's own word is waited for."""
LONGEST_SENTENCE = 1000
"""Characters of what the far end says that are taken."""
ACKNOWLEDGE = 32 << 10
"""Bytes taken after which the far end is told: it lets only so many be on their way."""


def connect(place: Place, contact: Any = None, send: Send | None = None) -> Link:
    """A connection to a place. Blocks, for as long as the user takes over a password; raises Refused.

    `contact` is told what goes on, and can cancel. `send(question)` is asked where there is no usable tuimon over there: True
    has this one sent along; None stands for no.
    """
    contact = contact or Contact()
    line = Line(place, contact)
    try:
        return Link(line, line.begin(send))
    except BaseException:
        line.close(0.5)
        raise


def open_session(
    place: Place,
    pid: int,
    options: dict[str, object],
    contact: Any = None,
    patience: float | None = 30.0,
    send: Send | None = None,
) -> FarSession:
    """A session with a connection of its own, which ends with it. Raises Refused."""
    link = connect(place, contact, send)
    try:
        return link.open_session(pid, options, contact, patience, then_close=True)
    except BaseException:
        link.close()
        raise


def find_targets(place: Place, send: Send | None = None, contact: Any = None, *, everything: bool = False) -> list[Target]:
    """The PyTorch processes of a place. Raises Refused."""
    with connect(place, contact, send) as link:
        return link.find_targets(everything=everything)


class Link:
    """A connection to a far end. Use as a context manager, or `close` it."""

    def __init__(self, line: Line, early: bytes) -> None:
        """`line` leads to a far end that has said its first line. Raises Refused."""
        self.place = line.place
        self.notes: list[str] = []
        """What the user should know of this connection, in sentences."""
        self.far: dict[str, Any] = {}
        """What the far end has said of itself: tuimon, python, host, user, os, machine."""
        self._line = line
        self._decoder = wire.Decoder()
        self._numbers = itertools.count(1)
        self._sessions: dict[int, FarSession] = {}
        self._waiting: dict[int, Answers] = {}
        self._current = 0
        self._writing = threading.Lock()
        self._closing = threading.Event()
        self._over = threading.Event()
        self._ready = threading.Event()
        self._why = ""
        self._taken = self._told = 0
        self._heard = time.monotonic()
        self._offset = 0
        self._trip_ns: int | None = None
        self._reader = threading.Thread(target=self._read, args=(early,), name=f"tuimon link {self.place.name}", daemon=True)
        self._reader.start()
        self._beat()
        self._ready.wait(HELLO_S)
        if self._over.is_set() or not self.far:
            self.close()
            raise Refused("lost", self._why or f"tuimon at {self.place.there} has said nothing; try again")
        version = clean(str(self.far.get("tuimon")))
        if version != __version__:
            self.notes.append(f"tuimon {version} at {self.place.there}, {__version__} here")
        threading.Thread(target=self._beats, name=f"tuimon beats {self.place.name}", daemon=True).start()

    def __enter__(self) -> Link:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    @property
    def over(self) -> bool:
        """Whether nothing can come over it any more."""
        return self._over.is_set()

    def clock(self) -> int:
        """The time now in ns on the far host's CLOCK_MONOTONIC, as far as beats there and back tell."""
        return time.monotonic_ns() + self._offset

    def find_targets(self, *, everything: bool = False) -> list[Target]:
        """The PyTorch processes over there. Raises Refused."""
        return self._ask({"list": 0, "everything": everything}, "list")

    def choose(self, pids: Sequence[int], everybody: bool) -> list[Target]:
        """Those that are meant by these pids, or by "all": `attach.choice.choose`, made over there. Raises Refused."""
        return self._ask({"choose": 0, "pids": list(pids), "everybody": everybody}, "choose")

    def open_session(
        self,
        pid: int,
        options: dict[str, object],
        contact: Any = None,
        patience: float | None = 30.0,
        *,
        then_close: bool = False,
        fold: bool = False,
        over_ns: int | None = None,
        pcie: bool = False,
    ) -> FarSession:
        """Attach to a process over there. Raises Refused.

        `then_close` has the connection end with the session. With `fold` the far end counts the steps and sends what came of
        them, in place of every call; a step `over_ns` longer than the usual is slow there (None: as the rule has it). With
        `pcie` it reads what the GPUs there move over PCIe.
        """
        contact = contact or Contact()
        s = next(self._numbers)
        answers = self._waiting[s] = Answers("attached", "refused")
        cancelled_at: float | None = None
        try:
            more: dict[str, object] = {word: True for word, on in (("fold", fold), ("pcie", pcie)) if on}
            if fold and over_ns is not None:
                more["over"] = over_ns
            self._must_send({"attach": s, "pid": pid, "options": options, "patience": patience, **more})
            while True:
                message = answers.next(0.1)
                if message is None:
                    now = time.monotonic()
                    if cancelled_at is None and contact.cancelled.is_set():
                        cancelled_at = now
                        self.request({"cancel": s})
                    if cancelled_at is not None and now - cancelled_at > CANCEL_S:
                        raise Refused("cancelled", f"cancelled; {self.place.there} has not answered to that yet")
                    self._check()
                    continue
                word = message["relay"]
                if word == "progress":
                    contact.say(_sentence(message))
                elif word == "waiting":
                    contact.waiting(_sentence(message), message["since"])
                elif word == "refused":
                    raise self._refusal(message.get("code"), message.get("sentence"))
                elif (session := answers.take_session()) is not None:
                    session.closed = self.close if then_close else session.closed
                    if self._over.is_set():  # perhaps before the reader knew of it
                        session.end(self._why)
                    return session
        finally:
            del self._waiting[s]
            unwanted = answers.leave()
            if unwanted is not None:
                unwanted.close()

    def request(self, message: dict[str, Any]) -> bool:
        """Send a request; False when the line is gone."""
        if self._closing.is_set():
            return False
        with self._writing:
            if self._over.is_set() or self._closing.is_set():
                return False
            sent = self._line.write(wire.json_frame(message), LOST_S)
        if not sent:
            self._cut()
        return sent

    def close(self) -> None:
        """End the connection; the far end takes out what is still in. May be called twice."""
        if self._closing.is_set():
            return
        self._closing.set()
        self._line.hurry()
        with self._writing:
            self._line.shut()
        self._line.end()
        if self._reader is not threading.current_thread():
            self._reader.join(2.0)
            self._line.close()
        self._end("connection closed")

    # ------------------------------------------------------------------------------------------------------- asking

    def _ask(self, request: dict[str, Any], word: str) -> list[Target]:
        n = next(self._numbers)
        answers = self._waiting[n] = Answers("answer")
        try:
            self._must_send({**request, word: n})
            deadline = time.monotonic() + ANSWER_S
            while (message := answers.next(0.2)) is None or message["relay"] != "answer":
                self._check()
                if time.monotonic() > deadline:
                    raise Refused("lost", f"{self.place.there} has not answered within {ANSWER_S:g} s; try again")
        finally:
            del self._waiting[n]
        refused = message.get("refused")
        if isinstance(refused, list) and len(refused) == 2:
            raise self._refusal(*refused)
        try:
            return [carried.build(Target, one) for one in message.get("targets") or ()]
        except (ValueError, TypeError, AttributeError) as error:
            raise Refused("protocol", f"{self.place.there} has sent a list that cannot be read: {clean(str(error))}") from None

    def _must_send(self, message: dict[str, Any]) -> None:
        if not self.request(message):
            self._check()
            raise Refused("lost", f"the connection to {self.place.there} is closed")

    def _check(self) -> None:
        if self._over.is_set():
            raise Refused("lost", self._why)

    def _refusal(self, code: object, sentence: object) -> Refused:
        return Refused(clean(str(code))[:40], f"at {self.place.there}: {clean(str(sentence))[:LONGEST_SENTENCE]}")

    # ------------------------------------------------------------------------------------------------------- beats

    def _beats(self) -> None:
        while not self._over.wait(BEAT_S):
            if time.monotonic() - self._heard > LOST_S:
                self._cut()
                return
            self._beat()

    def _beat(self) -> None:
        self._told = self._taken
        self.request({"beat": time.monotonic_ns(), "got": self._taken})

    def _time(self, message: dict[str, Any]) -> None:
        """The best of the round trips tells how the clocks stand to each other."""
        there, now = number(message.get("t")), time.monotonic_ns()
        if message.get("echo") is None:
            return
        echo = number(message["echo"])
        trip = now - echo
        if trip >= 0 and (self._trip_ns is None or trip < self._trip_ns):
            self._trip_ns = trip
            self._offset = there - (echo + now) // 2

    # ------------------------------------------------------------------------------------------------------ reading

    def _read(self, early: bytes) -> None:
        try:
            self._feed(early)
            while not (self._closing.is_set() or self._over.is_set()):
                data = self._line.read(0.5)
                if data == b"":
                    break
                if data is not None:
                    self._feed(data)
        except wire.WireError as error:
            self._end(f"{self.place.there} has sent something that is not in the protocol ({clean(str(error))})")
        except (OSError, ValueError):
            pass
        except Exception as error:  # noqa: BLE001 - its sessions would never hear of it
            self._end(f"what {self.place.there} has sent could not be taken in, a fault of tuimon ({clean(repr(error))[:200]})")
        finally:
            self._cut()
            with self._writing:
                self._line.shut()
            self._line.end()

    def _feed(self, data: bytes) -> None:
        self._heard = time.monotonic()
        self._taken += len(data)
        for kind, body in self._decoder.feed(data):
            self._take(kind, body)
        if self._taken - self._told >= ACKNOWLEDGE:
            self._beat()

    def _take(self, kind: int, body: bytes) -> None:
        if kind == wire.SAMPLES_FRAME:
            self._pass_on(kind, body)
        elif body.startswith(PASSED_ON):
            self._pass_on(kind, body[len(PASSED_ON) :])
        else:
            self._hear(wire.read_json(body))

    def _pass_on(self, kind: int, body: bytes) -> None:
        """A frame of a job. One that cannot be read is the end of its session, not of the others on the line."""
        session = self._sessions.get(self._current)
        if session is None:
            return
        try:
            session.take(kind, body)
        except Exception as error:  # noqa: BLE001 - as above
            del self._sessions[self._current]
            self.request({"detach": self._current, "seconds": 1.0})
            session.end(f"what the job's hook has sent cannot be read ({clean(str(error))[:200]}); it is being taken out")

    def _hear(self, message: dict[str, Any]) -> None:
        """A word of the far end's own."""
        word = message.get("relay")
        if word == "beat":
            self._time(message)
            self._ready.set()
        elif word == "hello":
            self._offset = number(message.get("t")) - time.monotonic_ns()
            self.far = message
        elif word == "of":
            self._current = number(message.get("s"))
        elif word == "settled":
            session = self._sessions.get(number(message.get("s")))
            if session is not None:
                session.settle(message)
        elif word == "over":
            s = number(message.get("s"))
            session = self._sessions.get(s)
            if session is not None:
                session.finish(message)
                del self._sessions[s]
        elif word == "attached":
            self._attached(number(message.get("s")), message)
        elif word in ("progress", "waiting"):
            message["sentence"], message["since"] = _sentence(message), seconds(message.get("since", 0))
            self._answer(number(message.get("s")), message)
        elif word in ("refused", "answer"):
            self._answer(number(message.get("s" if word == "refused" else "n")), message)

    def _attached(self, s: int, message: dict[str, Any]) -> None:
        if s in self._sessions:
            raise wire.WireError('a second "attached"')
        session = self._sessions[s] = FarSession(self.request, self.clock, self.place.name, s, message)
        if not self._answer(s, message, session):  # nobody waits for it any more
            session.close()

    def _answer(self, about: int, message: dict[str, Any], session: FarSession | None = None) -> bool:
        answers = self._waiting.get(about)
        return answers is not None and answers.put(message, session)

    def _cut(self) -> None:
        if self._closing.is_set():
            self._end("connection closed")
            return
        says = self._line.says()
        self._end(f"connection to {self.place.there} lost{says}; the hook there takes itself out within {LOST_S:g} s")

    def _end(self, why: str) -> None:
        """Nothing comes any more: tell everybody. Only the first reason counts."""
        with self._writing:
            if self._over.is_set():
                return
            self._why = why
            self._over.set()
        self._ready.set()
        for session in list(self._sessions.values()):
            session.end(why)


def _sentence(message: dict[str, Any]) -> str:
    return clean(str(message.get("sentence")))[:LONGEST_SENTENCE]
