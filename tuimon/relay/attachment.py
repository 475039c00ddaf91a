"""One session at the far end: attaches, hands on what the hook says, reads the host and its GPUs, takes the hook out again."""

from __future__ import annotations

import threading
import time
from dataclasses import asdict
from functools import cache
from typing import TYPE_CHECKING, Any, Protocol

from tuimon import events as ev
from tuimon.attach import procfs
from tuimon.attach.connection import Session
from tuimon.attach.refusal import Refused
from tuimon.attach.session import attach
from tuimon.hook import wire
from tuimon.relay.outgoing import Outgoing
from tuimon.relay.protocol import seconds
from tuimon.sources import carried, gpu_use, windows
from tuimon.sources.nvml.shared import SharedGpus, Taker

if TYPE_CHECKING:
    from tuimon.relay.folding import Folding

LOOK_S = 2.0
"""A process that ends closes its socket some moments before it is gone; so long it is waited for."""
LOOK_EVERY_S = 1.0
TOLD_EVERY_S = 0.5
"""So often it is told what was folded."""
LONGEST_REASON = 1000
LONGEST_PATIENCE_S = 1e6
ROOM = 400_000
"""Characters of what a job says of itself that go into a message of the relay: a message too long or too deep to be read would
be the end of the line, and of the other jobs' sessions on it."""


class Source(Protocol):
    """A thread that puts events."""

    def start(self) -> None:
        """Begin."""

    def stop(self, timeout: float = 2.0) -> bool:
        """End."""


