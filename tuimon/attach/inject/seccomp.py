"""Whether a target's seccomp filter lets us in, found out without making one of the calls.

Attaching has the target make system calls: mmap, mprotect and munmap on a thread of its own, and what a new thread and a
connection need. A filter may answer such a call with an error, which is harmless, or with SIGSYS or a kill, which would end
the job. So nothing is done under a filter before it is clear what it says.

- Mode 1 (strict) kills for nearly everything: refused.
- Mode 2 (a filter), and we may read filters (CAP_SYS_ADMIN, and no filter on ourselves): the filters are read from a thread
  that is stopped for it and not changed, and run here, in an interpreter, on the very calls that are going to be made. Filters
  belong to threads: one thread is read for each number of filters that is found among them. (Two threads that have put
  different filters on, equal in number, are not told apart; threads that sandbox themselves one by one do so for work of
  their own, and are no waiting pool.)
- Mode 2, and we may not read. Every container has a filter (Docker's, containerd's and podman's default let all of our calls
  pass and answer what they forbid with an error), so a filter as such is no reason to refuse. It is taken for harmless where
  it is not of the job's own making, which shows from outside:
  (a) tuimon is under as many filters, in the same namespaces: then a process is started from here, under the same filters,
      that makes the calls; what happens to it tells.
  (b) The job got it before it was executed. Python has started up under it, with most of our calls. That is so where an
      ancestor that is another program has as many filters; and where the job, or the topmost of the like processes above it,
      is the first process of a container (pid 1 of a pid namespace below ours) and cannot have put a filter on itself: the
      kernel takes one only from a process that has no_new_privs set, which stays, or CAP_SYS_ADMIN. Docker and podman, also
      rootless, give neither. With either of them (Kubernetes' allowPrivilegeEscalation: false) pid 1's filter may be its own
      work, their number does not tell: tuimon has to run in the container, which is (a), or as root outside of it.
  A job that has put a filter on itself, or a service manager's list (systemd kills by default), is refused, with the
  advice to run tuimon as root, who may read.
"""

from __future__ import annotations

import ctypes
import errno
import os
import sys
from collections.abc import Iterator
from typing import NamedTuple

from tuimon.attach import procfs
from tuimon.attach.inject import bpf, needs, ptrace
from tuimon.attach.inject.needs import Need
from tuimon.attach.machine.layout import Stopped
from tuimon.attach.procfs import Memory
from tuimon.attach.refusal import Refused

CAP_SYS_ADMIN = 21
PTRACE_SECCOMP_GET_FILTER = 0x420C
_MOST = 4096  # instructions in a filter
_ARCHITECTURES = {"x86_64": (0xC000003E, 0), "aarch64": (0xC00000B7, 1)}
_CLOCK_NANOSLEEP, _FUTEX = (230, 115), (202, 98)
_TIMED = ((35, 7, 219), (101, 128))  # nanosleep, poll, restart_syscall
_RESTART_BLOCK = (1 << 64) - 516  # what the kernel has in rax while it means to go on by restart_syscall
PROBE_S = 10.0


class State(NamedTuple):
    """What /proc says of a thread: 0 none, 1 strict, 2 filters; and how many (None: an old kernel does not say)."""

    mode: int
    filters: int | None


def state(facts: dict[str, str]) -> State:
    """From a process's or a thread's `status`."""
    count = facts.get("Seccomp_filters")
    return State(int(facts.get("Seccomp", "0")), int(count) if count is not None else None)


def look(pid: int, facts: dict[str, str]) -> None:
    """What can be said by reading /proc alone. Raises Refused("seccomp-strict" or "seccomp")."""
    mode = state(facts).mode
    if mode == 1:
        raise Refused(
            "seccomp-strict",
            f"process {pid} is in seccomp's strict mode, in which the kernel kills it for any call that attaching needs",
        )
    if mode == 2 and not _may_read() and not under_ours(pid, facts) and not given_at_start(pid, facts):
        raise _unknown(pid)


