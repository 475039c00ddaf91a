"""What a seccomp filter says to a system call: the kernel's classic BPF, as far as seccomp admits it, interpreted.

A filter is a program over `struct seccomp_data` (number, architecture, instruction pointer, six arguments) that returns an
action. It can be run here on a call that nobody makes. See seccomp(2) and, for the instructions, linux/bpf_common.h and the
list in the kernel's seccomp_check_filter().
"""

from __future__ import annotations

import struct
from collections.abc import Iterable, Sequence

KILL_PROCESS, KILL_THREAD, TRAP, ERRNO = 0x80000000, 0x00000000, 0x00030000, 0x00050000
USER_NOTIF, TRACE, LOG, ALLOW = 0x7FC00000, 0x7FF00000, 0x7FFC0000, 0x7FFF0000
_ACTION, _DATA = 0xFFFF0000, 0x0000FFFF
INSTRUCTION = struct.Struct("<HBBI")  # struct sock_filter: code, jump if true, jump if false, k
_SECCOMP_DATA = struct.Struct("<iIQ6Q")
_WORD = 0xFFFFFFFF


class Unknown(ValueError):
    """An instruction that no kernel would have admitted: nothing can be said."""


class Verdict(int):
    """What a filter returns: an action, and 16 bits that go with it."""

    @property
    def action(self) -> int:
        """One of the actions above; one that this kernel does not know kills, as it does there."""
        return int(self) & _ACTION

    @property
    def kills(self) -> bool:
        """Whether the call would end the thread or the process: a SIGSYS does, unless the program handles it."""
        return self.action not in (ERRNO, USER_NOTIF, TRACE, LOG, ALLOW)

    @property
    def allows(self) -> bool:
        """Whether the call would be made as if there were no filter."""
        return self.action in (LOG, ALLOW)

    @property
    def errno(self) -> int:
        """What the call would fail with, for ERRNO."""
        return int(self) & _DATA


def judge(filters: Iterable[bytes], number: int, architecture: int, arguments: Sequence[int] = (), pc: int = 0) -> Verdict:
    """What all the filters of a thread together say to a call: the strictest of them wins, as in the kernel.

    Each filter is an array of `struct sock_filter`. Raises Unknown.
    """
    padded = [*arguments, 0, 0, 0, 0, 0, 0][:6]
    data = _SECCOMP_DATA.pack(number, architecture, pc, *(argument & (1 << 64) - 1 for argument in padded))
    said = [Verdict(_run(program, data)) for program in filters]
    # the order of the actions is that of signed numbers: KILL_PROCESS, which has the highest bit, comes first
    return min(said, key=lambda verdict: (verdict.action ^ 0x80000000) & _WORD, default=Verdict(ALLOW))


def _run(program: bytes, data: bytes) -> int:
    code = list(INSTRUCTION.iter_unpack(program))
    a = x = at = 0
    memory = [0] * 16
    while at < len(code):  # jumps go forward only: this ends
        operation, true, false, k = code[at]
        at += 1
        kind, rest = operation & 0x07, operation & ~0x07
        if kind == 0x06:  # return
            return a if rest == 0x10 else k
        if kind in (0x00, 0x01):  # load a, load x
            value = _loaded(kind, rest, k, data, memory)
            a, x = (value, x) if kind == 0x00 else (a, value)
        elif kind in (0x02, 0x03):  # store
            memory[k & 15] = a if kind == 0x02 else x
        elif kind == 0x04:
            value = x if rest & 0x08 else k
            if rest & 0xF0 in (0x30, 0x90) and value == 0:
                return 0  # a division by zero ends the program, and 0 kills
            a = _computed(rest & 0xF0, a, value)
        elif kind == 0x05:
            if rest & 0xF0 == 0x00:
                at += k
            else:
                at += true if _holds(rest & 0xF0, a, x if rest & 0x08 else k) else false
        elif rest == 0x00:
            x = a
        elif rest == 0x80:
            a = x
        else:
            raise Unknown(f"instruction {operation:#x}")
    raise Unknown("the program has no end")


def _loaded(kind: int, rest: int, k: int, data: bytes, memory: list[int]) -> int:
    if rest == 0x00:
        return k
    if rest == 0x60:
        return memory[k & 15]
    if rest == 0x80:
        return len(data)
    if kind == 0x00 and rest == 0x20 and k % 4 == 0 and k + 4 <= len(data):
        return int(struct.unpack_from("<I", data, k)[0])
    raise Unknown(f"load {rest:#x}")


def _computed(operation: int, a: int, value: int) -> int:
    results = {
        0x00: a + value,
        0x10: a - value,
        0x20: a * value,
        0x30: a // (value or 1),
        0x40: a | value,
        0x50: a & value,
        0x60: a << (value & 31),
        0x70: a >> (value & 31),
        0x80: -a,
        0x90: a % (value or 1),
        0xA0: a ^ value,
    }
    if operation not in results:
        raise Unknown(f"operation {operation:#x}")
    return results[operation] & _WORD


def _holds(comparison: int, a: int, value: int) -> bool:
    if comparison == 0x10:
        return a == value
    if comparison == 0x20:
        return a > value
    if comparison == 0x30:
        return a >= value
    if comparison == 0x40:
        return bool(a & value)
    raise Unknown(f"comparison {comparison:#x}")
