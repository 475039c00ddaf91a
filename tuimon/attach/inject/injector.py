"""Getting a script to run in a process, on a thread of its own.

Three stops, each with one register write: the first makes the target map a region of memory, the second makes it call one of
the stubs that then lie in it, the third makes it unmap the region once the script has been handed over (`foothold`).

The second stop comes in two forms. `pending`, while the main thread gets on: it is made to queue a call that CPython makes
when that thread is next in its loop; there, with the GIL, the stub makes a thread state and starts our thread. A foreign
thread that makes its own state does so without the GIL, and on 3.10 and 3.11 a fork in that instant leaves the child with a
lock that nobody holds (python/cpython#112275). `thread`, where the main thread sleeps (it cannot fork then) or has not come by
for a while: a thread asleep in a safe call starts ours at once. Both claim the header by compare-and-swap: one of them starts.
"""

from __future__ import annotations

import contextlib
import signal
import time
from collections.abc import Callable, Iterator
from functools import partial
from typing import NoReturn

from tuimon.attach import explain, interpreter, preflight, procfs
from tuimon.attach.inject import threads
from tuimon.attach.inject.foothold import Foothold
from tuimon.attach.inject.ptrace import Again
from tuimon.attach.inject.waiting import Wait
from tuimon.attach.machine import code, layout
from tuimon.attach.machine.layout import Stopped
from tuimon.attach.preflight import Target
from tuimon.attach.procfs import ThreadCall
from tuimon.attach.refusal import Refused

KICK_S = 0.25
KICKS = 3
FALL_BACK_S = 1.0
FALL_BACK_SOUND_S = 0.2
"""The same where a fork does no harm: from SOUND on."""
SOUND = (3, 12)
SETTLE_S = 0.1
"""So long a main thread that waited when we came may take to wait again: it can have carried our system calls meanwhile."""
GONE_S = 2.0
"""So long our own thread may take to be gone once it has nothing left to do."""
NOT_YET, ON_ITS_WAY_DOWN = -2, -3


class Outcome:
    """How an injection went."""

    def __init__(self) -> None:
        self.mechanism = ""
        """"pending" or "thread": which form was asked last before the script began."""
        self.kicks = 0
        """How often the call was queued once more."""
        self.stops: list[float] = []
        """The pause of one thread at each stop, in seconds."""
        self.left: list[str] = []
        """What could not be taken away with certainty, in words."""


def inject(
    pid: int,
    started: int,
    script: bytes,
    seconds: float | None,
    tell: Callable[[str], None],
    form: str | None = None,
    linger_s: float = GONE_S,
) -> Outcome:
    """Run `script` (Python source without a NUL) in a process on a new thread, within so many seconds (None: in any time).

    `started` is the start time by which the caller knows the process. `tell` gets the mechanism as soon as the script has
    begun. `form` allows only "pending" or "thread". So many seconds more are spent on seeing what is still queued come by.
    Raises Refused, with nothing of ours left in the target unless the sentence says so.
    """
    with guarded(pid):
        target = preflight.look(pid)
        try:
            if target.started != started:
                raise Refused("dead", f"process {pid} has ended; its number belongs to another one now")
            work = Injection(target, script, Wait(pid, seconds), form)
            try:
                work.run(tell)
            finally:
                work.clean_up(linger_s)
            return work.outcome
        finally:
            target.close()


@contextlib.contextmanager
def guarded(pid: int) -> Iterator[None]:
    """For all of an attempt: signals as tracing needs them, and every error of the kernel's as a Refused."""
    blocked = signal.pthread_sigmask(signal.SIG_BLOCK, [signal.SIGCHLD])  # see ptrace._wait
    try:
        yield
    except (OSError, Refused) as error:
        if procfs.has_ended(pid):  # whatever else seemed to be the matter
            raise explain.dead(pid) from None
        if isinstance(error, Refused):
            raise
        raise explain.denied(pid, error) from None
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, blocked)


