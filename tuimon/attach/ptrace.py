"""One stop of one thread, through ptrace.

`borrow` is the only thing that is ever done to a thread: stop it, look, change its registers once, let it go. Between the
stop and the detach there is one point of no return, the single PTRACE_SETREGSET; a tracer that dies before it leaves the
thread as it was, one that dies after it has set the thread on a way back that needs no tracer.

The calls have to come from one thread of a process that may die at any moment: see `helper`.
"""

from __future__ import annotations

import ctypes
import errno
import os
import signal
import struct
import time
from collections.abc import Callable
from typing import NamedTuple

from tuimon.attach.code_x86_64 import REGISTERS, WAITS, Registers, resume_point
from tuimon.attach.procfs import Memory, status
from tuimon.attach.refusal import Refused

PTRACE_CONT, PTRACE_DETACH = 7, 17
PTRACE_GETREGSET, PTRACE_SETREGSET = 0x4204, 0x4205
PTRACE_SEIZE, PTRACE_INTERRUPT = 0x4206, 0x4207
PTRACE_GETSIGMASK = 0x420A
PTRACE_GET_RSEQ_CONFIGURATION = 0x420F
EVENT_STOP = 128
NT_PRSTATUS = 1
WALL = 0x40000000  # __WALL: also threads that are not children
USER_CODE_64 = 0x33  # the code segment of 64-bit programs
_EINTR = (1 << 64) - errno.EINTR
STOP_S = 1.0  # a thread that is not stopped by then sits in the kernel and cannot be

_libc = ctypes.CDLL(None, use_errno=True)
_ptrace = _libc.ptrace
_ptrace.restype = ctypes.c_long
_ptrace.argtypes = [ctypes.c_long, ctypes.c_long, ctypes.c_void_p, ctypes.c_void_p]


class _Iovec(ctypes.Structure):
    _fields_ = (("base", ctypes.c_void_p), ("length", ctypes.c_size_t))


class Again(Exception):
    """The thread was not where it had to be (or is gone): choose again. Nothing was changed."""


class Stopped(NamedTuple):
    """A thread at its stop."""

    tid: int
    registers: Registers
    mask: bytes
    """The blocked signals, 8 bytes: they differ from the usual ones while a signal handler runs."""

    @property
    def number(self) -> int | None:
        """The system call it was stopped in; None in user code."""
        number = self.registers["orig_rax"]
        return number if number < 1 << 63 else None


def supported() -> None:
    """Raises Refused where this machine is not one that the injector is made for."""
    system = os.uname()
    if system.sysname != "Linux" or not os.path.isdir("/proc/self/task"):
        raise Refused("platform", "attaching needs Linux; start the job with `tuimon run` instead")
    if system.machine != "x86_64":
        raise Refused(
            "platform",
            f"attaching to a running process is built for x86_64, this machine is {system.machine}; "
            "start the job with `tuimon run` instead",
        )
    release = tuple(int(part) for part in system.release.split("-")[0].split(".")[:2] if part.isdigit())
    if release < (4, 17):
        # older ones take MAP_FIXED_NOREPLACE for a hint
        raise Refused("old-kernel", f"attaching needs Linux 4.17, this is {system.release}; use `tuimon run`")


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


def _stop(tid: int) -> float:
    """Stop a thread; gives the moment. Afterwards it is in a ptrace stop of ours."""
    try:
        _call(PTRACE_SEIZE, tid)
    except OSError as error:
        if error.errno == errno.ESRCH:
            raise Again("the thread is gone") from None
        raise
    _call(PTRACE_INTERRUPT, tid)
    deadline = time.monotonic() + STOP_S
    while True:
        state = _wait(tid, deadline)
        number = os.WSTOPSIG(state)
        if state >> 16 == EVENT_STOP:
            if number == signal.SIGTRAP:
                return time.monotonic()
            _call(PTRACE_DETACH, tid)
            raise Refused("stopped", "the process has just been stopped by a signal; continue it first")
        # a signal on its way to the thread: pass it on, the interrupt is still to come
        _call(PTRACE_CONT, tid, 0, number)


def _look(tid: int) -> Stopped:
    words = (ctypes.c_uint64 * len(REGISTERS))()
    vector = _Iovec(ctypes.addressof(words), ctypes.sizeof(words))
    _call(PTRACE_GETREGSET, tid, NT_PRSTATUS, ctypes.addressof(vector))
    mask = ctypes.create_string_buffer(8)
    _call(PTRACE_GETSIGMASK, tid, 8, ctypes.addressof(mask))
    return Stopped(tid, dict(zip(REGISTERS, words, strict=True)), mask.raw)


def _set(tid: int, registers: Registers) -> None:
    words = (ctypes.c_uint64 * len(REGISTERS))(*(registers[name] for name in REGISTERS))
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
    return bool(start <= stopped.registers["rip"] < start + length)


def _signal_waits(pid: int, tid: int) -> bool:
    """Whether a signal that is not blocked is pending for the thread."""
    facts = status(pid, tid)
    pending = int(facts["SigPnd"], 16) | int(facts["ShdPnd"], 16)
    return bool(pending & ~int(facts["SigBlk"], 16))


def borrow(pid: int, tid: int, memory: Memory, prepare: Callable[[Stopped], Registers | None], pauses: list[float]) -> None:
    """Stop a thread, set the registers that `prepare` gives (None: leave it alone), let it go.

    The pause in seconds is added to `pauses`, whatever comes of the stop. `prepare` has to write the code that the registers
    lead to; it raises Again to leave the thread as it is. Raises Again where the thread is gone or must not be touched at
    this point, Refused where the process cannot be traced, OSError.
    """
    try:
        begun = _stop(tid)
    except OSError as error:
        if error.errno == errno.EPERM and not os.path.exists(f"/proc/{pid}/task/{tid}"):
            raise Again("the thread has just ended") from None
        raise
    undisturbed: Registers | None = None
    try:
        stopped = _look(tid)
        if stopped.registers["cs"] != USER_CODE_64:
            raise Refused("arch", f"process {pid} runs 32-bit code; tuimon attaches to 64-bit ones")
        signal_waits = stopped.number is not None and _signal_waits(pid, tid)
        if stopped.number in WAITS and stopped.registers["rax"] == _EINTR and not signal_waits:
            undisturbed = resume_point(stopped.registers)  # the call has failed because of this stop alone
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
        try:
            if undisturbed is not None:
                _set(tid, undisturbed)
            _call(PTRACE_DETACH, tid)
        except OSError as error:
            if error.errno != errno.ESRCH:
                raise
        pauses.append(time.monotonic() - begun)


def can_be_made_again(number: int | None) -> bool:
    """Whether a thread blocked in this system call (None: not blocked) may be stopped without the call noticing."""
    return number is None or number in WAITS
