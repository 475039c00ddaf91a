"""The machine code for x86_64, and what is written behind it.

The sources are asm/*.s beside this file; a test assembles them and compares every byte. Literals are 64-bit words behind the
code, in the order in which the sources name them.
"""

from __future__ import annotations

import struct

SYSCALLS = bytes.fromhex(
    "488b05a1000000488b3da2000000488b35a3000000488b15a40000004c8b15a50000004c8b05a60000004c8b0da70000000f05488b0da600"
    "0000488d0c08e302eb1e488b059f000000488b3da0000000488b35a1000000488b15a20000000f05488b05a1000000488b3da2000000488b"
    "35a3000000488b15a40000004c8b15a50000004c8b05a60000004c8b0da7000000488b0da80000004c8b1da9000000ff25ab0000000f1f00"
)
"""asm/syscalls.s without its literals."""

CALL = bytes.fromhex(
    "488b1db9000000b8ffffffffbaffffffff0fae23fc31ed488b3daa000000ff15ac000000488b0dad000000488901488b1d8b000000b8ffff"
    "ffffbaffffffff0fae2bff3598000000488b0599000000488b1d9a000000488b0d9b000000488b159c000000488b359d000000488b3d9e00"
    "0000488b2d9f0000004c8b05a00000004c8b0da10000004c8b15a20000004c8b1da30000004c8b25a40000004c8b2da50000004c8b35a600"
    "00004c8b3da70000009d488b25a7000000ff25a900000090"
)
"""asm/call.s without its literals."""

STUBS = bytes.fromhex(
    "f30f1efa554889e55341544889fbe87d0000004885c0751ff0ff43204889de488d3d9a000000ff15640200004863c085c07404f0ff4b2041"
    "5c5b5dc30f1f4000f30f1efa554889e55341544889fbe83d0000004885c0753231c0b901000000f00fb10bb80100000075204889de488d3d"
    "4c010000ff151e0200004883f8ff740431c0eb06c70304000000415c5b5dc390554889e5ff15e601000085c048c7c0feffffff7417488b05"
    "dc0100004885c0740bffd0f7d84819c04883e0fd5dc36690f30f1efa554889e55341544889fbb8270000000f053b430c756631c0b9010000"
    "00837b04007405b905000000f00fb10b754e83f9057449ff15a30100004889c7ff15a20100004885c0742f488943184989c44889de488d3d"
    "44000000ff15760100004883f8ff75184c89e7ff157f0100004c89e7ff157e010000c70304000000b8ba0000000f0589432cf0ff432431c0"
    "415c5b5dc366662e0f1f840000000000f30f1efa554889e55341544889fbb8ba0000000f058943284c8b6318488b05450100004885c07405"
    "4c89e7ffd04c89e7ff153a010000e8650000004c89e7ff150c010000ff1516010000c70303000000415c5b5dc366662e0f1f840000000000"
    "f30f1efa554889e55341544889fbb8ba0000000f05894328ff15fa0000004189c4e81a0000004489e7ff15f1000000c70303000000415c5b"
    "5dc3660f1f440000554889e541544155c70302000000c7430802000000837b04007556c7430801000000ff15c00000004885c0743e4989c4"
    "488d7b40be010100004c89e24c89e1ff15ab0000004989c54885c074104c89efff15a2000000c74308000000004c89e7ff15920000004d85"
    "ed7506ff158f000000415d415c5dc3660f1f840000000000"
)
"""asm/stubs.s without its literals."""

ENTER_PENDING = 0x0
ENTER_THREAD = 0x40
"""Where the two entries lie in STUBS."""

SYSCALLS_SIZE = len(SYSCALLS) + 22 * 8
CALL_SIZE = len(CALL) + 22 * 8

# the header in front of the script (asm/stubs.s says what is what)
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
"""The literals of asm/stubs.s: addresses in the target. Py_IsFinalizing and note_state may be 0."""

NR_MMAP, NR_MPROTECT, NR_MUNMAP, NR_RESTART = 9, 10, 11, 219
PROT_READ, PROT_WRITE, PROT_EXEC = 1, 2, 4
MAP_PRIVATE, MAP_ANONYMOUS, MAP_FIXED_NOREPLACE = 2, 0x20, 0x100000
NEVER = 1 << 40
"""For `expected`: no system call gives it, so the second call is not made."""

