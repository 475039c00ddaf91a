"""A session whose hook is on another host: what `attach` gives, with the far end in between."""

from __future__ import annotations

import contextlib
import threading
import time
from collections.abc import Callable
from typing import Any

from tuimon.attach.connection import OnEnd, Report, Session, Sink
from tuimon.draw.text import clean
from tuimon.hook import wire
from tuimon.relay import protocol

LONGEST_WORD = 40
GRACE_S = 1.0
"""What the way there and back may take, on top of what the far end is given."""


class FarSession(Session):
    """A session of a link. Frames, settling and the end are told by the link, on its reader's thread."""

    brings_sources = True

    def __init__(
        self,
        request: Callable[..., bool],
        clock: Callable[[], int],
        host: str,
        number: int,
        message: dict[str, Any],
    ) -> None:
        """`request` sends to the far end, which knows the session by `number`; `message` is its "attached".

        Raises wire.WireError where the message is malformed.
        """
        pid, hello = protocol.number(message.get("pid")), message.get("hello")
        if not isinstance(hello, dict):
            raise wire.WireError('an "attached" without its facts')
        self.pid = pid
        self.hello = {**hello, "argv": _listed(hello.get("argv"))}
        self.how = clean(str(message.get("how")))[:LONGEST_WORD]
        self.report = Report()
        self.host = host
        self.gone: bool | None = None
        """After the end: whether the job's process has ended too. None: nobody can tell, the line was cut."""
        self.closed: Callable[[], None] = _done
        """Called once when nothing more is wanted."""
        self._request = request
        self._number = number
        self._clock = clock
        self._settling = threading.Event()
        self._settled = self._settling
        self._over = threading.Event()
        self._offers = {}
        self._heard = time.monotonic()
        self._goodbye = None
        self._reason = "connection closed"
        self._started = threading.Lock()
        self._asked = False
        self._sink: Sink = _nowhere
        self._on_end: OnEnd = _nothing
        self._take_report(message)

    def clock(self) -> int:  # type: ignore[override]
        """The time now in ns on the clock of the job's host."""
        return self._clock()

    def start(self, sink: Sink, on_end: OnEnd) -> None:
        """Have the frames come. `sink` and `on_end` as for any session; both are called on the link's reader's thread."""
        self._sink, self._on_end = sink, on_end
        if not self._begin():
            on_end(self._reason)

    def _begin(self) -> bool:
        with self._started:
            if self._over.is_set():
                return False
            self._asked = True
        self._request({"start": self._number})
        return True

    def send(self, message: dict[str, Any]) -> bool:
        """Send a command to the hook; False when the connection is gone."""
        return not self.over and self._request({"hook": self._number, "message": message})

    def pass_on(self, *, whole: bool) -> None:
        """Where the far end folds this job's calls: whether to send them as well. Otherwise nothing happens."""
        if not self.over:
            self._request({"whole": self._number, "on": whole})

    def trace_folder(self) -> int | None:
        """None: it is on the job's host, where the far end reads what is in it."""
        return None

    def detach(self, timeout: float = 5.0) -> dict[str, Any] | None:
        """Have the hook taken out; gives its goodbye, or None when there was none in time."""
        if not self.over and self._request({"detach": self._number, "seconds": timeout}):
            self._over.wait(timeout + GRACE_S)
        self.close()
        return self._goodbye

    def close(self) -> None:
        """Let it go. A hook that is still in is taken out by the far end."""
        if not self.over:
            self._request({"detach": self._number, "seconds": GRACE_S})
            self.end("connection closed")
        closed, self.closed = self.closed, _done
        closed()

    # -------------------------------------------------------------------------------------------- told by the link

    def take(self, kind: int, body: bytes) -> None:
        """A frame of this session."""
        self._heard = time.monotonic()
        if not self._offers and kind == wire.JSON_FRAME and b'"offers"' in body:
            found = wire.read_json(body).get("offers")
            self._offers = found if isinstance(found, dict) else {}
        self._sink(kind, body)

    def settle(self, message: dict[str, Any]) -> None:
        """The injection has left nothing behind any more."""
        self._take_report(message)
        self._settling.set()

    def finish(self, message: dict[str, Any]) -> None:
        """The far end says that it is over."""
        goodbye = message.get("goodbye")
        self._goodbye = {**goodbye, "left": _listed(goodbye.get("left"))} if isinstance(goodbye, dict) else None
        self.gone = bool(message.get("gone"))
        self._take_report(message)
        reason = clean(str(message.get("reason")))
        self.end(reason if self.gone or self._goodbye is not None else f"{reason}; the process at {self.host} goes on")

    def end(self, reason: str) -> None:
        """Nothing more comes. Only the first call counts."""
        with self._started:
            if self._over.is_set():
                return
            self._reason = reason
            self._settling.set()
            self._over.set()
        if self._asked:
            with contextlib.suppress(Exception):  # what the owner does then must not be the end of the link's reader
                self._on_end(reason)

    def _take_report(self, message: dict[str, Any]) -> None:
        found = message.get("report")
        if not isinstance(found, dict):
            return
        report = self.report
        report.mechanism = clean(str(found.get("mechanism") or ""))[:LONGEST_WORD]
        report.kicks = protocol.number(found.get("kicks", 0))
        report.stops = [protocol.seconds(one) for one in _listed(found.get("stops"))]
        report.left = [clean(str(one)) for one in _listed(found.get("left"))]


def _listed(value: Any) -> list[Any]:
    if value is not None and not isinstance(value, list):
        raise wire.WireError(f"a list is wanted, not {repr(value)[:60]}")
    return value or []


def _nowhere(_kind: int, _body: bytes) -> None:
    pass


def _nothing(_reason: str) -> None:
    pass


def _done() -> None:
    pass
