"""Sending threads off, and seeing them come back.

A trampoline may be written over, and the region unmapped, only when no thread can still be in it. A thread may have been
taken off the processor inside a trampoline for any time, and /proc calls it no more than "running". So each thread that was
sent off is remembered until there is proof: it is gone, or it is seen (blocked or stopped) elsewhere and nothing will bring it
back into our code.

What could bring it back is a signal handler that has interrupted it there, and returns. Its signal mask does not tell: a
handler need not block anything (SA_NODEFER), and a program may change its mask for good meanwhile. The stack tells. The
kernel has saved the place at which the handler came, a pointer into our code or to our stack, in the frame to return by:
right below the stack pointer that the thread was sent off with, or on an alternate stack, and then above the stack pointer
that the handler has. So both places are searched for such a pointer. A stale one costs time, at worst a region that is not
taken away; one that has been written over is one that no handler will return by.

A completion word would tell less: a signal can still come between the last store and the last jump. What is not seen: a
handler that has left its alternate stack for a third one, while it blocks no signal (the next one would destroy that stack),
or that has used more than DEPTH bytes of it.
"""

from __future__ import annotations

import re
import time
from collections.abc import Callable
from typing import NamedTuple

from tuimon.attach import procfs
from tuimon.attach.inject import ptrace
from tuimon.attach.inject.ptrace import Again
from tuimon.attach.machine import code
from tuimon.attach.machine.layout import Registers, Stopped
from tuimon.attach.procfs import Memory

LEAVE_S = 2.0
LOOKS = 3
"""So often a thread is looked at before it is stopped to find out where it is."""
MOST_STOPS = 10
"""So often at most it is stopped for that, in one go."""
FRAME = 64 * 1024
"""More than any signal frame takes, with all vector registers."""
DEPTH = 256 * 1024
"""So far above the stack pointer of a handler its frame is searched for."""


class Sent(NamedTuple):
    """How a thread was when it was sent off."""

    mask: bytes
    """Its blocked signals."""
    place: tuple[int, int] | None = None
    """Its pc and sp; None where they are not known."""
    lowest: int = 0
    """Where its stack pointer was on our code: its own one, or below that, where a frame for it lies there."""
    tail: tuple[int, int] | None = None
    """It was not sent, but has run a stub, and may be at these addresses of it still; with what stack pointer is not known."""


