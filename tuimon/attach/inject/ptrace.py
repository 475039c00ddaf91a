"""One stop of one thread, through ptrace.

`borrow` is the only thing that is ever done to a thread: stop it, look, change its registers once, let it go. Between the
stop and the detach there is one point of no return, the single PTRACE_SETREGSET; a tracer that dies before it leaves the
thread as it was, one that dies after it has set the thread on a way back that needs no tracer.

The calls have to come from one thread of a process that may die at any moment: see `helper`.
"""

from __future__ import annotations

import contextlib
import ctypes
import errno
import os
import signal
import struct
import time
from collections.abc import Callable

from tuimon.attach.machine import MACHINES, code
from tuimon.attach.machine.layout import Registers, Sleeping, Stopped
from tuimon.attach.procfs import Memory, only_poller, sleeps, status, thread_call
from tuimon.attach.refusal import Refused

PTRACE_CONT, PTRACE_DETACH = 7, 17
PTRACE_GETREGSET, PTRACE_SETREGSET = 0x4204, 0x4205
PTRACE_SEIZE, PTRACE_INTERRUPT = 0x4206, 0x4207
PTRACE_GETSIGMASK = 0x420A
PTRACE_GET_RSEQ_CONFIGURATION = 0x420F
EVENT_STOP = 128
NT_PRSTATUS = 1
WALL = 0x40000000  # __WALL: also threads that are not children
_OTHER_BITS = "process {} runs 32-bit code; tuimon attaches to 64-bit ones"
OTHERS_S = 0.25  # so long another tracer may keep the main thread
STOP_S = 1.0  # a thread that is not stopped by then sits in the kernel and cannot be

_libc = ctypes.CDLL(None, use_errno=True)
_ptrace = _libc.ptrace
_ptrace.restype = ctypes.c_long
_ptrace.argtypes = [ctypes.c_long, ctypes.c_long, ctypes.c_void_p, ctypes.c_void_p]


class _Iovec(ctypes.Structure):
    _fields_ = (("base", ctypes.c_void_p), ("length", ctypes.c_size_t))


class Again(Exception):
    """The thread was not where it had to be (or is gone): choose again. Nothing was changed."""


def supported() -> None:
    """Raises Refused where this machine is not one that the injector is made for."""
    system = os.uname()
    if system.sysname != "Linux" or not os.path.isdir("/proc/self/task"):
        raise Refused("platform", "attaching needs Linux; start the job with `tuimon run` instead")
    if system.machine not in MACHINES:
        raise Refused(
            "platform",
            f"attaching to a running process is built for {' and '.join(MACHINES)}, this machine is {system.machine}; "
            "start the job with `tuimon run` instead",
        )
    machine, pages = MACHINES[system.machine], os.sysconf("SC_PAGE_SIZE")
    if pages not in machine.PAGE_SIZES:
        raise Refused(
            "page-size",
            f"attaching has not been tried on a kernel with pages of {pages // 1024} kB, as this one has; start the job with "
            "`tuimon run` instead",
        )
    release = tuple(int(part) for part in system.release.split("-")[0].split(".")[:2] if part.isdigit())
    if release < machine.OLDEST_KERNEL:
        oldest = ".".join(map(str, machine.OLDEST_KERNEL))
        raise Refused("old-kernel", f"attaching needs Linux {oldest}, this is {system.release}; use `tuimon run`")


def _call(request: int, tid: int, address: int = 0, data: int = 0) -> int:
    result = int(_ptrace(request, tid, address, data))
    if result == -1:
        code = ctypes.get_errno()
        raise OSError(code, f"ptrace({request:#x}): {os.strerror(code)}")
    return result


def _wait(tid: int, deadline: float) -> int:
    """The wait status of the next stop."""
    while True:
        try:
            who, state = os.waitpid(tid, WALL | os.WNOHANG)
        except ChildProcessError:
            raise Again("the thread is gone") from None
        if who:
            if os.WIFEXITED(state) or os.WIFSIGNALED(state):
                raise Again("the thread has ended")
            return state
        if time.monotonic() > deadline:
            raise Refused("stuck", f"thread {tid} sits in the kernel and cannot be stopped; try again")
        # the kernel announces each stop with SIGCHLD, which `inject` has blocked: sleep until then. Spinning instead would
        # use up this process's turn on the processor, and then it waits for its next one while the thread stands still.
        # Another thread of this process may get the signal, so do not rely on it.
        signal.sigtimedwait([signal.SIGCHLD], 0.001)


