"""Names for the system calls in which a thread is found waiting."""

from __future__ import annotations

import os

# asm/unistd_64.h and asm-generic/unistd.h: those that wait for something, and those that a waiting sentence could meet
_X86_64 = {
    0: "read", 1: "write", 7: "poll", 16: "ioctl", 17: "pread64", 18: "pwrite64", 19: "readv", 20: "writev", 23: "select",
    34: "pause", 35: "nanosleep", 42: "connect", 43: "accept", 44: "sendto", 45: "recvfrom", 46: "sendmsg", 47: "recvmsg",
    56: "clone", 57: "fork", 58: "vfork", 59: "execve", 61: "wait4", 65: "semop", 70: "msgrcv", 72: "fcntl", 73: "flock",
    74: "fsync", 75: "fdatasync", 128: "rt_sigtimedwait", 130: "rt_sigsuspend", 202: "futex", 208: "io_getevents",
    219: "restart_syscall", 220: "semtimedop", 230: "clock_nanosleep", 232: "epoll_wait", 247: "waitid", 257: "openat",
    270: "pselect6", 271: "ppoll", 275: "splice", 281: "epoll_pwait", 288: "accept4", 299: "recvmmsg", 333: "io_pgetevents",
    426: "io_uring_enter", 435: "clone3", 441: "epoll_pwait2", 449: "futex_waitv",
}  # fmt: skip
_AARCH64 = {
    4: "io_getevents", 22: "epoll_pwait", 25: "fcntl", 29: "ioctl", 32: "flock", 56: "openat", 63: "read", 64: "write",
    65: "readv", 66: "writev", 67: "pread64", 68: "pwrite64", 72: "pselect6", 73: "ppoll", 76: "splice", 82: "fsync",
    83: "fdatasync", 95: "waitid", 98: "futex", 101: "nanosleep", 115: "clock_nanosleep", 128: "restart_syscall",
    133: "rt_sigsuspend", 137: "rt_sigtimedwait", 188: "msgrcv", 192: "semtimedop", 193: "semop", 202: "accept",
    203: "connect", 206: "sendto", 207: "recvfrom", 211: "sendmsg", 212: "recvmsg", 220: "clone", 221: "execve",
    242: "accept4", 243: "recvmmsg", 260: "wait4", 292: "io_pgetevents", 426: "io_uring_enter", 435: "clone3",
    441: "epoll_pwait2", 449: "futex_waitv",
}  # fmt: skip
SLEEPS = frozenset({"nanosleep", "clock_nanosleep", "pause"})
CHILDREN = frozenset({"wait4", "waitid", "vfork"})
RESTARTED = "restart_syscall"
"""How the kernel goes on with a wait after a stop: which one it was does not show any more."""
INTERRUPTED = f"a sleep or a wait that has been interrupted ({RESTARTED})"
HALTED = {"T": "is stopped", "t": "is stopped by a tracer"}
"""State letters of threads that do not run whatever happens, in words."""
LOCKS = frozenset({"futex", "futex_waitv", "flock", "semop", "semtimedop"})


def name(number: int, machine: str | None = None) -> str:
    """What a system call of this machine (or of another: "x86_64", "aarch64") is called; "system call N" for a rare one."""
    table = {"x86_64": _X86_64, "aarch64": _AARCH64}.get(machine or os.uname().machine, {})
    return table.get(number, f"system call {number}")
