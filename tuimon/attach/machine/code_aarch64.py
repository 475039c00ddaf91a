"""The machine code for aarch64, and what is written behind it.

The sources are asm/aarch64/*.s beside this file; a test assembles them and compares every byte. `machine.Machine` says what
each of the names without an underscore is for. The way back is a frame for rt_sigreturn: see `frame_aarch64`.
"""

from __future__ import annotations

import struct
from collections.abc import Sequence

from tuimon.attach.machine import frame_aarch64
from tuimon.attach.machine.layout import EINTR, Registers, Sleeping, Stopped, Unusable, Way, negative, words
from tuimon.attach.procfs import Memory

SYSCALLS = bytes.fromhex(
    "88030058a0030058c1030058e2030058030400582404005845040058010000d4490400581f0009ebc1000054280400584004005861040058"
    "82040058010000d4e81080d2400080d241040010020080d2030180d2010000d4090400583f010091681180d2010000d4000020d41f2003d5"
)
"""asm/aarch64/syscalls.s without its literals."""

CALL = bytes.fromhex("1d0080d21e0080d2000100582901005820013fd629010058200100f9681180d2010000d4000020d4")
"""asm/aarch64/call.s without its literals."""

STUBS = bytes.fromhex(
    "5f2403d5fd7bbea9fd030091f30b00f9f30300aa3b000094a00100b5698200912a00805227000094e10313aaa0080010891a005820013fd6"
    "007c409380000034698200910a0080121e000094f30b40f9fd7bc2a8c0035fd61f2003d51f2003d55f2403d5fd7bbea9fd030091f30b00f9"
    "f30300aa23000094c00100b52a0080521800009460010035e10313aaa00f0010c917005820013fd61f0400b160000054000080d203000014"
    "8900805269fe9f88f30b40f9fd7bc2a8c0035fd61f2003d52bfd5f886b010a0b2bfd0c88acffff35c0035fd61f2003d51f2003d51f2003d5"
    "60fe5f88800000356afe0b88abffff35c0035fd65f3f03d5200080d2c0035fd6fd7bbfa9fd0300914913005820013fd6e903002a20008092"
    "09010034000080d2c9120058a90000b420013fd6490080921f00007120119f9afd7bc1a8c0035fd65f2403d5fd7bbea9fd030091f35301a9"
    "f30300aa881580d2010000d4690e40b91f00096b210400546912009129fddf882a008052b40080523f0100715401941aea03142ad7ffff97"
    "000300359f160071c0020054e90f005820013fd6e90f005820013fd6e00100b4f40300aa600e00f9e10313aae0020010890e005820013fd6"
    "1f0400b121010054e00314aaa90e005820013fd6e00314aa890e005820013fd68900805269fe9f88481680d2010000d4602e00b969920091"
    "2a008052b1ffff97000080d2f35341a9fd7bc2a8c0035fd65f2403d5fd7bbea9fd030091f35301a9f30300aa481680d2010000d4602a00b9"
    "740e40f9290c0058690000b4e00314aa20013fd6e00314aac90b005820013fd624000094e00314aa490a005820013fd6890a005820013fd6"
    "6900805269fe9f88000080d2f35341a9fd7bc2a8c0035fd65f2403d5fd7bbea9fd030091f35301a9f30300aa481680d2010000d4602a00b9"
    "4909005820013fd6f403002a0d000094e003142ae908005820013fd66900805269fe9f88000080d2f35341a9fd7bc2a8c0035fd61f2003d5"
    "1f2003d51f2003d5fd7bbea9fd030091f55b01a94900805269fe9f88690a00b96912009129fddf880903003529008052690a00b969060058"
    "20013fd6200200b4f50300aa6002019121208052e20315aae30315aaa905005820013fd6f60300aa800000b46905005820013fd67f0a00b9"
    "e00315aae904005820013fd6760000b5c904005820013fd6f55b41a9fd7bc2a8c0035fd61f2003d5"
)
"""asm/aarch64/stubs.s without its literals."""

ENTER_PENDING = 0x0
ENTER_THREAD = 0x60
PENDING_TAIL = (0, len(STUBS))  # not narrowed to what follows the counting, as on x86_64