def _stop(pid: int, tid: int) -> tuple[float, tuple[Sleeping, int] | None]:
    """Stop a thread; gives the moment, and what _blocked_in said of it. Afterwards it is in a ptrace stop of ours."""
    try:
        _call(PTRACE_SEIZE, tid)
    except OSError as error:
        if error.errno == errno.ESRCH:
            raise Again("the thread is gone") from None
        raise
    seen = _blocked_in(pid, tid) if code.LOOK_BEFORE_A_STOP else None
    _call(PTRACE_INTERRUPT, tid)
    deadline = time.monotonic() + STOP_S
    while True:
        state = _wait(tid, deadline)
        number = os.WSTOPSIG(state)
        if state >> 16 == EVENT_STOP:
            if number == signal.SIGTRAP:
                return time.monotonic(), seen
            _call(PTRACE_DETACH, tid)
            raise Refused("stopped", "the process has just been stopped by a signal; continue it first")
        # a signal on its way to the thread: pass it on, the interrupt is still to come
        _call(PTRACE_CONT, tid, 0, number)


def _register_set(tid: int, number: int, most: int) -> bytes:
    """One register set. Raises OSError where this kernel or this processor has none of that kind."""
    room = ctypes.create_string_buffer(most)
    vector = _Iovec(ctypes.addressof(room), most)
    _call(PTRACE_GETREGSET, tid, number, ctypes.addressof(vector))
    return room.raw[: vector.length]


def _look(pid: int, tid: int, memory: Memory, seen: tuple[Sleeping, int] | None) -> Stopped:
    """What a stopped thread has; `seen` is what _blocked_in gave right before the stop."""
    raw = _register_set(tid, NT_PRSTATUS, 8 * len(code.REGISTERS))
    if len(raw) != 8 * len(code.REGISTERS):
        raise Refused("arch", _OTHER_BITS.format(pid))
    registers = dict(zip(code.REGISTERS, struct.unpack(f"<{len(code.REGISTERS)}Q", raw), strict=True))
    if not code.is_native(registers):
        raise Refused("arch", _OTHER_BITS.format(pid))
    mask = ctypes.create_string_buffer(8)
    _call(PTRACE_GETSIGMASK, tid, 8, ctypes.addressof(mask))
    sets = {}
    for number, most in code.SETS.items():
        with contextlib.suppress(OSError):
            sets[number] = _register_set(tid, number, most)
    before: Sleeping | None = None
    if code.LOOK_BEFORE_A_STOP:
        count = sleeps(pid, tid)
        before = _still_in(pid, tid, count, seen)
    stopped = Stopped(tid, registers, mask.raw, code.call_number(registers, memory), sets, before)
    if code.LOOK_BEFORE_A_STOP:
        if code.lost_its_poller(stopped) and (poller := only_poller(pid)) is not None:
            stopped = code.in_poller(stopped, poller)
        coming = code.call_to_come(stopped)
        _left[pid, tid] = (coming, count) if coming is not None and count is not None else None
    return stopped


_left: dict[tuple[int, int], tuple[Sleeping, int] | None] = {}
"""The call that a thread was to make again after the last stop, and how often it had gone to sleep by then."""


def _still_in(pid: int, tid: int, count: int | None, seen: tuple[Sleeping, int] | None) -> Sleeping | None:
    """The call in which a stopped thread must be, if it is in one: the stop is the only time that it has gone to sleep since.

    One that was not asleep when it was looked at may be on its way back from the last stop, into the call that it was in then:
    there it sleeps once, or not yet.
    """
    if count is None:
        return None
    if seen is not None:
        return seen[0] if count == seen[1] + 1 else None
    left = _left.get((pid, tid))
    return left[0] if left is not None and left[1] < count <= left[1] + 2 else None


def _blocked_in(pid: int, tid: int) -> tuple[Sleeping, int] | None:
    """The call a thread is blocked in, and how often it has gone to sleep by then; None where it is not."""
    count = sleeps(pid, tid)
    call = thread_call(pid, tid)
    if count is None or call is None or call.number is None or call.number < 0:
        return None
    return Sleeping(call.number, call.arguments, call.pc, call.sp), count


