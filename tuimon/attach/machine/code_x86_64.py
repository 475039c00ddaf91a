"""The machine code for x86_64, and what is written behind it.

The sources are asm/x86_64/*.s beside this file; a test assembles them and compares every byte. `machine.Machine` says what
each of the names without an underscore is for.
"""

from __future__ import annotations

from collections.abc import Sequence

from tuimon.attach.machine import layout
from tuimon.attach.machine.layout import EINTR, Registers, Sleeping, Stopped, Way, negative, words
from tuimon.attach.procfs import Memory

SYSCALLS = bytes.fromhex(
    "488b05a1000000488b3da2000000488b35a3000000488b15a40000004c8b15a50000004c8b05a60000004c8b0da70000000f05488b0da600"
    "0000488d0c08e302eb1e488b059f000000488b3da0000000488b35a1000000488b15a20000000f05488b05a1000000488b3da2000000488b"
    "35a3000000488b15a40000004c8b15a50000004c8b05a60000004c8b0da7000000488b0da80000004c8b1da9000000ff25ab0000000f1f00"
)
"""asm/x86_64/syscalls.s without its literals."""

CALL = bytes.fromhex(
    "488b1db9000000b8ffffffffbaffffffff0fae23fc31ed488b3daa000000ff15ac000000488b0dad000000488901488b1d8b000000b8ffff"
    "ffffbaffffffff0fae2bff3598000000488b0599000000488b1d9a000000488b0d9b000000488b159c000000488b359d000000488b3d9e00"
    "0000488b2d9f0000004c8b05a00000004c8b0da10000004c8b15a20000004c8b1da30000004c8b25a40000004c8b2da50000004c8b35a600"
    "00004c8b3da70000009d488b25a7000000ff25a900000090"
)
"""asm/x86_64/call.s without its literals."""

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
"""asm/x86_64/stubs.s without its literals."""

ENTER_PENDING = 0x0
ENTER_THREAD = 0x40
"""Where the two entries lie in STUBS."""

PENDING_TAIL = (STUBS.index(b"\xf0\xff\x43\x24") + 4, STUBS.index(b"\xf0\xff\x43\x24") + 11)
"""Offsets in STUBS: what a queued call has yet to run once it has counted itself (RAN), after `lock inc` up to its `ret`."""

NAME = "64-bit x86"
ELF_MACHINE = 62
PAGE_SIZES = (4096,)
OLDEST_KERNEL = (4, 17)  # older ones take MAP_FIXED_NOREPLACE for a hint
HIGHEST = 0x7FFF_FFFF_F000  # user addresses end there with four levels of page tables
LEAST_ROOM = MOST_ROOM = SYSCALLS_SIZE = len(SYSCALLS) + 22 * 8
CALL_SIZE = len(CALL) + 22 * 8
VECTOR_AREA = 32 * 1024
SETS: dict[int, int] = {}
LOOK_BEFORE_A_STOP = False  # orig_rax and rax tell everything

NR_MMAP, NR_MPROTECT, NR_MUNMAP, NR_RESTART = 9, 10, 11, 219
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

_SYSCALL_REGISTERS = ("rax", "rdi", "rsi", "rdx", "r10", "r8", "r9", "rcx", "r11", "rip")
_CALL_REGISTERS = (
    "eflags", "rax", "rbx", "rcx", "rdx", "rsi", "rdi", "rbp", "r8", "r9", "r10", "r11", "r12", "r13", "r14", "r15", "rsp",
    "rip",
)
# fmt: on


def call_number(registers: Registers, memory: Memory) -> int | None:
    """orig_rax, which is negative outside of a system call."""
    number = registers["orig_rax"]
    return number if number < 1 << 63 else None


def is_native(registers: Registers) -> bool:
    """By the code segment of 64-bit programs."""
    return registers["cs"] == 0x33


def pc(registers: Registers) -> int:
    """The program counter."""
    return registers["rip"]


def sp(registers: Registers) -> int:
    """The stack pointer."""
    return registers["rsp"]


def at_call(stopped: Stopped, number: int | None, pc: int, sp: int) -> bool:
    """The kernel leaves rip behind the instruction."""
    return (stopped.number, stopped.registers["rip"], stopped.registers["rsp"]) == (number, pc, sp)


def can_be_made_again(number: int | None, arguments: Sequence[int]) -> bool:
    """Every wait: the rest of a relative one is continued with restart_syscall."""
    return number in WAITS


def usable(stopped: Stopped) -> bool:
    """In user code, or in a wait."""
    return stopped.number is None or stopped.number in WAITS


def broken_by_stop(stopped: Stopped) -> bool:
    """A wait that gives EINTR."""
    return stopped.number in WAITS and stopped.registers["rax"] == negative(EINTR)


def lost_its_poller(stopped: Stopped) -> bool:
    """The result has a register of its own."""
    return False


def in_poller(stopped: Stopped, poller: int) -> Stopped:
    """Nothing is missing."""
    return stopped


def call_to_come(stopped: Stopped) -> Sleeping | None:
    """The registers tell everything at each stop."""
    return None


def system_calls(stopped: Stopped, at: int, room: int, first: tuple[int, ...], expected: int, second: tuple[int, ...]) -> Way:
    """Only rip changes; at the end the registers that a system call uses are put back."""
    after = resume_point(stopped)
    one = (*first, 0, 0, 0, 0, 0, 0)[:7]
    two = (*second, 0, 0, 0, 0)[:4]
    own = (after[name] for name in _SYSCALL_REGISTERS)
    return Way([(at, SYSCALLS + words(*one, -expected, *two, *own))], {**after, "rip": at})


def call(stopped: Stopped, at: int, stack_top: int, vector_area: int, function: int, argument: int, result: int) -> Way:
    """The trap flag is taken out: it belongs to a debugger's single step, not to the thread."""
    after = resume_point(stopped)
    own = {**after, "eflags": after["eflags"] & ~0x100}
    code = CALL + words(vector_area, argument, function, result, *(own[name] for name in _CALL_REGISTERS))
    return Way([(at, code)], {**after, "rip": at, "rsp": stack_top})


def resume_point(stopped: Stopped) -> Registers:
    """The registers with which a stopped thread has to go on.

    At a stop inside a system call the kernel has yet to decide about making the call again: it does so by orig_rax, which we
    take away. So what it would have done is done here (arch/x86/kernel/signal.c: ERESTARTSYS, ERESTARTNOINTR,
    ERESTARTNOHAND make the call again, ERESTART_RESTARTBLOCK goes on with restart_syscall). A wait that gives EINTR only
    because of our stop is made again as well; the caller has made sure that no signal is waiting to be delivered.
    """
    registers, number = stopped.registers, stopped.number
    after = dict(registers)
    if number is not None:
        error = negative(registers["rax"])
        if error in (layout.ERESTARTSYS, layout.ERESTARTNOINTR, layout.ERESTARTNOHAND) or broken_by_stop(stopped):
            after["rax"], after["rip"] = number, registers["rip"] - 2
        elif error == layout.ERESTART_RESTARTBLOCK:
            after["rax"], after["rip"] = NR_RESTART, registers["rip"] - 2
    after["orig_rax"] = negative(1)
    return after