class Injection:
    """One injection: `run`, then `clean_up`, whatever became of it."""

    def __init__(self, target: Target, script: bytes, wait: Wait, form: str | None = None) -> None:
        """`target` stays the caller's to close; so does telling why, where `run` raises Refused."""
        self.target = target
        self.pid = target.pid
        self.script = script
        self.wait = wait
        self.form = form
        self.outcome = Outcome()
        self.site = Foothold(target, wait)
        self.outcome.stops = self.site.borrower.stops
        self.stuck = False
        """A thread is on its way to a stop of ours, and goes on only when the thread that traces ends: at once, then."""

    def run(self, tell: Callable[[str], None]) -> None:
        """Map, write, start; comes back when the script has been run. Raises Refused; what is queued does nothing then."""
        try:
            self._run(tell)
        except BaseException as error:
            self.stuck = isinstance(error, Refused) and error.code == "stuck"
            with contextlib.suppress(OSError):
                self.site.cancel()
            if not isinstance(error, (OSError, Refused)):
                raise
            if self.target.memory.is_gone():  # whatever else seemed to be the matter
                raise explain.dead(self.pid) from None
            if isinstance(error, Refused):
                raise
            raise explain.denied(self.pid, error) from None

    def _run(self, tell: Callable[[str], None]) -> None:
        self._let_python_begin()
        main_waits = self._main_waits()
        self.site.take(self.script)
        self._start(SETTLE_S if main_waits else 0.0)
        tell(self.outcome.mechanism)
        while (state := self.site.state()) in (1, 2):
            if over := self.wait.over():
                self._give_up(over)
            self.wait.look(state)
            time.sleep(0.0005)
        state, rc = self.site.state(), self.site.word(layout.RC)
        if state != 3 or rc:
            raise explain.ended(self.pid, state, rc)

    def _let_python_begin(self) -> None:
        """Wait until the program has come as far as its Python. Raises Refused, OSError."""
        waited = False
        while not interpreter.has_begun(self.target.memory, self.target.runtime, self.target.python):
            if over := self.wait.over():
                raise explain.cancelled(self.pid) if over == "cancelled" else explain.starting(self.pid)
            self.wait.look(0)
            time.sleep(0.002)
            waited = True
        if waited:  # what was found before may lack the C library's part of `lock_ranges`: it is mapped late
            mapped = procfs.mappings(self.pid)
            version, symbols, ranges, runtime = interpreter.find(self.pid, self.target.memory, mapped)
            self.target = self.site.target = self.target._replace(
                mappings=mapped, python=version, symbols=symbols, lock_ranges=ranges, runtime=runtime
            )

    def clean_up(self, seconds: float) -> bool:
        """Take everything away, within so many seconds; what could not be is in `outcome.left`. Whether more may come of it.

        Once it is `stuck` nothing more comes.
        """
        why = "a thread sits in the kernel and cannot be stopped"
        try:
            self.outcome.left = self.site.abandon(why) if self.stuck else self.site.leave(seconds)
        except Refused:
            self.stuck = True
            self.outcome.left = self.site.abandon(why)
        return bool(self.outcome.left) and not self.stuck

    def _main_waits(self) -> bool:
        call = procfs.thread_call(self.pid, self.pid)
        return call is not None and code.can_be_made_again(call.number, call.arguments)

    def _start(self, settle_s: float) -> None:
        """Start the script's thread by the form that suits. The main thread may be asleep again after `settle_s`."""
        fall_back_s = FALL_BACK_S if self.target.python < SOUND else FALL_BACK_SOUND_S
        started = self.form != "pending" and self._thread_form(self._sleepers(settle_s))
        queued_at = kicked_at = None if started else self._pending_form()
        while self.site.state() == 0:
            now = time.monotonic()
            if over := self.wait.over():
                self._give_up(over)
            if queued_at is None:
                # neither form found a thread it could use yet, or what looked asleep has moved on
                queued_at = kicked_at = self._pending_form()
            elif kicked_at is not None and now - kicked_at > KICK_S and self.outcome.kicks < KICKS:
                kicked_at = now
                # a wake-up can be lost when the main thread is stopped while it works out whether there is one
                if self._pending_form(prefer_elsewhere=True):
                    self.outcome.kicks += 1
            if self.form != "pending" and (queued_at is None or now - queued_at > fall_back_s):
                self._thread_form(threads.asleep(self.pid))
            self.wait.look(0)
            time.sleep(0.001)

    def _sleepers(self, settle_s: float) -> list[ThreadCall]:
        """The threads from which ours may be started at once: only where the main thread is asleep itself."""
        if self.form == "thread":
            return threads.asleep(self.pid)
        deadline = time.monotonic() + settle_s
        while not (found := threads.asleep_with_main(self.pid)) and time.monotonic() < deadline:
            time.sleep(0.002)
        return found

    def _give_up(self, over: str) -> NoReturn:
        raise self.wait.refused(over, self.site.state())

    def _pending_form(self, *, prefer_elsewhere: bool = False) -> float | None:
        """Queue the call on the main thread; gives the moment, or None where that thread cannot be borrowed now."""
        if self.form == "thread":
            return None
        elsewhere = self._code_of_python() if prefer_elsewhere else []

        def check(attempt: int, stopped: Stopped) -> None:
            if self.site.state() != 0:
                raise Again("it has begun: the main thread may be on its way through our code")
            pc = code.pc(stopped.registers)
            avoid = self.target.lock_ranges + (elsewhere if attempt < 10 and stopped.number is None else [])
            if not code.usable(stopped) or any(start <= pc < end for start, end in avoid):
                raise Again("the main thread is at a point where it may hold the queue's lock")

        for attempt in range(40):
            call = procfs.thread_call(self.pid, self.pid)
            if (
                self.site.state() != 0
                or call is None
                or not (call.running or code.can_be_made_again(call.number, call.arguments))
            ):
                return None
            try:
                self.site.call(self.pid, code.ENTER_PENDING, partial(check, attempt))
            except Again:
                time.sleep(0.001)
                continue
            result = self.site.result()
            if result == 0:
                self.outcome.mechanism = "pending"
                return time.monotonic()
            self._not_up(result)
            if result == -1:
                return None  # the queue is full: it is emptied when the main thread comes by
        return None

    def _thread_form(self, sleepers: list[ThreadCall]) -> bool:
        """Start the thread from one of those that are asleep; False where none of them would do."""
        # a thread inherits how it is scheduled: ours should not be bound to a pool's processor, nor hold the GIL when niced
        for call in sorted(sleepers, key=lambda call: not self._like_main(call.tid))[:8]:
            if self.site.state() != 0:
                return True

            def check(stopped: Stopped, call: ThreadCall = call) -> None:
                if not code.at_call(stopped, call.number, call.pc, call.sp):
                    raise Again("the thread has left its call")

            try:
                self.site.call(call.tid, code.ENTER_THREAD, check)
            except Again:
                continue
            result = self.site.result()
            self._not_up(result)
            if result == 0:
                self.outcome.mechanism = "thread"
            return result >= 0
        return False

    def _like_main(self, tid: int) -> bool:
        try:
            return procfs.scheduling(tid) == procfs.scheduling(self.pid)
        except OSError:
            return False

    def _not_up(self, result: int) -> None:
        if result == ON_ITS_WAY_DOWN:
            raise Refused("ending", f"the Python in process {self.pid} is shutting down")
        if result == NOT_YET:
            if self.wait.over():
                raise explain.starting(self.pid)
            time.sleep(0.02)

    def _code_of_python(self) -> list[tuple[int, int]]:
        """The executable mappings of the interpreter and of the C library."""
        inside = set(self.target.symbols.values()) | {start for start, _ in self.target.lock_ranges}
        return [
            (entry.start, entry.end)
            for entry in self.target.mappings
            if entry.executable and any(entry.start <= address < entry.end for address in inside)
        ]