WAITS = frozenset(
    {
        0,  # read
        7,  # poll
        23,  # select
        35,  # nanosleep
        43,  # accept
        45,  # recvfrom
        47,  # recvmsg
        61,  # wait4
        202,  # futex
        219,  # restart_syscall
        230,  # clock_nanosleep
        232,  # epoll_wait
        247,  # waitid
        270,  # pselect6
        271,  # ppoll
        281,  # epoll_pwait
        288,  # accept4
        441,  # epoll_pwait2
    }
)
"""System calls in which a thread waits without holding a lock of malloc or of the loader, and which can be made again as if
nothing had been: when a stop makes one give EINTR, nothing has been consumed."""

FUTEX = 202

# fmt: off
REGISTERS = (
    "r15", "r14", "r13", "r12", "rbp", "rbx", "r11", "r10", "r9", "r8", "rax", "rcx", "rdx", "rsi", "rdi", "orig_rax", "rip",
    "cs", "eflags", "rsp", "ss", "fs_base", "gs_base", "ds", "es", "fs", "gs",
)
"""The order of struct user_regs_struct (asm/user_64.h)."""

Registers = dict[str, int]

_SYSCALL_REGISTERS = ("rax", "rdi", "rsi", "rdx", "r10", "r8", "r9", "rcx", "r11", "rip")
_CALL_REGISTERS = (
    "eflags", "rax", "rbx", "rcx", "rdx", "rsi", "rdi", "rbp", "r8", "r9", "r10", "r11", "r12", "r13", "r14", "r15", "rsp",
    "rip",
)
# fmt: on


def _words(*values: int) -> bytes:
    return b"".join(struct.pack("<Q", value & 0xFFFFFFFFFFFFFFFF) for value in values)


def syscalls_code(first: tuple[int, ...], expected: int, second: tuple[int, ...], registers: Registers) -> bytes:
    """A trampoline that makes one or two system calls (number, arguments..) and returns to `registers`.

    `second` is made only where the first one gives `expected`.
    """
    one = (*first, 0, 0, 0, 0, 0, 0)[:7]
    two = (*second, 0, 0, 0, 0)[:4]
    return SYSCALLS + _words(*one, -expected, *two, *(registers[name] for name in _SYSCALL_REGISTERS))


def call_code(vector_area: int, argument: int, function: int, result: int, registers: Registers) -> bytes:
    """A trampoline that calls function(argument), stores what it gives at `result` and returns to `registers`.

    The trap flag is taken out: it belongs to a debugger's single step, not to the thread.
    """
    own = {**registers, "eflags": registers["eflags"] & ~0x100}
    return CALL + _words(vector_area, argument, function, result, *(own[name] for name in _CALL_REGISTERS))


def stubs_code(addresses: dict[str, int]) -> bytes:
    """The stubs with the target's addresses behind them."""
    return STUBS + _words(*(addresses[name] for name in STUB_SYMBOLS))


def resume_point(registers: Registers) -> Registers:
    """The registers with which a stopped thread has to go on.

    At a stop inside a system call the kernel has yet to decide about making the call again: it does so by orig_rax, which we
    take away. So what it would have done is done here (arch/x86/kernel/signal.c: ERESTARTSYS, ERESTARTNOINTR,
    ERESTARTNOHAND make the call again, ERESTART_RESTARTBLOCK goes on with restart_syscall). A wait that gives EINTR only
    because of our stop is made again as well; the caller has made sure that no signal is waiting to be delivered.
    """
    after = dict(registers)
    number = registers["orig_rax"]
    if number < 1 << 63:
        error = (1 << 64) - registers["rax"]
        if error in (512, 513, 514) or (error == 4 and number in WAITS):
            after["rax"], after["rip"] = number, registers["rip"] - 2
        elif error == 516:
            after["rax"], after["rip"] = NR_RESTART, registers["rip"] - 2
    after["orig_rax"] = (1 << 64) - 1
    return after