def check(pid: int, memory: Memory, pauses: list[float]) -> None:
    """Ask the filters themselves, where there are any. For the process that traces, before it touches anything.

    Adds the pauses of the threads that had to be stopped for it, in seconds. Raises Refused("seccomp") and what `look` does.
    """
    facts = procfs.status(pid)
    look(pid, facts)
    kinds = _kinds(pid)
    if not kinds:
        return
    given = under_ours(pid, facts) or given_at_start(pid, facts)
    if _may_read():
        read = [_read(pid, tids, memory, pauses, given) for tids in kinds.values()]
        if all(filters is not None for filters in read):
            for filters in read:
                refuse_by(pid, filters or [])
            return
    if under_ours(pid, facts):
        _probe(pid)
    elif not given:
        raise _unknown(pid)


def refuse_by(pid: int, filters: list[bytes]) -> None:
    """Run the filters of one thread on all that attaching makes it call. Raises Refused("seccomp") with the call's name."""
    said: list[tuple[str, bpf.Verdict]] = []
    optional: list[tuple[str, bpf.Verdict]] = []
    try:
        for table in (needs.BORROWED, needs.THREAD, needs.HOOK):
            said += [(name, _judge(filters, number, arguments)) for name, number, arguments in _here(table)]
        either = [(name, _judge(filters, number, arguments)) for name, number, arguments in _here(needs.EITHER)]
        besides = *needs.MAY_FAIL_WITH, *((name, numbers, ()) for name, numbers in needs.MAY_FAIL.items())
        optional = either + [(name, _judge(filters, number, arguments)) for name, number, arguments in _here(besides)]
    except bpf.Unknown:
        raise _unknown(pid) from None
    for name, verdict in said + optional:
        if verdict.kills:
            raise Refused(
                "seccomp",
                f"the seccomp filter of process {pid} would kill it for {name}, which attaching needs; it was not touched: "
                "start the job with `tuimon run`, or without that filter",
            )
    if not any(verdict.allows for _, verdict in either):
        said += either[-1:]
    for name, verdict in said:
        if not verdict.allows:
            answer = os.strerror(verdict.errno) if verdict.action == bpf.ERRNO else "a decision of another program"
            raise Refused(
                "seccomp",
                f"the seccomp filter of process {pid} answers {name}, which attaching needs, with {answer!r}; it was not "
                "touched: start the job with `tuimon run`, or without that filter",
            )


def _machine() -> tuple[int, int]:
    return _ARCHITECTURES[os.uname().machine]


def _here(table: tuple[Need, ...]) -> Iterator[tuple[str, int, tuple[int, ...]]]:
    for name, numbers, arguments in table:
        number = numbers[_machine()[1]]
        if number is not None:
            yield name, number, arguments


def _judge(filters: list[bytes], number: int, arguments: tuple[int, ...]) -> bpf.Verdict:
    return bpf.judge(filters, number, _machine()[0], arguments)


def _unknown(pid: int) -> Refused:
    return Refused(
        "seccomp",
        f"process {pid} is under a seccomp filter that tuimon may not read, and that may kill it for a call which attaching "
        "needs: run tuimon as root outside of containers, where it can read the filter, or start the job with `tuimon run`",
    )


# ------------------------------------------------------------------------------------------------- reading the filters


def _may_read() -> bool:
    """Whether the kernel may let us read filters; where it then does not (in a user namespace), it says so."""
    try:
        facts = procfs.status(os.getpid())
        return bool(int(facts["CapEff"], 16) >> CAP_SYS_ADMIN & 1) and state(facts).mode == 0
    except (OSError, KeyError, ValueError):
        return False


