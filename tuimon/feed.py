"""What keeps a model fed: the hook's socket, NVML, the host and the job's own output, all through one inbox.

The threads started here put events and do nothing else. Whoever owns the feed drains it on its own thread.
"""

from __future__ import annotations

import subprocess
import threading
import time
from pathlib import Path

import psutil

from tuimon import events as ev
from tuimon.attach.connection import Session
from tuimon.attach.launch import how_it_ended
from tuimon.hook.wire import WireError
from tuimon.model import Model
from tuimon.sources.host import HostSource
from tuimon.sources.inbox import Inbox
from tuimon.sources.live import LiveDecoder
from tuimon.sources.nvml import NvmlSource
from tuimon.tail import Tail

END_GRACE_S = 2.0
"""A connection that closes and a process that ends are one event that is seen twice; so long the second is waited for."""


class LiveFeed:
    """One attached process. `start`, then `drain` (or `pump`) as often as wanted, then `detach`."""

    def __init__(
        self, session: Session, command: str, process: subprocess.Popen[bytes] | None = None, output: Path | None = None
    ) -> None:
        """`process` is given where tuimon started the job itself, `output` where the job's output goes to a file."""
        self.model = Model()
        self.title = command
        self.left: list[str] = []
        """What the hook could not take out of the job again; empty is what it should be."""
        self.exited = threading.Event()
        """Set when the job that tuimon started has ended (and never for one that it was attached to)."""
        self._session = session
        self._process = process
        self._inbox = Inbox()
        self._told_dropped = 0
        self._decoder = LiveDecoder(session.pid, command, session.how)
        self._reader_over = threading.Event()
        self._detached = False
        self._silent_end = False
        self._nvml = NvmlSource(self._inbox.put, session.pid)
        self._host = HostSource(self._inbox.put, session.pid)
        self._tail = None if output is None else Tail(output, self._inbox.put)

    def start(self) -> None:
        """Start the threads."""
        self._session.start(self._frame, self._ended)
        self._nvml.start()
        self._host.start()
        if self._tail is not None:
            self._tail.start()
        if self._process is not None:
            threading.Thread(target=self._await_exit, name="tuimon-wait", daemon=True).start()

    def drain(self) -> list[ev.Event]:
        """The events that came since the last call, oldest first."""
        self._notice_a_silent_end()
        found = self._inbox.drain()
        dropped = self._inbox.dropped
        if dropped != self._told_dropped:
            self._told_dropped = dropped
            why = f"{dropped} samples and events came faster than tuimon took them in and were left out"
            found.append(ev.NotAvailable(time.monotonic_ns(), "some events", why))
        return found

    def pump(self) -> None:
        """Take in what has come. For owners that have no screen to update."""
        self.model.apply(self.drain())

    def nvml_waiting(self) -> float | None:
        """Seconds that NVML has not answered, None where it does."""
        return self._nvml.waiting_since()

    def detach(self) -> None:
        """Take the hook out of the job and stop the threads; takes some seconds at most. More than once is fine."""
        if not self._detached:
            self._detached = True
            answer = self._session.detach()
            self.left = [*self._session.report.left, *(str(name) for name in (answer or {}).get("left") or ())]
            if answer is not None:
                self._inbox.put(ev.TargetEnded(time.monotonic_ns(), "detached", "tuimon has detached"))
            else:  # no goodbye: the job ended at the same moment, or the connection broke
                self._tell_end("the hook gave no answer")
        self._nvml.stop()
        self._host.stop()
        if self._tail is not None:
            self._tail.stop()

    def _notice_a_silent_end(self) -> None:
        """A job can die while a process that it forked holds the socket open; the stream has no end then, so we make one."""
        if self._host.alive or self._silent_end or self._detached or self._reader_over.is_set():
            return
        if _gone_within(self._session.pid, 0.0):
            self._silent_end = True
            threading.Thread(target=self._session.close, name="tuimon-close", daemon=True).start()

    # ---------------------------------------------------------------- on the reader's thread

    def _frame(self, kind: int, body: bytes) -> None:
        try:
            events = self._decoder.frame(kind, body)
        except WireError as error:
            why = f"a message of the hook could not be read: {error}"
            events = [ev.NotAvailable(time.monotonic_ns(), "some events", why)]
        self._inbox.put_many(events)

    def _ended(self, reason: str) -> None:
        self._reader_over.set()
        if not self._detached:
            self._tell_end(reason)

    def _tell_end(self, reason: str) -> None:
        """Find out how it ended, and put that. Waits for a moment: one end is seen in two places, one after the other."""
        if self._process is not None:
            if not self.exited.wait(END_GRACE_S):
                self._inbox.put(ev.TargetEnded(time.monotonic_ns(), "lost", f"{reason}; the program goes on"))
        elif _gone_within(self._session.pid, END_GRACE_S):
            detail = "the process has ended (with what status only its parent knows)"
            self._inbox.put(ev.TargetEnded(time.monotonic_ns(), "exited", detail))
        else:
            self._inbox.put(ev.TargetEnded(time.monotonic_ns(), "lost", f"{reason}; the process goes on"))

    # ---------------------------------------------------------------- on the thread that waits for the program

    def _await_exit(self) -> None:
        assert self._process is not None
        status = self._process.wait()
        # what the hook sent last is still on its way; it belongs before the end
        self._reader_over.wait(END_GRACE_S)
        self._inbox.put(ev.TargetEnded(time.monotonic_ns(), "exited", f"the program has ended: {how_it_ended(status)}", status))
        self.exited.set()


def _gone_within(pid: int, seconds: float) -> bool:
    """Whether the process ends, or is a zombie, within so many seconds."""
    deadline = time.monotonic() + seconds
    pause = threading.Event()
    while True:
        try:
            if psutil.Process(pid).status() in (psutil.STATUS_ZOMBIE, psutil.STATUS_DEAD):
                return True
        except psutil.Error:
            return True
        if time.monotonic() >= deadline:
            return False
        pause.wait(0.02)
