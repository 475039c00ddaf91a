"""Our place in a target: the cave, the region, and the errands that its threads run there.

The cave holds a trampoline for the time in which a thread makes a system call for us; the region holds what is called, the
header, the script. What is in between waits for proof: a trampoline is not written over, and the region not unmapped, before
every thread that was sent there has been seen elsewhere, and nothing that is queued can come there any more.
"""

from __future__ import annotations

import contextlib
import time
from collections.abc import Callable, Iterator

from tuimon.attach import explain, procfs
from tuimon.attach.inject import ptrace, room, seccomp, threads, writing
from tuimon.attach.inject.borrowing import Borrower
from tuimon.attach.inject.lock import Lock
from tuimon.attach.inject.ptrace import Again
from tuimon.attach.inject.waiting import Wait
from tuimon.attach.machine import code, layout
from tuimon.attach.machine.layout import Registers, Stopped, Unusable, Way
from tuimon.attach.preflight import Target
from tuimon.attach.refusal import Refused

CHOICES = 400
"""How often a thread is chosen anew; a pause of a millisecond lies in between."""
UNMAP_S = 5.0
"""So long a thread is looked for that can be sent to unmap the region; one that gets signals all the time seldom can be."""
CALLED_S = 2.0
PAUSE_S = 0.1
"""The longest pause between two attempts to leave."""
_NOT_BACK = 0x5555