def _kinds(pid: int) -> dict[State, list[int]]:
    """The threads that have filters, by how many."""
    found: dict[State, list[int]] = {}
    for tid in procfs.thread_ids(pid):
        try:
            with open(f"/proc/{pid}/task/{tid}/status", "rb") as file:
                if b"\nSeccomp:\t0" in file.read():  # a job may have hundreds: look no further into those without
                    continue
            seen = state(procfs.status(pid, tid))
        except (OSError, ValueError):
            continue  # it has just ended
        if seen.mode == 1:
            raise Refused("seccomp-strict", f"a thread of process {pid} is in seccomp's strict mode; use `tuimon run`")
        if seen.mode:
            found.setdefault(seen, []).append(tid)
    return found


def _read(pid: int, tids: list[int], memory: Memory, pauses: list[float], given: bool) -> list[bytes] | None:
    """The filters of one of these threads; None where the kernel does not give them. Raises Refused."""
    steady = [tid for tid in tids if _goes_on_by_itself(pid, tid)]
    may_mend = _machine()[1] == 0
    for tid in steady + [tid for tid in tids if tid not in steady and (may_mend or given)]:
        found: list[bytes] | None = []

        def prepare(stopped: Stopped, tid: int = tid) -> dict[str, int] | None:
            nonlocal found
            found = _filters_of_stopped(tid)
            return _interrupted(stopped, found or []) if may_mend else None

        try:
            ptrace.borrow(pid, tid, memory, prepare, pauses)
        except ptrace.Again:
            continue
        return found
    raise Refused(
        "seccomp",
        f"the seccomp filter of process {pid} cannot be read while all its threads sleep; try again when it gets on",
    )


def _goes_on_by_itself(pid: int, tid: int) -> bool:
    """Whether a thread can be stopped and let go without another system call: after a stop, the kernel goes on with a timed
    wait by restart_syscall, and the filter is asked about that."""
    call = procfs.thread_call(pid, tid)
    if call is None or call.number == -1:
        return False
    machine = _machine()[1]
    if call.number == _CLOCK_NANOSLEEP[machine]:
        return call.arguments[1] & 1 == 1  # until a point in time: made again as it is
    if call.number == _FUTEX[machine]:
        return call.arguments[3] == 0
    return call.number not in _TIMED[machine]


def _interrupted(stopped: Stopped, filters: list[bytes]) -> dict[str, int] | None:
    """Registers with which the call comes back with EINTR, as after a signal, where its continuation would be killed."""
    registers = stopped.registers
    if registers["rax"] != _RESTART_BLOCK or registers["orig_rax"] >> 63:
        return None
    try:
        if not _judge(filters, 219, ()).kills:
            return None
    except bpf.Unknown:
        pass  # better an interrupted wait than a killed job
    return {**registers, "orig_rax": (1 << 64) - 1, "rax": (1 << 64) - errno.EINTR}


def _filters_of_stopped(tid: int) -> list[bytes] | None:
    found: list[bytes] = []
    room = ctypes.create_string_buffer(_MOST * bpf.INSTRUCTION.size)
    while True:
        try:
            length = ptrace._call(PTRACE_SECCOMP_GET_FILTER, tid, len(found), ctypes.addressof(room))
        except OSError as error:
            return found if error.errno == errno.ENOENT and found else None
        found.append(room.raw[: length * bpf.INSTRUCTION.size])


# ---------------------------------------------------------------------------------------- where they may not be read


def under_ours(pid: int, facts: dict[str, str]) -> bool:
    """Whether the filters of a process are those of tuimon itself: as many, in the same pid and mount namespaces."""
    try:
        ours = state(procfs.status(os.getpid()))
        same = all(
            os.stat(f"/proc/{pid}/ns/{kind}").st_ino == os.stat(f"/proc/self/ns/{kind}").st_ino for kind in ("pid", "mnt")
        )
    except (OSError, ValueError):
        return False
    return same and ours.mode == 2 and bool(ours.filters) and ours == state(facts)