NAME = "64-bit Arm"
ELF_MACHINE = 183
PAGE_SIZES = (4096, 16384)
OLDEST_KERNEL = (5, 1)  # older ones tell a tracer the signal mask that a ppoll has put in place for a while
HIGHEST = 0xFFFF_FFFF_F000  # user addresses end there with 48 bits
SYSCALLS_SIZE = len(SYSCALLS) + 14 * 8
CALL_SIZE = len(CALL) + 3 * 8
_FRAME_AT = -(-SYSCALLS_SIZE // 16) * 16
LEAST_ROOM = _FRAME_AT + frame_aarch64.SMALL
MOST_ROOM = _FRAME_AT + frame_aarch64.LARGE
VECTOR_AREA = 0  # the frame lies on the private stack
SETS = frame_aarch64.SETS
LOOK_BEFORE_A_STOP = True  # the kernel tells a tracer neither that it was a call nor its first argument

NR_MMAP, NR_MPROTECT, NR_MUNMAP = 222, 226, 215
_NANOSLEEP, _CLOCK_NANOSLEEP, _RESTART = 101, 115, 128
FUTEX = 98
_EPOLLS = (22, 441)  # epoll_pwait, epoll_pwait2
WAITS = frozenset(
    {
        *_EPOLLS,
        63,  # read
        72,  # pselect6
        73,  # ppoll
        95,  # waitid
        FUTEX,
        _NANOSLEEP,
        _CLOCK_NANOSLEEP,
        _RESTART,
        202,  # accept
        207,  # recvfrom
        212,  # recvmsg
        242,  # accept4
        260,  # wait4
    }
)
_SVC = struct.pack("<I", 0xD4000001)
_BTYPE, _SINGLE_STEP, _MODE_32 = 3 << 10, 1 << 21, 1 << 4

REGISTERS = (*(f"x{number}" for number in range(31)), "sp", "pc", "pstate")
"""The order of struct user_pt_regs (asm/ptrace.h)."""


def call_number(registers: Registers, memory: Memory) -> int | None:
    """x8, where pc is on the `svc` (the kernel has gone back to it to make the call again) or behind it.

    The kernel has forgotten by the time of a stop that it was in a call. A thread that is about to make a call looks the
    same as one whose call is to be made again: there is no difference between the two.
    """
    for address in (registers["pc"], registers["pc"] - 4):
        try:
            if memory.read(address, 4) == _SVC:
                return registers["x8"] & 0xFFFFFFFF
        except OSError:
            continue
    return None


def is_native(registers: Registers) -> bool:
    """By the processor's mode."""
    return not registers["pstate"] & _MODE_32


def pc(registers: Registers) -> int:
    """The program counter."""
    return registers["pc"]


def sp(registers: Registers) -> int:
    """The stack pointer."""
    return registers["sp"]


def at_call(stopped: Stopped, number: int | None, pc: int, sp: int) -> bool:
    """It has not slept since it was seen there, and pc is where the kernel has put it: back on the `svc`, or behind it.

    Not back there: then only because the call gives EINTR; any other result means that the thread was about to get on.
    """
    before = stopped.before
    if before is None or (before.number, before.pc, before.sp) != (number, pc, sp) or stopped.number != number:
        return False
    back = stopped.registers["pc"] == pc - 4 and stopped.registers["sp"] == sp
    return back or broken_by_stop(stopped)


def can_be_made_again(number: int | None, arguments: Sequence[int]) -> bool:
    """A wait, unless only the kernel knows how much is left of it.

    It would go on with restart_syscall, for which rt_sigreturn leaves nothing (it makes every restart give EINTR), and to
    make the call itself again would begin the whole time anew.
    """
    if number is None or number not in WAITS or number in (_NANOSLEEP, _RESTART):
        return False
    if number == _CLOCK_NANOSLEEP:
        return bool(arguments[1] & 1)  # TIMER_ABSTIME
    if number == FUTEX:
        return arguments[1] & 0x7F != 0 or not arguments[3]  # FUTEX_WAIT takes a time from now, all others a moment
    return True


def usable(stopped: Stopped) -> bool:
    """In user code, behind a wait that is over, or in one that can be made again."""
    if stopped.number is None:
        return True
    registers = stopped.registers
    if _made_again(stopped):
        return can_be_made_again(stopped.number, [registers[f"x{at}"] for at in range(6)])
    return stopped.number in WAITS


def _made_again(stopped: Stopped) -> bool:
    """Whether pc is on the `svc`. Where another one stands right before it, the answer that forbids more."""
    before = stopped.before
    return before is None or stopped.registers["pc"] != before.pc


def broken_by_stop(stopped: Stopped) -> bool:
    """A wait that gives EINTR to a thread which was blocked in it right before the stop."""
    before, registers = stopped.before, stopped.registers
    if before is None or stopped.number not in WAITS or registers["x0"] != negative(EINTR):
        return False
    same = (before.number, before.pc, before.sp) == (stopped.number, registers["pc"], registers["sp"])
    return same and all(before.arguments[at] == registers[f"x{at}"] for at in range(1, 6))


def resume_point(stopped: Stopped) -> Registers:
    """The registers with which a stopped thread has to go on.

    The kernel has already gone back to the `svc` where it makes the call again (arch/arm64/kernel/signal.c). What is left is
    a wait that gives EINTR only because of our stop; the caller has made sure that no signal is waiting to be delivered. Its
    first argument has been lost to the result: it is the one that was seen before the stop.
    """
    after = dict(stopped.registers)
    if broken_by_stop(stopped) and stopped.before is not None:
        after["x0"], after["pc"] = stopped.before.arguments[0], stopped.registers["pc"] - 4
    return after


def lost_its_poller(stopped: Stopped) -> bool:
    """The result has taken the register of the first argument: it has gone to sleep again between the look and the stop."""
    return stopped.before is None and stopped.number in _EPOLLS and stopped.registers["x0"] == negative(EINTR)


def in_poller(stopped: Stopped, poller: int) -> Stopped:
    """As if it had been seen there."""
    registers = stopped.registers
    arguments = (poller, *(registers[f"x{at}"] for at in range(1, 6)))
    return stopped._replace(before=Sleeping(stopped.number or 0, arguments, registers["pc"], registers["sp"]))


def call_to_come(stopped: Stopped) -> Sleeping | None:
    """Where pc is on the `svc` of a wait when the thread goes on."""
    if stopped.number not in WAITS or not (broken_by_stop(stopped) or _made_again(stopped)):
        return None
    after = resume_point(stopped)
    return Sleeping(stopped.number, tuple(after[f"x{at}"] for at in range(6)), after["pc"] + 4, after["sp"])


def system_calls(stopped: Stopped, at: int, room: int, first: tuple[int, ...], expected: int, second: tuple[int, ...]) -> Way:
    """The frame lies behind the code, or, where the vector registers are too wide for that, on the thread's own stack.

    There it is no more in the way than the frame that the kernel itself writes for a signal.
    """
    after = resume_point(stopped)
    frame_at, stack = at + _FRAME_AT, after["sp"]
    frame = _frame(stopped, after, frame_at)
    own: tuple[int, int] | None = None
    if _FRAME_AT + len(frame) > room:
        frame_at = stack = (after["sp"] - len(frame)) & ~15
        frame = _frame(stopped, after, frame_at)
        own = frame_at, after["sp"]
    one = (*first, 0, 0, 0, 0, 0, 0)[:7]
    two = (*second, 0, 0, 0, 0)[:4]
    code = SYSCALLS + words(*one, expected, *two, -1, frame_at)
    return Way([(at, code), (frame_at, frame)], _sent(after, at, stack), own)


def call(stopped: Stopped, at: int, stack_top: int, vector_area: int, function: int, argument: int, result: int) -> Way:
    """The frame lies at the top of the private stack."""
    after = resume_point(stopped)
    frame_at = (stack_top - len(_frame(stopped, after, 0))) & ~15
    code = CALL + words(argument, function, result)
    return Way([(at, code), (frame_at, _frame(stopped, after, frame_at))], _sent(after, at, frame_at))


def _sent(after: Registers, pc: int, sp: int) -> Registers:
    # after an indirect branch the processor asks for a landing pad, which our code is none of
    return {**after, "pc": pc, "sp": sp, "pstate": after["pstate"] & ~(_BTYPE | _SINGLE_STEP)}


def _frame(stopped: Stopped, after: Registers, at: int) -> bytes:
    # a single step belongs to a debugger, not to the thread
    general = [after[name] for name in REGISTERS[:-1]] + [after["pstate"] & ~_SINGLE_STEP]
    try:
        return frame_aarch64.build(general, stopped.mask, stopped.sets, at)
    except frame_aarch64.NotKept as error:
        raise Unusable(str(error)) from None