class Borrower:
    """All stops of one injection."""

    def __init__(self, pid: int, memory: Memory, spans: list[tuple[int, int]]) -> None:
        self.pid = pid
        self.memory = memory
        self.spans = spans
        """Our code and stacks: (first address, the one behind the last)."""
        self.stops: list[float] = []
        """The pauses so far, in seconds."""
        self.out: dict[int, Sent] = {}
        """Threads that have not been seen elsewhere yet."""
        self._sent: dict[int, Sent] = {}
        self._stacks: list[tuple[int, int]] = []
        """As they were before the stop: it must not wait for them."""

    def send(self, tid: int, prepare: Callable[[Stopped], Registers]) -> None:
        """Send a thread to the registers that `prepare` gives, once every thread sent off before is back.

        Raises Again where it cannot be done now; nothing has been changed then.
        """
        if not self.all_back(but=tid):
            raise Again("another thread has not come back yet")
        was_out = tid in self.out

        def guarded(stopped: Stopped) -> Registers:
            pc, sp = code.pc(stopped.registers), code.sp(stopped.registers)
            if was_out:
                self._note(stopped)
            elif not self._elsewhere(pc, sp):
                raise Again("the thread is where an earlier attach sent it")
            registers = prepare(stopped)
            lowest = code.sp(registers)
            self._sent[tid] = self.out[tid] = Sent(stopped.mask, (pc, sp), lowest if self._elsewhere(0, lowest) else sp)
            return registers

        try:
            if was_out:
                self._stacks = self._mapped()
            ptrace.borrow(self.pid, tid, self.memory, guarded, self.stops)
        except Again:
            if not was_out:  # nothing was set, so it never was
                self.out.pop(tid, None)
            raise

    def expect(self, tid: int, tail: tuple[int, int]) -> None:
        """Note that a thread which was not sent may be in our code all the same: it has run a stub, up to its `tail`."""
        if tid not in self.out:
            mask = _blocked(self.pid, tid)
            if mask is not None:
                self.out[tid] = Sent(self._sent[tid].mask if tid in self._sent else mask, tail=tail)

    def all_back(self, but: int | None = None) -> bool:
        """Whether every thread that was sent off is back, except one that is about to be stopped anyway."""
        return all(self.is_back(tid) for tid in list(self.out) if tid != but)

    def is_back(self, tid: int) -> bool:
        """Whether a thread is certain not to be in our code; waits for that for some time."""
        begun = time.monotonic()
        looks, stops, stop_at, pause = 0, 0, begun, 0.0005
        while (now := time.monotonic()) < begun + LEAVE_S:
            if not procfs.has_thread(self.pid, tid):
                self.out.pop(tid, None)
                return True
            call = procfs.thread_call(self.pid, tid)
            looks += 1
            if call is not None and not call.running and self._left(tid, call.pc, call.sp, None):
                self.out.pop(tid, None)
                return True
            unclear = call is None or call.running or call.number in code.WAITS
            if looks > LOOKS and unclear and stops < MOST_STOPS and now >= stop_at:
                self._stacks = self._mapped()
                try:
                    ptrace.borrow(self.pid, tid, self.memory, self._note, self.stops)
                    return True
                except Again:
                    stops += 1
                    stop_at = time.monotonic() + 0.0005 * 2**stops
            time.sleep(pause)
            pause = min(pause * 1.2, 0.02)
        return False

    def _mapped(self) -> list[tuple[int, int]]:
        try:
            return procfs.stacks(self.pid)
        except OSError:
            return []

    def _note(self, stopped: Stopped) -> None:
        """Take a stopped thread off the list; raises Again when it is not back."""
        pc, sp = code.pc(stopped.registers), code.sp(stopped.registers)
        if not self._left(stopped.tid, pc, sp, stopped.mask):
            raise Again("the thread has not come back yet")
        self.out.pop(stopped.tid, None)

    def _elsewhere(self, pc: int, sp: int) -> bool:
        return not any(start <= address < end for start, end in self.spans for address in (pc, sp))

    def _left(self, tid: int, pc: int, sp: int, mask: bytes | None) -> bool:
        """Whether a thread that is at pc with sp has left our code for good. `mask` only of one that is stopped."""
        if not self._elsewhere(pc, sp):
            return False
        sent = self.out.get(tid)
        if sent is not None and sent.place == (pc, sp):
            return True  # in the very call from which it was sent: a handler would be further down
        stacks = self._stacks if mask is not None else self._mapped()
        current = next(((start, end) for start, end in stacks if start <= sp < end), None)
        if current is None:
            return False
        above = sp, min(current[1], sp + DEPTH)
        if sent is None:
            return not self._leads_to(self.spans, *above)
        if sent.tail is not None:
            # the words that its calls have left behind point elsewhere in the stub: only a signal's frame holds one of these
            return not self._leads_to([sent.tail], *above)
        own = next(((start, end) for start, end in stacks if start <= sent.lowest < end), None)
        if own == current:
            # a frame to return by lies right below where it was sent with; what lies above is older, what lies below sp is dead
            return sp >= sent.lowest or not self._leads_to(self.spans, max(sp, sent.lowest - FRAME), sent.lowest)
        if (mask or _blocked(self.pid, tid)) != sent.mask:
            return False  # on another stack with other signals blocked: it looks like a handler
        if own is not None and self._leads_to(self.spans, max(own[0], sent.lowest - FRAME), sent.lowest):
            return False
        return not self._leads_to(self.spans, *above)

    def _leads_to(self, spans: list[tuple[int, int]], start: int, end: int) -> bool:
        """Whether one of the words there points into one of the spans. What cannot be read may."""
        start &= ~7
        try:
            data = self.memory.read(start, end - start)
        except OSError:
            return True
        for first, behind in spans:
            for high in range(first >> 16, (behind - 1 >> 16) + 1):
                for found in re.finditer(re.escape(high.to_bytes(6, "little")), data):
                    at = found.start() - 2
                    if at >= 0 and at % 8 == 0 and first <= int.from_bytes(data[at : at + 8], "little") < behind:
                        return True
        return False


def _blocked(pid: int, tid: int) -> bytes | None:
    """The thread's blocked signals, as PTRACE_GETSIGMASK gives them."""
    try:
        return int(procfs.status(pid, tid)["SigBlk"], 16).to_bytes(8, "little")
    except (OSError, KeyError, ValueError):
        return None
