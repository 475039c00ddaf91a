"""What /proc tells of a process and of its threads, read without stopping anything."""

from __future__ import annotations

import contextlib
import errno
import os
import re
import struct
from collections.abc import Iterator
from typing import NamedTuple

from tuimon.attach.inject import writing


def status(pid: int, tid: int | None = None) -> dict[str, str]:
    """/proc/PID/status (or that of one thread) as a dict. Raises OSError when it is gone."""
    where = f"/proc/{pid}/status" if tid is None else f"/proc/{pid}/task/{tid}/status"
    with open(where, encoding="utf-8", errors="replace") as file:
        pairs = (line.partition(":") for line in file)
        return {key: value.strip() for key, _, value in pairs}


def stat_fields(pid: int) -> list[str]:
    """The fields of /proc/PID/stat behind the command's name: [0] is the state, [1] the parent, [19] the start time."""
    with open(f"/proc/{pid}/stat", encoding="utf-8", errors="replace") as file:
        return file.read().rpartition(")")[2].split()


def start_ticks(pid: int) -> int:
    """When the process was started, in clock ticks since boot: with the pid it names a process for good."""
    return int(stat_fields(pid)[19])


def has_ended(pid: int) -> bool:
    """Whether a process is gone, or is a zombie that nobody has collected yet."""
    try:
        facts = status(pid)
    except OSError:
        return True
    return facts.get("State", "?")[:1] in "ZX" or "VmSize" not in facts


def ancestors(pid: int) -> Iterator[int]:
    """The parent of a process, the parent's parent and so on; ends where /proc does."""
    seen = {pid}
    while True:
        try:
            pid = int(stat_fields(pid)[1])
        except (OSError, ValueError, IndexError):
            return
        if pid <= 0 or pid in seen:
            return
        seen.add(pid)
        yield pid


def pid_inside(facts: dict[str, str], pid: int) -> int:
    """The pid by which a process knows itself: the last one of its pid namespaces. `facts` is its `status`."""
    return int(facts.get("NSpid", str(pid)).split()[-1])


def environment(pid: int) -> dict[str, str]:
    """The environment the process was started with; empty where it may not be read."""
    try:
        with open(f"/proc/{pid}/environ", "rb") as file:
            entries = file.read().decode("utf-8", "surrogateescape").split("\0")
    except OSError:
        return {}
    return dict(entry.split("=", 1) for entry in entries if "=" in entry)


# ------------------------------------------------------------------------------------------------------------ memory


class Mapping(NamedTuple):
    """One line of /proc/PID/maps."""

    start: int
    end: int
    permissions: str
    offset: int
    inode: int
    path: str

    @property
    def executable(self) -> bool:
        """Whether code may run there."""
        return "x" in self.permissions

    @property
    def writable(self) -> bool:
        """Whether the process itself may write there."""
        return "w" in self.permissions

    @property
    def private(self) -> bool:
        """Whether a write there stays with this process."""
        return self.permissions[3] == "p"


def mappings(pid: int) -> list[Mapping]:
    """The memory map of a process. Raises OSError when it is gone or may not be read."""
    with open(f"/proc/{pid}/maps", "rb") as file:
        text = file.read().decode("utf-8", "surrogateescape")
    return [
        Mapping(int(start, 16), int(end, 16), permissions, int(offset, 16), int(inode), path)
        for start, end, permissions, offset, inode, path in _MAPPING.findall(text)
    ]


_MAPPING = re.compile(r"^([0-9a-f]+)-([0-9a-f]+) (\S+) ([0-9a-f]+) \S+ ([0-9]+) *(.*)$", re.MULTILINE)


class Memory:
    """The memory of a process through /proc/PID/mem. Raises OSError where the kernel does not allow it."""

    def __init__(self, pid: int, *, writable: bool = False) -> None:
        self.pid = pid
        self.stopped: int | None = None
        """A thread that is stopped by us, as long as it is: ptrace can write by it."""
        path = f"/proc/{pid}/mem"
        try:
            self.fd = os.open(path, (os.O_RDWR if writable else os.O_RDONLY) | os.O_CLOEXEC)
        except PermissionError:
            # reading asks for the same right to trace; where that is there, it is the writing that the kernel does not like
            self.fd = os.open(path, os.O_RDONLY | os.O_CLOEXEC)

    def __enter__(self) -> Memory:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """Give the file back; may be called twice."""
        if self.fd >= 0:
            os.close(self.fd)
            self.fd = -1

    def read(self, address: int, length: int) -> bytes:
        """Exactly `length` bytes."""
        data = os.pread(self.fd, length, address)
        if not data:
            raise ProcessLookupError(errno.ESRCH, "the memory is gone")
        if len(data) != length:
            raise OSError(errno.EIO, f"{length} bytes at {address:#x} cannot be read")
        return data

    def is_gone(self) -> bool:
        """Whether nobody has this memory any more: the process has ended, or has executed another program."""
        try:
            return not os.pread(self.fd, 1, 0)
        except OSError:  # nothing is mapped there, in a memory that is there
            return False

    def write(self, address: int, data: bytes) -> None:
        """All of `data`; also where the target itself may not write (its own private copy of the page is made)."""
        try:
            self._write_through_file(address, data)
        except OSError as error:
            if error.errno not in writing.HARDENED:
                raise
            if self.is_gone():  # the other ways go by the pid: they would write into the program that is there now
                raise ProcessLookupError(errno.ESRCH, "the memory is gone") from None
            writing.write(self.pid, self.stopped, address, data, self.read)

    def _write_through_file(self, address: int, data: bytes) -> None:
        while data:
            written = os.pwrite(self.fd, data, address)
            if not written:
                raise ProcessLookupError(errno.ESRCH, "the memory is gone")
            address, data = address + written, data[written:]

    def u32(self, address: int) -> int:
        """An unsigned 32-bit number."""
        return int(struct.unpack("<I", self.read(address, 4))[0])

    def u64(self, address: int) -> int:
        """An unsigned 64-bit number."""
        return int(struct.unpack("<Q", self.read(address, 8))[0])

    def string(self, address: int, limit: int) -> bytes:
        """The bytes up to the first zero, at most `limit`."""
        return os.pread(self.fd, limit, address).split(b"\0", 1)[0]


