"""How long a target is given to begin, and what is said of it meanwhile."""

from __future__ import annotations

import math
import time
from collections.abc import Callable
from typing import NamedTuple

from tuimon.attach import explain, procfs
from tuimon.attach.refusal import Refused

QUIET_S = 1.0
EVERY_S = 0.5
LOOK_S = 0.05
HELD_S = 1.0


class Waiting(NamedTuple):
    """What the main thread of a target does that has not begun yet."""

    sentence: str
    since_s: float
    """Seconds for which it has been seen doing that."""


class Wait:
    """The patience of one attach. `over` is asked often; `look` watches the main thread and says what it does."""

    def __init__(
        self,
        pid: int,
        seconds: float | None,
        cancelled: Callable[[], bool] = lambda: False,
        say: Callable[[Waiting], None] = lambda _waiting: None,
        program: bytes | None = None,
    ) -> None:
        """`seconds` None: for ever. `say` gets a Waiting from 1 s on, twice a second. `program`: what `program_of` the process
        has given, where one has begun with it before this wait."""
        self.pid = pid
        self._cancelled, self._say = cancelled, say
        now = time.monotonic()
        self.deadline = math.inf if seconds is None else now + seconds
        self._next_look, self._next_word = now, now + QUIET_S
        self._seen: object = None
        self._since = now
        self._program = program or program_of(pid)
        self._next_life = now

    def over(self) -> str:
        """Why to wait no longer: "cancelled" or "late"; "" as long as the target may still begin."""
        if self._cancelled():
            return "cancelled"
        return "late" if time.monotonic() > self.deadline else ""

    def refused(self, over: str, state: int) -> Refused:
        """The refusal for a wait that is `over`; `state` is how far the hook had come (explain.timed_out)."""
        return explain.cancelled(self.pid) if over == "cancelled" else explain.timed_out(self.pid, state)

    def look(self, state: int) -> None:
        """Watch the main thread, and say what it does when it is time to. `state` as for `refused`."""
        now = time.monotonic()
        if now < self._next_look:
            return
        self._next_look = now + LOOK_S
        seen = _occupation(self.pid)
        if seen != self._seen:
            self._seen, self._since = seen, now
        if now >= self._next_word:
            self._next_word = now + EVERY_S
            self._say(Waiting(explain.waiting(self.pid, state), now - self._since))

    def is_gone(self) -> bool:
        """Whether the process has ended, or has executed another program, since the wait began."""
        return is_gone(self.pid, self._program)

    def for_answer(self) -> None:
        """To be called often while the hook, which has been started, owes an answer. Raises Refused when the wait is over, or
        when there is nobody left who could answer."""
        now = time.monotonic()
        if now >= self._next_life:
            self._next_life = now + LOOK_S
            if self.is_gone():
                raise explain.dead(self.pid)
        if over := self.over():
            raise self.refused(over, self._started())
        self.look(self._started())

    def _started(self) -> int:
        """The state (as for `refused`) of a hook whose thread runs: 1, it does not get the GIL, or 2, there is no telling.

        A main thread that is on the processor and has not once gone to sleep for a second has not let go of the GIL: who takes
        it back from another thread sleeps for it.
        """
        call = procfs.thread_call(self.pid, self.pid)
        held = call is not None and call.running and time.monotonic() - self._since > HELD_S
        return 1 if held else 2


def is_gone(pid: int, program: bytes | None) -> bool:
    """Whether the process has ended, or executes another program than that one (None: which it was is not known)."""
    return procfs.has_ended(pid) or (program is not None and program_of(pid) != program)


def program_of(pid: int) -> bytes | None:
    """Equal for as long as a process executes one and the same program: the kernel draws new random bytes, and a new place for
    them, for each. None where it may not be read."""
    try:
        with open(f"/proc/{pid}/auxv", "rb") as file:
            return file.read()
    except OSError:
        return None


def _occupation(pid: int) -> object:
    """Equal for as long as the main thread is at one and the same thing: it has neither slept again nor moved on."""
    call = procfs.thread_call(pid, pid)
    where = None if call is None else (call.number, call.pc, call.sp)
    return where, procfs.sleeps(pid, pid)
