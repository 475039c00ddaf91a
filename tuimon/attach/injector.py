"""Getting a script to run in a process, on a thread of its own.

Three stops, each with one register write: the first makes the target map a region of memory, the second makes it call one of
the stubs that then lie in it, the third makes it unmap the region once the script has been handed over. After each the
thread comes back by itself. What is in between waits for proof: a trampoline is not written over, and the region not
unmapped, before every thread that was sent there has been seen elsewhere.

The second stop comes in two forms. `pending`, while the main thread gets on: it is made to queue a call that CPython makes
when that thread is next in its loop; there, with the GIL, the stub makes a thread state and starts our thread. A foreign
thread that makes its own state does so without the GIL, and a fork in that instant leaves the child with a lock that nobody
holds (python/cpython#112275). `thread`, where the main thread sleeps (it cannot fork then) or has not come by within a
second: a thread asleep in a safe call starts ours at once. Both claim the header by compare-and-swap: one of them starts.
"""

from __future__ import annotations

import fcntl
import signal
import time
from collections.abc import Callable
from functools import partial

from tuimon.attach import code_x86_64 as code
from tuimon.attach import explain, preflight, procfs, ptrace, room, threads
from tuimon.attach.borrowing import Borrower
from tuimon.attach.code_x86_64 import Registers
from tuimon.attach.preflight import Target
from tuimon.attach.procfs import ThreadCall
from tuimon.attach.ptrace import Again, Stopped
from tuimon.attach.refusal import Refused

CHOICES = 400
"""How often a thread is chosen anew before giving up; there is a pause of a millisecond in between."""
KICK_S = 0.25
KICKS = 3
FALL_BACK_S = 1.0
CALLED_S = 2.0
GONE_S = 2.0
_NOT_BACK = 0x5555
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


def inject(pid: int, started: int, script: bytes, seconds: float, tell: Callable[[str], None]) -> Outcome:
    """Run `script` (Python source without a NUL) in a process on a new thread, within so many seconds.

    `started` is the start time by which the caller knows the process. `tell` gets the mechanism as soon as the script has
    begun. Raises Refused, with nothing of ours left in the target unless the sentence says so.
    """
    blocked = signal.pthread_sigmask(signal.SIG_BLOCK, [signal.SIGCHLD])  # see ptrace._wait
    try:
        return _inject(pid, started, script, seconds, tell)
    except (OSError, Refused) as error:
        if procfs.has_ended(pid):  # whatever else seemed to be the matter
            raise Refused("dead", f"process {pid} has just ended") from None
        if isinstance(error, Refused):
            raise
        raise Refused("denied", f"the kernel refused to trace process {pid}: {error}; use `tuimon run`") from None
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, blocked)


def _inject(pid: int, started: int, script: bytes, seconds: float, tell: Callable[[str], None]) -> Outcome:
    target = preflight.look(pid)
    try:
        if target.started != started:
            raise Refused("dead", f"process {pid} has ended; its number belongs to another one now")
        _only_one(target)
        work = _Injection(target, script, time.monotonic() + seconds)
        try:
            work.run(tell)
        except Refused as refusal:
            # after "stuck" the thread may stop for us at any moment, and goes on only when this process ends: no time to lose
            if refusal.code != "stuck":
                work.clean_up_if_possible()
            raise
        work.clean_up_if_possible()
        return work.outcome
    finally:
        target.close()