def _set(tid: int, registers: Registers) -> None:
    words = (ctypes.c_uint64 * len(code.REGISTERS))(*(registers[name] for name in code.REGISTERS))
    vector = _Iovec(ctypes.addressof(words), ctypes.sizeof(words))
    _call(PTRACE_SETREGSET, tid, NT_PRSTATUS, ctypes.addressof(vector))


def _in_restartable_sequence(stopped: Stopped, memory: Memory) -> bool:
    """Whether the thread is inside an rseq critical section: leaving it without the kernel's abort would break it."""
    raw = ctypes.create_string_buffer(24)
    try:
        _call(PTRACE_GET_RSEQ_CONFIGURATION, stopped.tid, 24, ctypes.addressof(raw))
    except OSError:  # before Linux 5.13; glibc registers from 2.35 on
        return False
    area = int(struct.unpack_from("<Q", raw.raw)[0])
    if not area:
        return False
    try:
        section = memory.u64(area + 8)
        if not section:
            return False
        start, length = struct.unpack("<QQ", memory.read(section + 8, 16))
    except OSError:
        return False
    return bool(start <= code.pc(stopped.registers) < start + length)


def _signal_waits(pid: int, tid: int) -> bool:
    """Whether a signal that is not blocked is pending for the thread."""
    facts = status(pid, tid)
    pending = int(facts["SigPnd"], 16) | int(facts["ShdPnd"], 16)
    return bool(pending & ~int(facts["SigBlk"], 16))


def _tracer(pid: int, tid: int) -> int:
    """Who traces the thread; 0 for nobody."""
    try:
        return int(status(pid, tid)["TracerPid"])
    except (OSError, KeyError, ValueError):
        return 0


def borrow(pid: int, tid: int, memory: Memory, prepare: Callable[[Stopped], Registers | None], pauses: list[float]) -> None:
    """Stop a thread, set the registers that `prepare` gives (None: leave it alone), let it go.

    The pause in seconds is added to `pauses`, whatever comes of the stop. `prepare` has to write the code that the registers
    lead to; it raises Again to leave the thread as it is. Raises Again where the thread is gone or must not be touched at
    this point, Refused where the process cannot be traced, OSError.

    Two things the thread can notice. A wait with a limit that counts from its beginning, and that the kernel ends with EINTR
    for our stop (epoll_wait, a recv with SO_RCVTIMEO), is made again with the whole of it: each stop can make it longer by
    what had passed. And where a signal comes between the look at what is pending and the detach, its handler runs, but the
    call is made again all the same, where it would have come back with EINTR.
    """
    try:
        begun, seen = _stop(pid, tid)
    except OSError as error:
        if error.errno == errno.EPERM:
            if not os.path.exists(f"/proc/{pid}/task/{tid}"):
                raise Again("the thread has just ended") from None
            if tracer := _tracer(pid, tid):
                deadline = time.monotonic() + OTHERS_S  # a sampling profiler stops threads for moments
                while tid == pid and _tracer(pid, tid) == tracer:
                    if time.monotonic() > deadline:
                        raise Refused(
                            "traced",
                            f"process {pid} is being traced by process {tracer}; end that one first (a debugger, strace)",
                        ) from None
                    time.sleep(0.002)
                raise Again(f"the thread is being traced by process {tracer}") from None
        raise
    undisturbed: Registers | None = None
    try:
        stopped = _look(pid, tid, memory, seen)
        signal_waits = stopped.number is not None and _signal_waits(pid, tid)
        if code.broken_by_stop(stopped) and not signal_waits:
            undisturbed = code.resume_point(stopped)  # the call has failed because of this stop alone
        memory.stopped = tid
        registers = prepare(stopped)
        if registers is not None:
            if signal_waits:
                # the call must come back with the signal's news: do not make it again behind its back
                raise Again("a signal is waiting")
            if stopped.number is None and _in_restartable_sequence(stopped, memory):
                raise Again("in a restartable sequence")
            undisturbed = None
            _set(tid, registers)
    finally:
        memory.stopped = None
        try:
            if undisturbed is not None:
                _set(tid, undisturbed)
            _call(PTRACE_DETACH, tid)
        except OSError as error:
            if error.errno != errno.ESRCH:
                raise
        pauses.append(time.monotonic() - begun)