# ----------------------------------------------------------------------------------------------------------- threads


class ThreadCall(NamedTuple):
    """Where a thread was when it was looked at."""

    tid: int
    number: int | None
    """The system call in which it is blocked; -1 when blocked outside of one; None while it runs."""
    arguments: tuple[int, ...]
    """Six of them, whatever the call takes; none where `number` is none."""
    sp: int
    pc: int

    @property
    def running(self) -> bool:
        """It was on a processor or waiting for one: nothing more is known."""
        return self.number is None


_WORKER = 0x10 | 0x4000
"""PF_IO_WORKER, PF_USER_WORKER (linux/sched.h)."""


def thread_ids(pid: int) -> list[int]:
    """The threads of a process that run its code, the main one first; empty when it is gone.

    Without those that the kernel has made for it (io_uring, vhost): they never come to user mode, and a stop makes them give
    up what they were asked to do. /proc shows them in the call in which their parent was when it made them.
    """
    try:
        tids = [int(name) for name in os.listdir(f"/proc/{pid}/task")]
    except OSError:
        return []
    return sorted((tid for tid in tids if not _is_worker(pid, tid)), key=lambda tid: (tid != pid, tid))


def _is_worker(pid: int, tid: int) -> bool:
    if tid == pid:
        return False
    try:
        with open(f"/proc/{pid}/task/{tid}/stat", "rb") as file:
            return bool(int(file.read().rpartition(b")")[2].split(None, 7)[6]) & _WORKER)
    except (OSError, ValueError, IndexError):
        return False  # it has just ended


def thread_call(pid: int, tid: int) -> ThreadCall | None:
    """Where one thread is; None when it is gone or the kernel does not say."""
    try:
        with open(f"/proc/{pid}/task/{tid}/syscall", encoding="ascii") as file:
            parts = file.read().split()
    except OSError:
        return None
    if not parts:
        return None
    if parts[0] == "running":
        return ThreadCall(tid, None, (), 0, 0)
    return ThreadCall(
        tid, int(parts[0], 0), tuple(int(part, 16) for part in parts[1:-2]), int(parts[-2], 16), int(parts[-1], 16)
    )


def scheduling(tid: int) -> tuple[set[int], int, int]:
    """How a thread is scheduled: its processors, policy, nice value. Raises OSError when it is gone."""
    return os.sched_getaffinity(tid), os.sched_getscheduler(tid), os.getpriority(os.PRIO_PROCESS, tid)


def sleeps(pid: int, tid: int) -> int | None:
    """How often a thread has gone to sleep so far: the same number twice means that it did not wake in between."""
    try:
        return int(status(pid, tid)["voluntary_ctxt_switches"])
    except (OSError, KeyError, ValueError):
        return None


def only_poller(pid: int) -> int | None:
    """The one file descriptor of a process that epoll_wait can be called with; None where there are several, or none."""
    found = []
    try:
        for name in os.listdir(f"/proc/{pid}/fd"):
            with contextlib.suppress(FileNotFoundError):
                if os.readlink(f"/proc/{pid}/fd/{name}") == "anon_inode:[eventpoll]":
                    found.append(int(name))
    except OSError:
        return None
    return found[0] if len(found) == 1 else None


def has_thread(pid: int, tid: int) -> bool:
    """Whether a thread is still there."""
    return os.path.exists(f"/proc/{pid}/task/{tid}")


def stacks(pid: int) -> list[tuple[int, int]]:
    """The writable mappings as (start, end) in order: any stack is in one of them. Raises OSError when it is gone."""
    with open(f"/proc/{pid}/maps", "rb") as file:
        found = re.findall(rb"^([0-9a-f]+)-([0-9a-f]+) .w", file.read(), re.MULTILINE)
    return [(int(start, 16), int(end, 16)) for start, end in found]


def tid_outside(pid: int, inner: int) -> int | None:
    """The thread that knows itself as `inner` in its own pid namespace; None when there is none (any more)."""
    for tid in thread_ids(pid):
        try:
            if pid_inside(status(pid, tid), tid) == inner:
                return tid
        except (OSError, ValueError):
            continue
    return None
