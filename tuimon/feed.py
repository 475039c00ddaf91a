"""What keeps a model fed: the attach, the hook's socket, NVML, the host and the job's own output, all through one inbox.

The threads started here put events and do nothing else. Whoever owns the feed drains it on its own thread.
"""

from __future__ import annotations

import shlex
import subprocess
import threading
import time
from pathlib import Path

from tuimon import events as ev
from tuimon.around import Around, gone_within, halted
from tuimon.attach.connection import GOODBYE_S
from tuimon.attach.launch import how_it_ended
from tuimon.attach.refusal import Refused
from tuimon.hook.wire import WireError
from tuimon.model import Model
from tuimon.plain import JobFiles
from tuimon.sources.inbox import Inbox
from tuimon.sources.lines import Lines
from tuimon.sources.live import LiveDecoder
from tuimon.sources.nvml.shared import SharedGpus
from tuimon.tail import Tail
from tuimon.ways import Contact, Session, Way

END_GRACE_S = 2.0
"""A connection that closes and a process that ends are one event that is seen twice; so long the second is waited for."""

EXIT_S = 30.0
"""A job whose hook has said that the interpreter is exiting may take longer: libraries are unloaded, memory is given back."""

CANCEL_S = 1.5
"""A cancelled attach gives up within a second; so long the way out waits for it."""

SILENT_S = 1.0
"""The hook reports about once a second; after so long without a word it is asked, once a second, what the process does."""


