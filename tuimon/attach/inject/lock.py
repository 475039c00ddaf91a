"""Only one tuimon at a time may be at work on a process.

The lock on /proc/PID/mem is one that only those can take who may trace the process, but it is seen in one mount of procfs only:
a tuimon on the host and one in a container have a mount each. So a handle of the process (pidfd) is locked as well, where the
kernel gives those a file of their own for each process (Linux 6.9). On older kernels `foothold` finds by the bytes in the cave
that it is not alone.
"""

from __future__ import annotations

import ctypes
import fcntl
import os
import struct
import time

from tuimon.attach.refusal import Refused

LOCK_S = 3.0
_PIDFS = 0x50494446  # PID_FS_MAGIC of linux/magic.h
_libc = ctypes.CDLL(None, use_errno=True)


class Lock:
    """The lock of one process. It is free when this process ends."""

    def __init__(self, pid: int, memory: int) -> None:
        """`memory` is the open /proc/PID/mem; it stays the caller's to close."""
        self.pid = pid
        self._memory = memory
        self._handle = -1

    def take(self) -> None:
        """May be called while it is held. Raises Refused("busy") when another tuimon keeps it for too long."""
        if self._handle < 0:
            self._handle = _handle(self.pid)
        deadline = time.monotonic() + LOCK_S
        while True:
            try:
                for file in (self._memory, self._handle):
                    if file >= 0:
                        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
                return
            except BlockingIOError:
                self._free()
                if time.monotonic() > deadline:
                    self.release()
                    raise Refused("busy", f"another tuimon is just attaching to process {self.pid}; try again") from None
                time.sleep(0.01)

    def release(self) -> None:
        """Let others have it; may be called when it is not held."""
        self._free()
        if self._handle >= 0:
            os.close(self._handle)
            self._handle = -1

    def _free(self) -> None:
        for file in (self._handle, self._memory):
            if file >= 0:
                fcntl.flock(file, fcntl.LOCK_UN)


def _handle(pid: int) -> int:
    """A pidfd that can be locked for the process; -1 where there is none."""
    try:
        handle = os.pidfd_open(pid)
    except (AttributeError, OSError):  # before Linux 5.3, in some sandboxes
        return -1
    facts = ctypes.create_string_buffer(512)  # struct statfs begins with the file system's type, a long
    if _libc.fstatfs(handle, facts) == 0 and struct.unpack_from("l", facts)[0] == _PIDFS:
        return handle
    os.close(handle)  # all pidfds are one and the same file there: the lock would be one for all processes
    return -1