class Foothold:
    """`take` it, `call` from it, `leave` it."""

    def __init__(self, target: Target, wait: Wait) -> None:
        """Nothing is looked for or touched yet."""
        self.target = target
        self.pid = target.pid
        self.memory = target.memory
        self.wait = wait
        self.region, self.cave = room.Region(0, 0), room.Cave(0, 0, False)
        self.cave_bytes = b""
        """What has to be put back; empty as long as the cave is not ours."""
        self.mapped = False
        """The region is there, or a thread is on its way to map it."""
        self.written = False
        self.waiting: set[int] = set()
        """Threads that were in a wait when they were sent to make system calls."""
        self.borrower = Borrower(self.pid, self.memory, [])
        self._in_cave = b""
        """What we last saw or wrote there."""
        self._lock = Lock(self.pid, self.memory.fd)

    def take(self, script: bytes) -> None:
        """Find the room, map the region, write stubs, header and script. Raises Refused, OSError.

        Refused("no-room" or "no-cave") where there is none. The room is chosen only when no other tuimon is at work.
        """
        self._lock.take()
        mapped = procfs.mappings(self.pid)
        self.region = room.region(mapped, script)
        self._choose_cave(mapped)
        seccomp.check(self.pid, self.memory, self.borrower.stops)
        self._map()
        self._write(script)

    def _choose_cave(self, mapped: list[procfs.Mapping]) -> None:
        self.cave = room.cave(self.memory, mapped)
        self.borrower.spans = [self.cave.span, self.region.span]

    def state(self) -> int:
        """The header's first word: how far the script has come (asm/*/stubs.s)."""
        return self.word(layout.STATE)

    def word(self, offset: int) -> int:
        """A word of the header."""
        return self.memory.u32(self.region.header + offset)

    def cancel(self) -> None:
        """Make whatever is queued a no-op; nothing to do before anything can be."""
        if self.written:
            self.memory.write(self.region.header + layout.CANCEL, b"\1\0\0\0")

    def _map(self) -> None:
        region = self.region
        # address, length, protection, flags, file (none: -1), offset
        first = (code.NR_MMAP, region.base, region.size, layout.PROT_READ | layout.PROT_WRITE,
                 layout.MAP_PRIVATE | layout.MAP_ANONYMOUS | layout.MAP_FIXED_NOREPLACE, -1, 0)  # fmt: skip
        second = (code.NR_MPROTECT, region.base, room.PAGE, layout.PROT_READ | layout.PROT_EXEC)
        self._free_cave()
        tid = self._system_calls(first, region.base, second, self._no_patience)
        self.mapped = True  # or will be, for as long as that thread is not back
        self._let_settle(tid)
        deadline = time.monotonic() + CALLED_S
        while not room.is_there(procfs.mappings(self.pid), region):
            if self.memory.is_gone():
                raise explain.dead(self.pid)
            if time.monotonic() > deadline:
                if not self.borrower.is_back(tid):
                    raise self._no_processor()
                if room.is_there(procfs.mappings(self.pid), region):
                    return
                raise Refused(
                    "no-memory",
                    f"process {self.pid} could not get executable memory for the hook (a memory limit, or a policy such as "
                    "SELinux's execmem); use `tuimon run`",
                )
            time.sleep(0.0005)

    def _let_settle(self, tid: int) -> None:
        """Wait until a thread that was sent off from a wait is in it again: until then it looks like one that gets on."""
        deadline = time.monotonic() + threads.ASLEEP_S
        while tid in self.waiting and time.monotonic() < deadline:
            call = procfs.thread_call(self.pid, tid)
            if call is None or not call.running:
                return
            time.sleep(0.0005)

    def _no_processor(self) -> Refused:
        return Refused("busy", f"process {self.pid} gets no processor time, or waits in the call; try again later")

    def _write(self, script: bytes) -> None:
        region = self.region
        stubs = layout.stubs(code.STUBS, self.target.symbols)
        header = layout.HEADER.pack(0, 0, 0, self.target.pid_inside, 0, 0, 0, 0, 0, 0)
        self._write_code(region.base, stubs)
        self.memory.write(region.header, header.ljust(layout.SCRIPT, b"\0") + script + b"\0")
        self.written = True

    def _write_code(self, address: int, data: bytes) -> None:
        """Write where the target itself may not; at a stop, if the kernel wants one for that. Raises Refused, OSError."""
        try:
            self.memory.write(address, data)
            return
        except OSError as error:
            if error.errno not in writing.HARDENED or self.memory.is_gone():
                raise

        def write(_stopped: Stopped) -> None:
            try:
                self.memory.write(address, data)
            except OSError as error:
                raise explain.may_not_write(self.pid, error) from None

        for _ in range(CHOICES):
            for tid in threads.carriers(self.pid)[:4]:
                try:
                    ptrace.borrow(self.pid, tid, self.memory, write, self.borrower.stops)
                    return
                except Again:
                    continue
            time.sleep(0.001)
        raise explain.no_thread(self.pid)

    def _free_cave(self) -> None:
        """Read what the cave holds. One that a killed tuimon has used is first seen to be empty of threads."""
        if self.cave.marked:
            for tid in procfs.thread_ids(self.pid):
                if not self.borrower.is_back(tid):
                    raise Refused("busy", "a thread of the target is still where an earlier attach sent it; try again")
            # what the file has there was never run or read; zeros are as good
            self._in_cave = self.memory.read(self.cave.address, self.cave.room)
            self.cave_bytes = bytes(self.cave.room)
        else:
            self._in_cave = self.cave_bytes = self.memory.read(self.cave.address, self.cave.room)

    def _own_cave(self) -> None:
        """Raises Again where the cave does not hold what we know of: another tuimon is at work, which the lock cannot see."""
        try:
            same = self.memory.read(self.cave.address, self.cave.room) == self._in_cave
        except ProcessLookupError:
            raise
        except OSError:
            same = False
        if not same:
            raise Again("something else is in the cave")

    def _no_patience(self, _attempt: int) -> bool:
        why = self.wait.over()
        if why == "cancelled":
            raise explain.cancelled(self.pid)
        self.wait.look(0)
        return bool(why)

    def _system_calls(self, first: tuple[int, ...], expected: int, second: tuple[int, ...], over: Callable[[int], bool]) -> int:
        """Have one or two system calls made on any thread; gives its tid. `over` is asked after each attempt."""

        def prepare(stopped: Stopped) -> Registers:
            if not code.usable(stopped):
                raise Again("in a call that would notice")
            self._own_cave()
            with _choosing_again():
                way = code.system_calls(stopped, self.cave.address, self.cave.room, first, expected, second)
            if stopped.number is not None:
                self.waiting.add(stopped.tid)
            return self._pave(way)

        attempt, unusable = 0, ""
        while True:
            found = threads.carriers(self.pid)
            if found:
                tid = found[attempt % min(len(found), 4)]
                try:
                    self.borrower.send(tid, prepare)
                    return tid
                except Again as again:
                    unusable = str(again) if isinstance(again.__cause__, Unusable) else ""
            if self.memory.is_gone():  # there is nobody to wait for
                raise explain.dead(self.pid)
            if over(attempt):
                raise explain.no_thread(self.pid, unusable)
            attempt += 1
            time.sleep(0.001)

    def call(self, tid: int, entry: int, check: Callable[[Stopped], None]) -> None:
        """Have one of the stubs called on a thread; the result is in the header when it is back. Raises Again, Refused."""
        region = self.region
        if over := self.wait.over():
            raise self.wait.refused(over, self.state())

        def prepare(stopped: Stopped) -> Registers:
            check(stopped)
            result = region.header + layout.RESULT
            with _choosing_again():
                way = code.call(
                    stopped, region.call, region.stack_top, region.vector_area, region.base + entry, region.header, result
                )
            self.memory.write(result, _NOT_BACK.to_bytes(8, "little"))
            return self._pave(way)

        self.borrower.send(tid, prepare)

    def _pave(self, way: Way) -> Registers:
        """Write what a way needs; gives the registers that lead to it."""
        if way.own_stack is not None:
            # through /proc even a guard page can be written to
            start, end = way.own_stack
            if not any(entry.start <= start and end <= entry.end and entry.writable for entry in procfs.mappings(self.pid)):
                raise Again("no room on the thread's own stack")
        for address, data in way.writes:
            try:
                self.memory.write(address, data)
            except OSError as error:
                if self.memory.is_gone():
                    raise
                raise explain.may_not_write(self.pid, error) from None
            self._note(address, data)
        return way.registers

    def _note(self, address: int, data: bytes) -> None:
        """Keep in mind what the cave holds now."""
        at = address - self.cave.address
        if 0 <= at < self.cave.room:
            self._in_cave = self._in_cave[:at] + data + self._in_cave[at + len(data) :]

    def result(self) -> int:
        """What the last call gave. Raises Refused where it does not come back."""
        deadline = time.monotonic() + CALLED_S
        while True:
            result = self.memory.u64(self.region.header + layout.RESULT)
            if result != _NOT_BACK:
                return result - (1 << 64) if result >> 63 else result
            if time.monotonic() > deadline:
                raise self._no_processor()
            time.sleep(0.0002)

    # -------------------------------------------------------------------------------------------------------- leaving

    def leave(self, seconds: float) -> list[str]:
        """Put the cave's bytes back, and unmap the region as soon as it is certain that nothing of it is in use.

        For that so many seconds are waited; another tuimon may attach in the meantime. Gives what is left then, in words; what
        goes wrong here decides nothing any more, but for Refused("stuck"): see `abandon`. May be called again.
        """
        deadline, pause = time.monotonic() + seconds, 0.0005
        while True:
            try:
                self._leave()
                return []
            except (OSError, Again, Refused) as error:
                if isinstance(error, Refused) and error.code == "stuck":
                    raise
                if time.monotonic() > deadline:
                    return self.left(str(error))
            finally:
                self._lock.release()
            time.sleep(pause)
            pause = min(pause * 1.2, PAUSE_S)

    def left(self, why: str) -> list[str]:
        """What is in the target now, in words."""
        left = []
        if not self.memory.is_gone():
            if self.cave_bytes:
                left.append(f"a trampoline of {self.cave.room} bytes ({why})")
            if self.mapped:
                left.append(f"a region of {self.region.size // 1024} kB ({why})")
        return left

    def abandon(self, why: str) -> list[str]:
        """Leave at once, with no stop: for where a thread may stop for us at any moment, and goes on only when this ends."""
        with contextlib.suppress(OSError, Again):
            if self.cave_bytes and not self.borrower.out:
                self._own_cave()
                self.memory.write(self.cave.address, self.cave_bytes)
                self.cave_bytes = b""
        self._lock.release()
        return self.left(why)

    def _leave(self) -> None:
        """One attempt. Raises Again where it is too early, Refused, OSError."""
        if self.memory.is_gone():
            self.cave_bytes, self.mapped = b"", False
        if self.cave_bytes:
            self._lock.take()
            self._restore_cave()
        if self.mapped:
            self._unmap()

    def _restore_cave(self) -> None:
        if not self.borrower.all_back():
            raise Again("a thread that was sent there has not come back")
        if self.cave_bytes != self._in_cave and self._is_there(self.cave.address):
            self._own_cave()
            self._write_code(self.cave.address, self.cave_bytes)
        self.cave_bytes = b""

    def _is_there(self, address: int) -> bool:
        """Whether something executable is mapped at an address: a library can have gone since."""
        return any(entry.start <= address < entry.end and entry.executable for entry in procfs.mappings(self.pid))

    def _unmap(self) -> None:
        if self.written and not self._nobody_comes():
            raise Again("a queued call may still need it")
        self._lock.take()
        mapped = procfs.mappings(self.pid)
        if room.is_ours(mapped, self.region):
            # libraries may have come and gone since
            self._choose_cave(mapped)
            self._free_cave()
            # the stop that unmaps sees first that everybody is out of the region
            unmap = (code.NR_MUNMAP, self.region.base, self.region.size)
            until = time.monotonic() + UNMAP_S
            self._system_calls(unmap, layout.NEVER, (), lambda _attempt: time.monotonic() > until)
        self.mapped = False
        self._restore_cave()

    def _nobody_comes(self) -> bool:
        """Whether no thread can come to the region any more. One that may just be leaving it is expected back."""
        if self.state() in (1, 2):
            return False
        inner = self.word(layout.TID)
        if inner and procfs.tid_outside(self.pid, inner) is not None:
            return False
        if self.word(layout.QUEUED) != self.word(layout.RAN):
            return False
        by = procfs.tid_outside(self.pid, self.word(layout.RAN_BY)) if self.word(layout.RAN) else None
        if by is not None:
            start, end = code.PENDING_TAIL
            self.borrower.expect(by, (self.region.base + start, self.region.base + end))
        return True


@contextlib.contextmanager
def _choosing_again() -> Iterator[None]:
    """A thread that cannot be sent from where it stands is left alone, as any other that is at the wrong place."""
    try:
        yield
    except Unusable as error:
        raise Again(str(error)) from error