def given_at_start(pid: int, facts: dict[str, str]) -> bool:
    """Whether a process was under its filters already when its program was executed."""
    theirs = state(facts)
    if not theirs.filters:
        return False
    top = pid
    for ancestor in procfs.ancestors(pid):
        try:
            if state(procfs.status(ancestor)) != theirs:
                break
            if not _same_program(pid, ancestor):
                return True
        except (OSError, ValueError):
            break
        top = ancestor
    return _first_of_a_container(top) and not _may_be_its_own_work(facts)


def _same_program(one: int, other: int) -> bool:
    """Where that may not be read, they count as the same."""
    try:
        return os.path.samefile(f"/proc/{one}/exe", f"/proc/{other}/exe")
    except OSError:
        return True


def _first_of_a_container(pid: int) -> bool:
    try:
        names = procfs.status(pid).get("NSpid", "").split()
        ours = procfs.status(os.getpid()).get("NSpid", "").split()
    except OSError:
        return False
    return len(names) > len(ours) and names[-1] == "1"


def _may_be_its_own_work(facts: dict[str, str]) -> bool:
    """Whether a process may have put a filter on itself. What allows it to is inherited: this speaks for its ancestors too."""
    try:
        return facts["NoNewPrivs"] != "0" or bool(int(facts["CapBnd"], 16) >> CAP_SYS_ADMIN & 1)
    except (KeyError, ValueError):
        return True


_PROBE = """
import ctypes, fcntl, hashlib, json, os, select, socket, sys, threading
libc = ctypes.CDLL(None, use_errno=True)
libc.mmap.restype = ctypes.c_void_p
libc.mmap.argtypes = [ctypes.c_void_p, ctypes.c_size_t, ctypes.c_int, ctypes.c_int, ctypes.c_int, ctypes.c_long]
libc.mprotect.argtypes = [ctypes.c_void_p, ctypes.c_size_t, ctypes.c_int]
libc.munmap.argtypes = [ctypes.c_void_p, ctypes.c_size_t]
place = libc.mmap(None, 1 << 17, 3, 0x22, -1, 0)
libc.munmap(place, 1 << 17)
if libc.mmap(place, 1 << 17, 3, 0x100022, -1, 0) != place or libc.mprotect(place, 4096, 5) or libc.munmap(place, 1 << 17):
    sys.exit(1)
listening = socket.socket(socket.AF_UNIX)
listening.bind("")
listening.listen()
done = []
def hook():
    first = socket.socket(socket.AF_UNIX)
    first.settimeout(10)
    first.connect(listening.getsockname())
    first.getsockopt(socket.SOL_SOCKET, socket.SO_PEERCRED, 12)
    line = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM, 0, fcntl.fcntl(first.fileno(), fcntl.F_DUPFD_CLOEXEC, 64))
    other, _ = listening.accept()
    other.sendall(b"12")
    line.settimeout(10)
    line.recvmsg(1, socket.CMSG_LEN(4), socket.MSG_CMSG_CLOEXEC)
    line.recv(1)
    line.settimeout(0)
    line.sendall(b"3")
    poll = select.poll()
    poll.register(line, select.POLLOUT)
    poll.poll(0)
    os.fstat(line.fileno()), os.readlink("/proc/self/fd/%d" % line.fileno()), os.getcwd(), os.geteuid()
    line.shutdown(2)
    line.close()
    first.close()
    done.append(True)
thread = threading.Thread(target=hook)
thread.start()
thread.join()
sys.exit(not done)
"""


def _probe(pid: int) -> None:
    """Have a process of our own make the calls, under the same filters. Raises Refused where that ends badly."""
    import subprocess  # seldom needed, and the helper has to be quick to start

    try:
        ran = subprocess.run(
            [sys.executable, "-I", "-S", "-c", _PROBE],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            timeout=PROBE_S,
            check=False,
        )
    except (OSError, subprocess.SubprocessError):
        raise _unknown(pid) from None
    if ran.returncode:
        raise Refused(
            "seccomp",
            f"the seccomp filter that process {pid} and tuimon are under does not allow what attaching needs (a process that "
            f"tried it here ended with status {ran.returncode}); start the job with `tuimon run`",
        )
