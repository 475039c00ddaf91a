"""Sending threads off, and seeing them come back.

A trampoline may be written over, and the region unmapped, only when no thread can still be in it. A thread may have been
taken off the processor inside a trampoline for any time, and /proc calls it no more than "running". So each thread that was
sent off is remembered until there is proof: it is seen blocked elsewhere, or stopped elsewhere, or it is gone.

A signal handler that interrupted it is elsewhere too, and returns. While it runs the kernel blocks its signal, so a thread
whose signal mask is not the one it had when it was sent off does not count as back.
"""

from __future__ import annotations

import time
from collections.abc import Callable

from tuimon.attach import procfs, ptrace
from tuimon.attach.code_x86_64 import Registers
from tuimon.attach.procfs import Memory
from tuimon.attach.ptrace import Again, Stopped

LEAVE_S = 2.0
LOOKS = 3
"""So often a thread is looked at before it is stopped to find out where it is."""


class Borrower:
    """All stops of one injection."""

    def __init__(self, pid: int, memory: Memory, spans: list[tuple[int, int]]) -> None:
        self.pid = pid
        self.memory = memory
        self.spans = spans
        """Our code and stacks: (first address, the one behind the last)."""
        self.stops: list[float] = []
        """The pauses so far, in seconds."""
        self.out: dict[int, bytes] = {}
        """Threads that have not been seen elsewhere yet, with the signal mask they had."""
        self._masks: dict[int, bytes] = {}

    def send(self, tid: int, prepare: Callable[[Stopped], Registers]) -> None:
        """Send a thread to the registers that `prepare` gives, once every thread sent off before is back.

        Raises Again where it cannot be done now; nothing has been changed then.
        """
        if not self.all_back(but=tid):
            raise Again("another thread has not come back yet")
        was_out = tid in self.out

        def guarded(stopped: Stopped) -> Registers:
            self._note(stopped)
            registers = prepare(stopped)
            self._masks[tid] = self.out[tid] = stopped.mask
            return registers

        try:
            ptrace.borrow(self.pid, tid, self.memory, guarded, self.stops)
        except Again:
            if not was_out:  # nothing was set, so it never was
                self.out.pop(tid, None)
            raise

    def expect(self, tid: int) -> None:
        """Note that a thread which was not sent may be in our code all the same: it has run a stub."""
        if tid not in self.out:
            mask = self._masks.get(tid) or _blocked(self.pid, tid)
            if mask is not None:
                self.out[tid] = mask

    def all_back(self, but: int | None = None) -> bool:
        """Whether every thread that was sent off is back, except one that is about to be stopped anyway."""
        return all(self.is_back(tid) for tid in list(self.out) if tid != but)

    def is_back(self, tid: int) -> bool:
        """Whether a thread is certain not to be in our code; waits for that for some time."""
        deadline = time.monotonic() + LEAVE_S
        looks = 0
        while time.monotonic() < deadline:
            if tid not in procfs.thread_ids(self.pid):
                self.out.pop(tid, None)
                return True
            call = procfs.thread_call(self.pid, tid)
            looks += 1
            if call is not None and not call.running and self._elsewhere(call.pc, call.sp):
                usual = self.out.get(tid) or self._masks.get(tid)
                if usual is None or _blocked(self.pid, tid) == usual:
                    self.out.pop(tid, None)
                    return True
            if looks > LOOKS and (call is None or ptrace.can_be_made_again(call.number)):
                try:
                    ptrace.borrow(self.pid, tid, self.memory, self._note, self.stops)
                    return True
                except Again:
                    pass
            time.sleep(0.0005)
        return False

    def _elsewhere(self, pc: int, sp: int) -> bool:
        return not any(start <= address < end for start, end in self.spans for address in (pc, sp))

    def _note(self, stopped: Stopped) -> None:
        """Take a stopped thread off the list; raises Again when it is not back."""
        usual = self.out.get(stopped.tid) or self._masks.get(stopped.tid, stopped.mask)
        if not self._elsewhere(stopped.registers["rip"], stopped.registers["rsp"]) or stopped.mask != usual:
            raise Again("the thread has not come back yet")
        self.out.pop(stopped.tid, None)


def _blocked(pid: int, tid: int) -> bytes | None:
    """The thread's blocked signals, as PTRACE_GETSIGMASK gives them."""
    try:
        return int(procfs.status(pid, tid)["SigBlk"], 16).to_bytes(8, "little")
    except (OSError, KeyError, ValueError):
        return None