class LiveFeed:
    """One process. `start`, then `drain` (or `pump`) as often as wanted, then `detach`."""

    def __init__(
        self,
        source: Session | Way,
        command: str | None = None,
        process: subprocess.Popen[bytes] | None = None,
        output: Path | None = None,
        *,
        pcie: bool = False,
    ) -> None:
        """`source`: a session that is there already, or the way to one, which `start` opens on a thread of its own.

        `command` is what the job is called; with a way, None: what the job itself says. `process` is given where tuimon
        started the job itself, `output` where the job's output goes to a file. `pcie`: read what the GPUs move over PCIe.
        """
        way = source if isinstance(source, Way) else None
        self.model = Model()
        self.title = command or (way.title if way is not None else "")
        self.label = way.label if way is not None else ""
        self.rank = way.rank if way is not None else None
        self.host = way.host if way is not None else None
        self.pid = way.pid if way is not None else None
        self.job = way.job if way is not None else None
        self.left: list[str] = []
        """What the hook could not take out of the job again; empty is what it should be."""
        self.exited = threading.Event()
        """Set when the job that tuimon started has ended (and never for one that it was attached to)."""
        self.silent_goodbye: str | None = None
        """Where the hook did not answer to the last word: that it is still in, and when it goes. None where it did."""
        self.refused: Refused | None = None
        """Why tuimon could not attach; None while it may still, and where it has."""
        self.pcie = pcie
        self._way = way
        self._session = None if isinstance(source, Way) else source
        self._command = command
        self._process = process
        self._inbox = Inbox()
        self._told: str | None = None
        self._unread = 0
        self._unread_why = ""
        self._contact = Contact(self._attaching)
        self._lock = threading.Lock()
        self._opener: threading.Thread | None = None
        self._reader_over = threading.Event()
        self._detached = False
        self._silent_end = False
        self._shown = False
        self._heard_ns = 0
        self._looked_ns = 0
        self._doing: str | None = None
        self._shared: SharedGpus | None = None
        self._around: Around | None = None
        """What is read of the machine; None before the attach, and where a far end reads it."""
        self._lines: Lines | None = None
        self._tail = None if output is None else Tail(output, self._inbox.put)

    # ---------------------------------------------------------------- for the owner, on one thread

    @property
    def attached(self) -> bool:
        """Whether the hook came in, at any time: not while the attach goes on, and not where it was refused or cancelled."""
        return self._session is not None

    @property
    def job_files(self) -> JobFiles | None:
        """The files that the job names, as it finds them itself; None before the attach, and where it is on another host."""
        return self._lines.of_job if self._lines is not None else None

    def share_gpus(self, shared: SharedGpus) -> None:
        """Take the readings of the GPUs from there: for several feeds on one machine. Before `start`."""
        self._shared = shared

    def start(self) -> None:
        """Start the threads; with a way, begin to attach. Returns at once."""
        if self._session is not None:
            self._take_up(self._session)
        else:
            self._attaching(f"attaching to {self.label}", None)
            self._opener = threading.Thread(target=self._open, name=f"tuimon-attach {self.label}", daemon=True)
            self._opener.start()
        if self._tail is not None:
            self._tail.start()
        if self._process is not None:
            threading.Thread(target=self._await_exit, name="tuimon-wait", daemon=True).start()

    def show(self, on: bool) -> None:
        """Somebody looks at this one now, or no more: where its calls are folded on its node, they come all the same then."""
        self._shown = on
        if self._session is not None and self._session.brings_sources:
            # on a thread: a line that has stalled must not hold up the screen
            threading.Thread(target=self._pass_on, args=(self._session,), name="tuimon-show", daemon=True).start()

    def _pass_on(self, session: Session) -> None:
        session.pass_on(whole=self._shown)

    def command(self, message: dict[str, object]) -> str | None:
        """Send a command to the hook. None, or a sentence on why it cannot be sent."""
        session = self._session
        if session is None:
            return "not attached" if self.refused is not None or self._detached else "not attached yet"
        if self._detached or self._reader_over.is_set():
            return "nothing can be asked of this job any more: the connection is closed"
        # on a thread: a job that is stopped, or a line that has stalled, must not hold up the screen
        threading.Thread(target=session.send, args=(message,), name="tuimon-command", daemon=True).start()
        return None

    def drain(self) -> list[ev.Event]:
        """The events that came since the last call, oldest first."""
        self._notice_a_silent_end()
        found = self._inbox.drain()
        why = self._left_out()
        if why != self._told:
            self._told = why
            found.append(ev.NotAvailable(self._now(), "some events", why or ""))
        return found

    def _left_out(self) -> str | None:
        """What did not get into the model, and why; None where all did."""
        parts = []
        if dropped := self._inbox.dropped:
            parts.append(f"{dropped} samples and events came faster than tuimon took them in and were left out")
        if self._unread:
            count = "a message" if self._unread == 1 else f"{self._unread} messages"
            parts.append(f"{count} of the hook could not be read; the last one: {self._unread_why}")
        return "; ".join(parts) or None

    def tell(self, event: ev.Event) -> None:
        """Put an event of tuimon's own among those that come; from any thread."""
        self._inbox.put(event)

    def pump(self) -> None:
        """Take in what has come. For owners that have no screen to update."""
        self.model.apply(self.drain())

    def nvml_waiting(self) -> float | None:
        """Seconds that NVML has not answered, None where it does."""
        if self._around is not None:
            return self._around.nvml_waiting()
        return self._shared.waiting_since() if self._shared is not None else None

    def silence(self) -> tuple[float, str | None] | None:
        """For how many seconds the hook has said nothing, and what its process does ("stopped") where that is telling.

        None where there is no hook to hear of: before the attach, and when it is over.
        """
        session = self._session
        if session is None or self._reader_over.is_set() or not self._heard_ns:
            return None
        now = time.monotonic_ns()
        silent_s = (now - self._heard_ns) / 1e9
        if silent_s < SILENT_S or session.brings_sources:
            self._doing = None
            return silent_s, None
        if now - self._looked_ns > 1_000_000_000:
            self._looked_ns = now
            self._doing = halted(session.pid)
        return silent_s, self._doing

    def detach(self) -> None:
        """Take the hook out of the job, or cancel the attach, and stop the threads. More than once is fine.

        Takes some seconds at most; an attach that does not give up in time is left to itself, and undone when it comes back.
        """
        with self._lock:
            first, self._detached = not self._detached, True
            session = self._session
        if first and session is not None:
            if self._opener is not None:
                self._opener.join(CANCEL_S)  # it may be about to start what is stopped here
            began = time.monotonic()
            answer = session.detach()
            waited_s = time.monotonic() - began
            self.left = [*session.report.left, *_words((answer or {}).get("left"))]
            if answer is not None:
                self._inbox.put(ev.TargetEnded(self._now(), "detached", "tuimon has detached"))
            elif waited_s >= GOODBYE_S and not self._is_over(session):
                self.silent_goodbye = self._still_in(session)
                self._inbox.put(ev.TargetEnded(self._now(), "detached", self.silent_goodbye))
            else:  # no goodbye: the job ended at the same moment, or the connection broke
                self._tell_end("the hook gave no answer")
        elif first:
            self._contact.cancelled.set()
            if self._opener is not None:
                self._opener.join(CANCEL_S)
            if self.refused is None:
                detail = (
                    "the attach was cancelled; nothing of it will run, and what is queued is taken away as soon as the process "
                    "gets on"
                )
                self._inbox.put(ev.TargetEnded(self._now(), "detached", detail))
        self._stop_sources()

    def _is_over(self, session: Session) -> bool:
        """Whether the process has ended, as far as can be seen from here."""
        if self._process is not None:
            return self._process.poll() is not None
        return not session.brings_sources and gone_within(session.pid, 0.0)

    def _still_in(self, session: Session) -> str:
        what = f"no answer within {GOODBYE_S:g} s: the hook is still in {session.pid} and takes itself out when it gets on"
        stopped = not session.brings_sources and halted(session.pid) == "stopped"
        return f"{what} (kill -CONT {session.pid})" if stopped else what

    def _stop_sources(self) -> None:
        if self._around is not None:
            self._around.stop()
        if self._tail is not None:
            self._tail.stop()

    def _notice_a_silent_end(self) -> None:
        """A job can die while a process that it forked holds the socket open; the stream has no end then, so we make one."""
        session, around = self._session, self._around
        if session is None or around is None or around.host.alive:
            return
        if self._silent_end or self._detached or self._reader_over.is_set():
            return
        if gone_within(session.pid, 0.0):
            self._silent_end = True
            threading.Thread(target=session.close, name="tuimon-close", daemon=True).start()

    def _now(self) -> int:
        """The time on the clock of the job's host, in ns."""
        session = self._session
        return session.clock() if session is not None else time.monotonic_ns()

    # ---------------------------------------------------------------- on the thread that attaches

    def _open(self) -> None:
        assert self._way is not None
        try:
            session = self._way.open(self._contact)
        except Refused as refusal:
            self._not_attached(refusal)
            return
        except Exception as error:  # noqa: BLE001 - it would be lost with this thread
            self._not_attached(
                Refused("failed", f"attaching failed, which is a fault of tuimon: {type(error).__name__}: {error}")
            )
            return
        with self._lock:
            wanted = not self._detached
            if wanted:
                self._session = session
        if not wanted:
            session.detach()
            return
        try:  # without the lock: a line that has stalled must not hold up who wants to leave
            self._take_up(session)
        except Exception as error:  # noqa: BLE001 - as above; and the hook must not stay in
            sentence = f"watching could not begin, which is a fault of tuimon: {type(error).__name__}: {error}"
            self._give_up(session, Refused("failed", sentence))
        if self._detached:
            self._stop_sources()

    def _give_up(self, session: Session, refusal: Refused) -> None:
        """The hook is in, but nothing can be made of it: take it out again."""
        self.refused = refusal  # first: the end of the session is no news then
        try:
            session.detach()
        except Exception:  # noqa: BLE001 - closing is what counts: the hook leaves when it sees that
            session.close()
        self._stop_sources()
        self._session = None
        self._not_attached(refusal)

    def _attaching(self, sentence: str, since_s: float | None) -> None:
        self._inbox.put(ev.Attaching(time.monotonic_ns(), sentence, since_s))

    def _not_attached(self, refusal: Refused) -> None:
        if self._contact.cancelled.is_set():
            return  # `detach` says it
        self.refused = refusal
        self._inbox.put(ev.TargetEnded(time.monotonic_ns(), "refused", refusal.sentence))

    def _take_up(self, session: Session) -> None:
        """The hook is in: read what it sends, and the machine around it."""
        self._session = session
        command = self._command or shlex.join(_words(session.hello.get("argv"))) or self.title or f"pid {session.pid}"
        self.title = command
        self.pid = session.pid
        self.label = self.label or str(session.pid)
        folder = None if session.brings_sources else lambda: session.trace_folder()
        self._decoder = LiveDecoder(session.pid, command, session.how, folder=folder)
        self._heard_ns = time.monotonic_ns()
        self._lines = None if session.brings_sources else Lines(session.pid)  # another host has other files
        session.start(self._frame, self._ended)
        if self._shown:
            self._pass_on(session)
        if session.brings_sources:
            self._shared = None
        else:
            self._around = Around(self._inbox.put, session.pid, self._shared, pcie=self.pcie)
            self._around.start()

    # ---------------------------------------------------------------- on the reader's thread

    def _frame(self, kind: int, body: bytes) -> None:
        self._heard_ns = time.monotonic_ns()
        try:
            events = self._decoder.frame(kind, body)
        except Exception as error:  # noqa: BLE001 - a gap, said as one; the reading goes on
            self._unread_why = str(error) if isinstance(error, WireError) else f"{type(error).__name__}: {error}"
            self._unread += 1
            return
        self._inbox.put_many(events if self._lines is None else self._lines.told(events))

    def _ended(self, reason: str) -> None:
        self._reader_over.set()
        if not self._detached and self.refused is None:
            self._tell_end(reason)

    def _tell_end(self, reason: str) -> None:
        """Find out how it ended, and put that. Waits for a moment: one end is seen in two places, one after the other."""
        session = self._session
        assert session is not None
        grace_s = EXIT_S if reason == "exit" else END_GRACE_S
        if self._process is not None:
            if not self.exited.wait(grace_s):
                self._inbox.put(ev.TargetEnded(self._now(), "lost", f"{reason}; the program goes on"))
        elif session.brings_sources:  # its processes are not ours to look at; the far end tells if one has ended
            self._inbox.put(ev.TargetEnded(self._now(), "lost", reason))
        elif gone_within(session.pid, grace_s):
            detail = "the process has ended (with what status only its parent knows)"
            self._inbox.put(ev.TargetEnded(self._now(), "exited", detail))
        else:
            self._inbox.put(ev.TargetEnded(self._now(), "lost", f"{reason}; the process goes on"))

    # ---------------------------------------------------------------- on the thread that waits for the program

    def _await_exit(self) -> None:
        assert self._process is not None
        status = self._process.wait()
        # what the hook sent last is still on its way; it belongs before the end
        self._reader_over.wait(END_GRACE_S)
        self._inbox.put(ev.TargetEnded(self._now(), "exited", f"the program has ended: {how_it_ended(status)}", status))
        self.exited.set()


def _words(value: object) -> list[str]:
    """What should be a list of words, from a peer that may send anything."""
    return [str(word) for word in value] if isinstance(value, list) else []