class Attachment:
    """A session that the near end knows by `number`. `done` is set when nothing of it is left here."""

    def __init__(self, number: int, out: Outgoing, request: dict[str, Any]) -> None:
        """Raises ValueError where the request is malformed."""
        self.number = number
        self.done = threading.Event()
        self._out = out
        self._pid, self._options, self._patience = request.get("pid"), request.get("options"), request.get("patience")
        if type(self._pid) is not int or not isinstance(self._options, dict):
            raise ValueError("a pid and options are wanted")
        if self._patience is not None:
            self._patience = min(seconds(self._patience), LONGEST_PATIENCE_S)
        self._cancelled = threading.Event()
        self._lock = threading.Lock()
        self._session: Session | None = None
        self._leaving = False
        self._sources: list[Source] = []
        self._told = 0
        self._fold, self._pcie = bool(request.get("fold")), bool(request.get("pcie"))
        self._over_ns = request.get("over")
        if self._over_ns is not None and (type(self._over_ns) is not int or self._over_ns < 0):
            raise ValueError("over is a number of ns, or null")
        self._folding: Folding | None = None
        """Folds the calls of the job, where that is asked for."""
        self._whole = False
        """Whether they are passed on all the same."""
        threading.Thread(target=self._attach, name=f"tuimon attach {self._pid}", daemon=True).start()

    # ------------------------------------------------------------------------------------------------------ requests

    def begin(self) -> None:
        """The near end takes frames now."""
        session = self._session
        if session is None:
            return
        if self._fold:
            from tuimon.relay.folding import Folding

            self._folding = Folding(session.pid, session.how, self._over_ns)
        session.start(self._frame, self._ended)
        with self._lock:
            if self._leaving:
                return
            family, opened = gpu_use.family(session.pid), gpu_use.opened(session.pid)
            gpus = Taker(_gpus(self._pcie), self._event, session.pid, family, opened)
            self._sources = [gpus, *self._host_source(session.pid)]
            for source in self._sources:
                source.start()
        threading.Thread(target=self._watch, args=(session,), name=f"tuimon watch {session.pid}", daemon=True).start()

    def pass_on(self, *, whole: bool) -> None:
        """Whether what is folded is passed on as well: somebody looks at this job."""
        self._whole = whole

    def tell_hook(self, message: dict[str, Any]) -> None:
        """Send a command on to the hook."""
        if self._session is not None:
            self._session.send(message)

    def leave(self, seconds: float) -> None:
        """Begin to take the hook out, or to give up the attach; `done` is set when that is over."""
        with self._lock:
            if self._leaving:
                return
            self._leaving = True
            self._cancelled.set()
            session = self._session
        if session is not None:
            threading.Thread(target=self._detach, args=(session, seconds), name="tuimon detach", daemon=True).start()

    # ------------------------------------------------------------------------------------------------------- threads

    def _attach(self) -> None:
        try:
            session = attach(
                self._pid,  # type: ignore[arg-type]
                self._options,  # type: ignore[arg-type]
                patience=self._patience,
                progress=lambda sentence: self._out.control("progress", s=self.number, sentence=sentence),
                waiting=lambda w: self._out.control("waiting", s=self.number, sentence=w.sentence, since=w.since_s),
                cancelled=self._cancelled,
            )
        except Refused as refusal:
            self._refuse(refusal.code, refusal.sentence)
            return
        except Exception as error:  # noqa: BLE001 - whatever it is, the near end must hear of it
            self._refuse("relay", f"tuimon failed there: {type(error).__name__}: {error}")
            return
        with self._lock:
            self._session = session
            left_meanwhile = self._leaving
            if not left_meanwhile:  # in the queue before anybody who leaves can put "over" there
                hello, report = _plain(session.hello), asdict(session.report)
                self._out.control("attached", s=self.number, pid=session.pid, hello=hello, how=session.how, report=report)
        if left_meanwhile:
            self._detach(session, 1.0)
            return
        session.settled(3600.0)
        self._out.control("settled", s=self.number, report=asdict(session.report))

    def _refuse(self, code: str, sentence: str) -> None:
        self.done.set()
        self._out.control("refused", s=self.number, code=code, sentence=sentence)

    def _detach(self, session: Session, seconds: float) -> None:
        goodbye = session.detach(seconds)
        self._over(session, "detached" if goodbye is not None else "the hook gave no answer", goodbye)

    def _frame(self, kind: int, body: bytes) -> None:
        if windows.is_window(kind, body):  # its file lies here
            self._window(body)
            return
        if self._folding is None or self._folding.frame(kind, body) or self._whole:
            self._out.frame(self.number, kind, body)

    def _window(self, body: bytes) -> None:
        assert self._session is not None
        try:
            found = [carried.checked(event) for event in windows.events(wire.read_json(body), self._session.trace_folder)]
        except Exception:  # noqa: BLE001 - what can be wrong with a message is endless; the near end says what it is
            self._out.frame(self.number, wire.JSON_FRAME, body)
            return
        for event in found:
            self._event(event)

    def _ended(self, reason: str) -> None:
        with self._lock:
            if self._leaving:
                return
            self._leaving = True
        if self._session is not None:
            self._over(self._session, reason, None)

    def _over(self, session: Session, reason: str, goodbye: dict[str, Any] | None) -> None:
        """Say how it ended. A job that has ended is told apart from one that goes on."""
        gone = False
        if goodbye is None:
            deadline = time.monotonic() + LOOK_S
            while not (gone := procfs.has_ended(session.pid)) and time.monotonic() < deadline:
                time.sleep(0.02)
        for source in self._sources:
            source.stop(0.2)
        session.close()
        self._tell_folded()
        self._out.hurry(self.number)
        self._tell_dropped()
        if gone:
            detail = "the process has ended (with what status only its parent knows)"
            self._event(ev.TargetEnded(time.monotonic_ns(), "exited", detail))
        said = None if goodbye is None else _plain(goodbye)
        report = asdict(session.report)
        self._out.control("over", s=self.number, reason=reason[:LONGEST_REASON], goodbye=said, gone=gone, report=report)
        self.done.set()

    # ------------------------------------------------------------------------------------------------------- sources

    def _host_source(self, pid: int) -> list[Source]:
        from tuimon.sources.tree import TreeSource

        tree = TreeSource(self._event, pid)
        try:
            from tuimon.sources.host import HostSource
            from tuimon.sources.threads import ThreadSource
        except ImportError as error:
            why = f"no psutil at the far end ({error}): pip install psutil there"
            self._event(ev.NotAvailable(time.monotonic_ns(), "host", why))
            return [tree]
        return [tree, HostSource(self._event, pid, totals=tree.totals), ThreadSource(self._event, pid)]

    def _event(self, event: ev.Event) -> None:
        if self._folding is None or self._folding.event(event) or self._whole:
            self._put(event)

    def _put(self, event: ev.Event) -> None:
        frame = wire.json_frame(carried.encode(event))
        self._out.frame(self.number, wire.JSON_FRAME, frame[wire.HEADER.size :])

    def _watch(self, session: Session) -> None:
        ended = False
        looked = time.monotonic()
        while not self.done.wait(LOOK_EVERY_S if self._folding is None else TOLD_EVERY_S):
            self._tell_folded()
            if time.monotonic() - looked < LOOK_EVERY_S:
                continue
            looked = time.monotonic()
            self._tell_dropped()
            # a job can die while a process that it forked holds the socket open: the stream has no end then
            if ended:
                session.close()
            ended = procfs.has_ended(session.pid)

    def _tell_folded(self) -> None:
        folded = self._folding.told() if self._folding is not None else None
        if folded is not None:
            self._put(folded)

    def _tell_dropped(self) -> None:
        dropped = self._out.dropped(self.number)
        if dropped != self._told:
            self._told = dropped
            why = f"{dropped} samples and messages came faster than the line to the other host carries them, and were left out"
            self._event(ev.NotAvailable(time.monotonic_ns(), "some samples", why))


@cache
def _gpus(pcie: bool) -> SharedGpus:
    """The GPUs of this host: they are read once a second, however many of its jobs are watched."""
    return SharedGpus(pcie=pcie)


def _plain(message: dict[str, Any]) -> dict[str, Any]:
    """What a hook says of itself or at its end: the plain values and the lists of texts, as far as there is room."""
    found: dict[str, Any] = {}
    room = ROOM
    for name, value in message.items():
        listed = isinstance(value, list) and all(type(one) is str for one in value)
        if not listed and value is not None and type(value) not in (str, int, float, bool):
            continue
        length = len(name) + len(repr(value))
        if length <= room:
            room -= length
            found[name] = value
    return found
