"""What the injected code has in common on all machines: the header in front of the script, and what the stubs call.

asm/*/stubs.s says what each word of the header means. Literals are 64-bit words behind the code, in the order in which the
sources name them.
"""

from __future__ import annotations

import struct
from typing import NamedTuple

STATE, CANCEL, RC, PID, RESULT, THREAD_STATE, QUEUED, RAN, TID, RAN_BY, SCRIPT = 0, 4, 8, 12, 16, 24, 32, 36, 40, 44, 64
HEADER = struct.Struct("<IIiIqQIIII")

STUB_SYMBOLS = (
    "Py_IsInitialized",
    "Py_IsFinalizing",
    "Py_AddPendingCall",
    "PyThread_start_new_thread",
    "PyInterpreterState_Main",
    "PyThreadState_New",
    "PyThreadState_Clear",
    "PyThreadState_Delete",
    "PyThreadState_DeleteCurrent",
    "note_state",
    "PyEval_AcquireThread",
    "PyGILState_Ensure",
    "PyGILState_Release",
    "PyDict_New",
    "PyRun_String",
    "Py_DecRef",
    "PyErr_Clear",
)
"""The literals of stubs.s: addresses in the target. Py_IsFinalizing and note_state may be 0."""

PROT_READ, PROT_WRITE, PROT_EXEC = 1, 2, 4
MAP_PRIVATE, MAP_ANONYMOUS, MAP_FIXED_NOREPLACE = 2, 0x20, 0x100000
NEVER = 1 << 40
"""For `expected`: no system call gives it, so the second call is not made."""

# errno.h, and linux/errno.h for those that only the kernel and its tracers see
EINTR, ERESTARTSYS, ERESTARTNOINTR, ERESTARTNOHAND, ERESTART_RESTARTBLOCK = 4, 512, 513, 514, 516

Registers = dict[str, int]


class Sleeping(NamedTuple):
    """A blocked system call as it was seen right before a stop."""

    number: int
    arguments: tuple[int, ...]
    pc: int
    """Behind the instruction that makes the call."""
    sp: int


class Stopped(NamedTuple):
    """A thread at its stop."""

    tid: int
    registers: Registers
    mask: bytes = bytes(8)
    """The blocked signals: they differ from the usual ones while a signal handler runs."""
    number: int | None = None
    """The system call it was stopped in; None in user code."""
    sets: dict[int, bytes] = {}  # noqa: RUF012 - never written to
    """Further register sets, as the machine asked for them (NT_* number to bytes)."""
    before: Sleeping | None = None
    """The call it was seen blocked in right before, if it is certain that it has not slept since."""


class Way(NamedTuple):
    """Where a stopped thread is sent: what has to lie in its memory first, and the registers it gets."""

    writes: list[tuple[int, bytes]]
    registers: Registers
    own_stack: tuple[int, int] | None = None
    """The part of the thread's own stack that is written to: has to lie in one writable mapping."""


class Unusable(Exception):
    """The thread cannot be sent anywhere from where it stands; the text says why."""


def words(*values: int) -> bytes:
    """Numbers as literals."""
    return b"".join(struct.pack("<Q", value & 0xFFFFFFFFFFFFFFFF) for value in values)


def stubs(code: bytes, addresses: dict[str, int]) -> bytes:
    """The stubs with the target's addresses behind them."""
    return code + words(*(addresses[name] for name in STUB_SYMBOLS))


def negative(error: int) -> int:
    """-error as a register holds it."""
    return (1 << 64) - error
