"""Everything that can be known before a process is touched, and the sentence for each reason not to go on.

Nothing here stops anybody. Every check is a read of /proc; the last one, opening /proc/PID/mem for writing, asks the kernel
the same question as ptrace would (PTRACE_MODE_ATTACH), so a lack of permission shows before the first stop.
"""

from __future__ import annotations

import os
import struct
import time
from typing import NamedTuple

from tuimon.attach import interpreter, limits, procfs
from tuimon.attach.inject import ptrace, seccomp
from tuimon.attach.machine import code
from tuimon.attach.procfs import Mapping, Memory
from tuimon.attach.refusal import Refused

CAP_SYS_PTRACE = 19
PF_KTHREAD = 0x00200000  # include/linux/sched.h
OTHER_TUIMON_S = 0.1
_YAMA = "/proc/sys/kernel/yama/ptrace_scope"


class Target(NamedTuple):
    """A process that can be attached to, as far as can be seen from outside. Holds its memory open: close it."""

    pid: int
    pid_inside: int
    """What the process itself takes for its pid."""
    started: int
    """Its start time in clock ticks: tells it from a later process with the same pid."""
    facts: dict[str, str]
    """/proc/PID/status."""
    mappings: list[Mapping]
    memory: Memory
    python: tuple[int, int]
    symbols: dict[str, int]
    """Addresses of what the stubs call; 0 for an optional one that is not there."""
    lock_ranges: list[tuple[int, int]]
    """Code in which a thread may hold the lock of the queue of pending calls."""
    runtime: int
    """Address of _PyRuntime; 0 where it is not exported."""
    has_torch: bool

    def close(self) -> None:
        """Give the memory's file back."""
        self.memory.close()


def look(pid: int) -> Target:
    """The target, ready to be attached to. Raises Refused with the reason."""
    ptrace.supported()
    facts = _alive(pid)
    _right_architecture(pid)
    try:
        started = procfs.start_ticks(pid)
        mapped = procfs.mappings(pid)
        memory = Memory(pid, writable=True)
    except (PermissionError, ProcessLookupError, FileNotFoundError) as error:
        raise _not_permitted(pid, facts, error) from None
    try:
        found = interpreter.find(pid, memory, mapped)
        seccomp.look(pid, facts)
        limits.files(pid)
    except BaseException:
        memory.close()
        if procfs.has_ended(pid):  # then whatever was not found in it says nothing
            raise Refused("dead", f"process {pid} has just ended") from None
        raise
    has_torch = any("/libtorch" in mapping.path for mapping in mapped)
    inside = procfs.pid_inside(facts, pid)
    return Target(pid, inside, started, facts, mapped, memory, *found, has_torch)


# --------------------------------------------------------------------------------------------------- is it a process


def _alive(pid: int) -> dict[str, str]:
    if pid <= 0:
        raise Refused("dead", f"{pid} is not a process id")
    facts = _facts(pid)
    owner = int(facts.get("Tgid", pid))
    if owner != pid:
        raise Refused("tid", f"{pid} is a thread of process {owner}; attach to {owner}")
    if _state(facts) == "Z":
        raise Refused("zombie", f"process {pid} has already ended; its parent has not collected it yet (a zombie)")
    if _is_kernel_thread(pid):
        raise Refused("kernel-thread", f"{pid} is a thread of the kernel, not a program")
    if _state(facts) == "X" or "VmSize" not in facts:
        raise Refused("dead", f"process {pid} is just ending")
    if pid == os.getpid():
        raise Refused("self", f"{pid} is tuimon itself")
    deadline = time.monotonic() + OTHER_TUIMON_S
    while int(facts.get("TracerPid", "0")) and time.monotonic() < deadline:
        time.sleep(0.002)  # another tuimon at work traces for a fraction of a millisecond at a time
        facts = _facts(pid)
    tracer = int(facts.get("TracerPid", "0"))
    if tracer:
        raise Refused(
            "traced",
            f"process {pid} is being traced by {_name(tracer)}; end that one first (a debugger, strace or another monitor)",
        )
    if _state(facts) == "T":
        raise Refused("stopped", f"process {pid} is stopped (SIGSTOP or Ctrl-Z); continue it first: kill -CONT {pid}")
    return facts


def _facts(pid: int) -> dict[str, str]:
    try:
        return procfs.status(pid)
    except (FileNotFoundError, ProcessLookupError):
        raise Refused("dead", f"there is no process {pid}; `tuimon list` shows those that can be attached to") from None


def _state(facts: dict[str, str]) -> str:
    return facts.get("State", "?")[:1]


def _is_kernel_thread(pid: int) -> bool:
    try:
        return bool(int(procfs.stat_fields(pid)[6]) & PF_KTHREAD)
    except (OSError, ValueError, IndexError):
        return False


def _name(pid: int) -> str:
    try:
        return f"process {pid} ({procfs.status(pid)['Name']})"
    except (OSError, KeyError):
        return f"process {pid}"


def _right_architecture(pid: int) -> None:
    try:
        with open(f"/proc/{pid}/exe", "rb") as file:
            header = file.read(20)
    except OSError:
        return  # what follows says why it may not be read
    if len(header) == 20 and (header[4] != 2 or struct.unpack_from("<H", header, 18)[0] != code.ELF_MACHINE):
        raise Refused("arch", f"process {pid} is not a {code.NAME} program; run tuimon on a machine of its own kind")


# -------------------------------------------------------------------------------------------------------- permission


def ptrace_scope() -> int | None:
    """Yama's setting (0 to 3); None where the kernel has no Yama."""
    try:
        with open(_YAMA, encoding="ascii") as file:
            return int(file.read())
    except (OSError, ValueError):
        return None


def may_trace_anything() -> bool:
    """Whether this process has CAP_SYS_PTRACE."""
    try:
        return bool(int(procfs.status(os.getpid())["CapEff"], 16) >> CAP_SYS_PTRACE & 1)
    except (OSError, KeyError, ValueError):
        return False


def _not_permitted(pid: int, facts: dict[str, str], error: OSError) -> Refused:
    if procfs.has_ended(pid):
        return Refused("dead", f"process {pid} has just ended")
    uid, own = int(facts["Uid"].split()[0]), os.geteuid()
    capable = may_trace_anything()
    scope = ptrace_scope()
    if uid != own and not capable:
        return Refused(
            "uid",
            f"process {pid} belongs to user {_user(uid)}, you are {_user(own)}: run tuimon as that user, or with sudo",
        )
    if scope == 3:
        return Refused(
            "ptrace-scope-3",
            "kernel.yama.ptrace_scope is 3: this machine allows no attaching until it is rebooted; "
            "start the job with `tuimon run`",
        )
    if scope == 2 and not capable:
        return Refused("ptrace-scope-2", "kernel.yama.ptrace_scope is 2: only root may attach; use sudo, or `tuimon run`")
    if scope == 1 and not capable:
        return Refused(
            "ptrace-scope-1",
            "kernel.yama.ptrace_scope is 1: only the program that started a process may attach to it; use sudo, or "
            "`sudo sysctl kernel.yama.ptrace_scope=0`, or start the job with `tuimon run`",
        )
    return Refused(
        "denied",
        f"the kernel does not allow access to process {pid} ({os.strerror(error.errno or 0)}): it has switched off "
        "dumping, or this is a container without --cap-add=SYS_PTRACE, or SELinux or AppArmor says no; "
        "use sudo, or start the job with `tuimon run`",
    )


def _user(uid: int) -> str:
    import pwd

    try:
        return f"{pwd.getpwuid(uid).pw_name} ({uid})"
    except KeyError:
        return str(uid)
