"""Writing into a target where /proc/PID/mem does not take it, although tracing is allowed.

Hardened kernels refuse to write through that file what the target itself may not write (its code), or refuse any write
(proc_mem.force_override, PROC_MEM_*). What the target may write, process_vm_writev writes; the rest ptrace does, word by word,
for as long as one of the target's threads is stopped by us.
"""

from __future__ import annotations

import ctypes
import errno
import os
import struct
from collections.abc import Callable

HARDENED = frozenset({errno.EIO, errno.EPERM, errno.EACCES, errno.EFAULT, errno.EBADF})
"""How a kernel says that it does not take a write through the file."""
PTRACE_POKEDATA = 5

_libc = ctypes.CDLL(None, use_errno=True)
_libc.ptrace.restype = ctypes.c_long
_libc.ptrace.argtypes = [ctypes.c_long, ctypes.c_long, ctypes.c_void_p, ctypes.c_void_p]


class _Iovec(ctypes.Structure):
    _fields_ = (("base", ctypes.c_void_p), ("length", ctypes.c_size_t))


def write(pid: int, stopped: int | None, address: int, data: bytes, read: Callable[[int, int], bytes]) -> None:
    """All of `data`. `stopped` is a thread of the process that this thread of ours has stopped, `read` its memory's.

    Raises OSError where neither way is allowed.
    """
    if not _between_processes(pid, address, data):
        if stopped is None:
            raise OSError(errno.EPERM, f"the kernel does not allow to write at {address:#x}")
        _word_by_word(stopped, address, data, read)


def _between_processes(pid: int, address: int, data: bytes) -> bool:
    try:
        transfer = _libc.process_vm_writev
    except AttributeError:
        return False
    transfer.restype = ctypes.c_ssize_t
    buffer = ctypes.create_string_buffer(data, len(data))
    ours, theirs = _Iovec(ctypes.addressof(buffer), len(data)), _Iovec(address, len(data))
    written = transfer(pid, ctypes.byref(ours), ctypes.c_ulong(1), ctypes.byref(theirs), ctypes.c_ulong(1), ctypes.c_ulong(0))
    return bool(written == len(data))


def _word_by_word(tid: int, address: int, data: bytes, read: Callable[[int, int], bytes]) -> None:
    start, end = address // 8 * 8, -(-(address + len(data)) // 8) * 8
    words = bytearray(read(start, end - start))
    words[address - start : address - start + len(data)] = data
    for at, (word,) in enumerate(struct.iter_unpack("<Q", words)):
        if _libc.ptrace(PTRACE_POKEDATA, tid, start + 8 * at, word) == -1:
            error = ctypes.get_errno()
            raise OSError(error, os.strerror(error))