def _only_one(target: Target) -> None:
    """Only one tuimon at a time may be at work on a process; only those who may trace it can take this lock."""
    deadline = time.monotonic() + 3.0
    while True:
        try:
            fcntl.flock(target.memory.fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
            return
        except BlockingIOError:
            if time.monotonic() > deadline:
                raise Refused("busy", f"another tuimon is just attaching to process {target.pid}") from None
            time.sleep(0.01)


class _Injection:
    def __init__(self, target: Target, script: bytes, deadline: float) -> None:
        self.target = target
        self.pid = target.pid
        self.memory = target.memory
        self.script = script
        self.deadline = deadline
        self.outcome = Outcome()
        self.region = room.region(target.mappings, script)
        self.cave = room.cave(self.memory, target.mappings)
        self.cave_bytes = b""
        self.mapped = False
        self.borrower = Borrower(self.pid, self.memory, [self.cave.span, self.region.span])
        self.outcome.stops = self.borrower.stops

    # ------------------------------------------------------------------------------------------------------ the ladder

    def run(self, tell: Callable[[str], None]) -> None:
        """Map, write, start; comes back when the script has been run."""
        self._map()
        self._write()
        self._start()
        tell(self.outcome.mechanism)
        while self._state() in (1, 2):
            if time.monotonic() > self.deadline:
                self._give_up()
            time.sleep(0.0005)
        state, rc = self._state(), self.memory.u32(self.region.header + code.RC)
        if state != 3 or rc:
            raise explain.ended(self.pid, state, rc)

    def _start(self) -> None:
        started = self._thread_form(threads.asleep_with_main(self.pid))
        queued_at = kicked_at = None if started else self._pending_form()
        while self._state() == 0:
            now = time.monotonic()
            if now > self.deadline:
                self._give_up()
            if queued_at is None:
                # neither form found a thread it could use yet, or what looked asleep has moved on
                queued_at = kicked_at = self._pending_form()
            elif kicked_at is not None and now - kicked_at > KICK_S and self.outcome.kicks < KICKS:
                kicked_at = now
                # a wake-up can be lost when the main thread is stopped while it works out whether there is one
                if self._pending_form(prefer_elsewhere=True):
                    self.outcome.kicks += 1
            if queued_at is None or now - queued_at > FALL_BACK_S:
                self._thread_form(threads.asleep(self.pid))
            time.sleep(0.001)

    def _give_up(self) -> None:
        state = self._state()
        self.memory.write(self.region.header + code.CANCEL, b"\1\0\0\0")
        raise explain.timed_out(self.pid, state)

    def _pending_form(self, *, prefer_elsewhere: bool = False) -> float | None:
        """Queue the call on the main thread; gives the moment, or None where that thread cannot be borrowed now."""
        elsewhere = self._code_of_python() if prefer_elsewhere else []

        def check(attempt: int, stopped: Stopped) -> None:
            if self._state() != 0:
                raise Again("it has begun: the main thread may be on its way through our code")
            pc = stopped.registers["rip"]
            avoid = self.target.lock_ranges + (elsewhere if attempt < 10 and stopped.number is None else [])
            if stopped.number not in (None, *code.WAITS) or any(start <= pc < end for start, end in avoid):
                raise Again("the main thread is at a point where it may hold the queue's lock")

        for attempt in range(40):
            call = procfs.thread_call(self.pid, self.pid)
            if self._state() != 0 or call is None or not (call.running or ptrace.can_be_made_again(call.number)):
                return None
            try:
                self._call(self.pid, code.ENTER_PENDING, partial(check, attempt))
            except Again:
                time.sleep(0.001)
                continue
            result = self._result()
            if result == 0:
                self.outcome.mechanism = "pending"
                return time.monotonic()
            self._not_up(result)
            if result == -1:
                return None  # the queue is full: it is emptied when the main thread comes by
        return None

    def _thread_form(self, sleepers: list[ThreadCall]) -> bool:
        """Start the thread from one of those that are asleep; False where none of them would do."""
        for call in sleepers[:8]:
            if self._state() != 0:
                return True

            def check(stopped: Stopped, call: ThreadCall = call) -> None:
                where = stopped.registers["rip"], stopped.registers["rsp"]
                if stopped.number != call.number or where != (call.pc, call.sp):
                    raise Again("the thread has left its call")

            try:
                self._call(call.tid, code.ENTER_THREAD, check)
            except Again:
                continue
            result = self._result()
            self._not_up(result)
            if result == 0:
                self.outcome.mechanism = "thread"
            return result >= 0
        return False

    def _not_up(self, result: int) -> None:
        if result == ON_ITS_WAY_DOWN:
            raise Refused("ending", f"the Python in process {self.pid} is shutting down")
        if result == NOT_YET:
            if time.monotonic() > self.deadline:
                raise Refused("starting", f"the Python in process {self.pid} has not started up yet; try again in a moment")
            time.sleep(0.02)

    def _code_of_python(self) -> list[tuple[int, int]]:
        """The executable mappings of the interpreter and of the C library."""
        inside = set(self.target.symbols.values()) | {start for start, _ in self.target.lock_ranges}
        return [
            (entry.start, entry.end)
            for entry in self.target.mappings
            if entry.executable and any(entry.start <= address < entry.end for address in inside)
        ]

    # ------------------------------------------------------------------------------------------------------- the stops

    def _map(self) -> None:
        region = self.region
        # address, length, protection, flags, file (none: -1), offset
        first = (code.NR_MMAP, region.base, region.size, code.PROT_READ | code.PROT_WRITE,
                 code.MAP_PRIVATE | code.MAP_ANONYMOUS | code.MAP_FIXED_NOREPLACE, -1, 0)  # fmt: skip
        second = (code.NR_MPROTECT, region.base, room.PAGE, code.PROT_READ | code.PROT_EXEC)
        self._free_cave()
        tid = self._system_calls(first, region.base, second)
        deadline = time.monotonic() + CALLED_S
        while not room.is_there(procfs.mappings(self.pid), region):
            if procfs.has_ended(self.pid):
                raise Refused("dead", f"process {self.pid} has just ended")
            if time.monotonic() > deadline:
                if self.borrower.is_back(tid) and self._back(region.base):
                    self.mapped = True  # mapped, but not executable: to be taken away again
                raise Refused(
                    "no-memory",
                    f"process {self.pid} could not get executable memory for the hook (a memory limit, or a policy such as "
                    "SELinux's execmem); use `tuimon run`",
                )
            time.sleep(0.0005)
        self.mapped = True

    def _back(self, address: int) -> bool:
        try:
            return bool(self.memory.read(address, 1))
        except OSError:
            return False

    def _write(self) -> None:
        region = self.region
        stubs = code.stubs_code(self.target.symbols)
        header = code.HEADER.pack(0, 0, 0, self.target.pid_inside, 0, 0, 0, 0, 0, 0)
        self.memory.write(region.base, stubs)
        self.memory.write(region.header, header.ljust(code.SCRIPT, b"\0") + self.script + b"\0")

    def _free_cave(self) -> None:
        """Read what the cave holds. One that a killed tuimon has used is first seen to be empty of threads."""
        if self.cave.marked:
            for tid in procfs.thread_ids(self.pid):
                if not self.borrower.is_back(tid):
                    raise Refused("busy", "a thread of the target is still where an earlier attach sent it; try again")
            # what the file has there was never run or read; zeros are as good
            self.cave_bytes = bytes(code.SYSCALLS_SIZE)
        else:
            self.cave_bytes = self.memory.read(self.cave.address, code.SYSCALLS_SIZE)

    def _system_calls(self, first: tuple[int, ...], expected: int, second: tuple[int, ...]) -> int:
        """Have one or two system calls made on any thread; gives its tid."""

        def prepare(stopped: Stopped) -> Registers:
            if stopped.number not in (None, *code.WAITS):
                raise Again("in a call that would notice")
            after = code.resume_point(stopped.registers)
            self.memory.write(self.cave.address, code.syscalls_code(first, expected, second, after))
            return {**after, "rip": self.cave.address}

        for attempt in range(CHOICES):
            found = threads.carriers(self.pid)
            if found:
                tid = found[attempt % min(len(found), 4)]
                try:
                    self.borrower.send(tid, prepare)
                    return tid
                except Again:
                    pass
            time.sleep(0.001)
        raise Refused("no-thread", explain.no_thread(self.pid))

    def _call(self, tid: int, entry: int, check: Callable[[Stopped], None]) -> None:
        """Have one of the stubs called on a thread; the result is in the header when it is back."""
        region = self.region

        def prepare(stopped: Stopped) -> Registers:
            check(stopped)
            after = code.resume_point(stopped.registers)
            trampoline = code.call_code(
                region.vector_area, region.header, region.base + entry, region.header + code.RESULT, after
            )
            self.memory.write(region.header + code.RESULT, _NOT_BACK.to_bytes(8, "little"))
            self.memory.write(region.call, trampoline)
            return {**after, "rip": region.call, "rsp": region.stack_top}

        self.borrower.send(tid, prepare)

    def _result(self) -> int:
        deadline = time.monotonic() + CALLED_S
        while True:
            result = self.memory.u64(self.region.header + code.RESULT)
            if result != _NOT_BACK:
                return result - (1 << 64) if result >> 63 else result
            if time.monotonic() > deadline:
                raise Refused("busy", f"process {self.pid} gets no processor time, or waits in the call; try again later")
            time.sleep(0.0002)

    # ---------------------------------------------------------------------------------------------------- cleaning up

    def _state(self) -> int:
        return self.memory.u32(self.region.header + code.STATE)

    def clean_up_if_possible(self) -> None:
        """`clean_up`, but what goes wrong there is only noted: the injection itself is decided by then."""
        try:
            self.clean_up()
        except (OSError, Again, Refused) as error:
            self.outcome.left.append(f"a trampoline and its region ({error})")

    def clean_up(self) -> None:
        """Unmap the region and put the cave's bytes back, as far as it is certain that nothing of it is in use."""
        if not self.cave_bytes:
            return
        if self.mapped and self._nobody_comes():
            # the stop that unmaps sees first that everybody is out of the region
            self._system_calls((code.NR_MUNMAP, self.region.base, self.region.size), code.NEVER, ())
        elif self.mapped:
            self.outcome.left.append(f"a region of {self.region.size // 1024} kB that a queued call may still need")
        if self.borrower.all_back():
            self.memory.write(self.cave.address, self.cave_bytes)
        else:
            self.outcome.left.append("a trampoline of 344 bytes: its thread has not come back")

    def _nobody_comes(self) -> bool:
        """Whether no thread can come to the region any more. One that may just be leaving it is noted in `out`."""
        header = self.region.header
        if self._state() in (1, 2):
            return False
        inner = self.memory.u32(header + code.TID)
        if inner and not self._thread_gone(inner):
            return False
        queued, ran = self.memory.u32(header + code.QUEUED), self.memory.u32(header + code.RAN)
        if queued != ran:
            return False
        by = procfs.tid_outside(self.pid, self.memory.u32(header + code.RAN_BY)) if ran else None
        if by is not None:
            self.borrower.expect(by)
        return True

    def _thread_gone(self, inner: int) -> bool:
        deadline = time.monotonic() + GONE_S
        while time.monotonic() < deadline:
            tid = procfs.tid_outside(self.pid, inner)
            if tid is None:
                return True
            time.sleep(0.0005)
        return False
